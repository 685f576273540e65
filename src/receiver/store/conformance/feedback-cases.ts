import { ranged } from '../run-filter.ts';
import { TOKENS_MAX } from '../store.ts';
import { equal, feedback, id, post, SCOPE, type StoreCase, second, simple, token } from './support.ts';

export const feedbackCases: readonly StoreCase[] = [
  {
    title: 'Feedback is stored with its run, and returned in the order of its creation',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { parent: 1 })]);
      const [first, later] = [feedback(2), feedback(1, { id: id(901), created_at: second(5), comment: 'good' })];
      equal([await store.addFeedback(SCOPE, later), await store.addFeedback(SCOPE, first)], [true, true]);
      equal(await store.feedback(SCOPE, id(1)), [first, later]);
      equal((await store.details(SCOPE, id(2)))?.feedback, [first]);
    },
  },
  {
    title: 'Feedback with the same id replaces the earlier one, and keeps its time of creation',
    run: async (store) => {
      await store.apply(SCOPE, [post(1)]);
      await store.addFeedback(SCOPE, feedback(1, { comment: 'good' }));
      await store.addFeedback(SCOPE, feedback(1, { score: 0, created_at: second(9), modified_at: second(9) }));
      equal(await store.feedback(SCOPE, id(1)), [feedback(1, { score: 0, modified_at: second(9) })]);
    },
  },
  {
    title: 'Feedback on an unknown run is not stored',
    run: async (store) => {
      equal(await store.addFeedback(SCOPE, feedback(1)), false);
      await store.apply(SCOPE, [post(1)]);
      equal(await store.feedback(SCOPE, id(1)), []);
    },
  },
  {
    title: 'A scope with a project returns the feedback on its runs only',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { parent: 1, session_name: 'other' })]);
      const [own, nested] = [feedback(1), feedback(2, { id: id(901) })];
      for (const each of [own, nested]) await store.addFeedback(SCOPE, each);
      equal(await store.feedback(SCOPE, id(1)), [own, nested]);
      equal(await store.feedback({ ...SCOPE, project: 'shop' }, id(1)), [own]);
      equal(await store.feedback({ ...SCOPE, project: 'other' }, id(1)), [nested]);
    },
  },
  {
    title: 'Traces have the number and the average score of feedback by key, also after runs have moved',
    run: async (store) => {
      await store.apply(SCOPE, [simple(2, { parent: 1 })]);
      await store.addFeedback(SCOPE, feedback(2, { id: id(901), score: 0 }));
      const { score: _, ...comment } = feedback(2, { id: id(902), key: 'comment', comment: 'so so' });
      await store.addFeedback(SCOPE, comment);
      await store.apply(SCOPE, [simple(1)]);
      await store.addFeedback(SCOPE, feedback(1));
      const liked = { key: 'liked', count: 2, average_score: 0.5 };
      const { items } = await store.traces(SCOPE, ranged({}));
      equal(
        items.map(({ trace }) => trace.feedback),
        [[{ key: 'comment', count: 1 }, liked]],
      );
      equal((await store.feedback(SCOPE, id(1))).length, 3);
    },
  },
  {
    title: 'Tokens can be stored before their run, and belong to a tenant',
    run: async (store) => {
      await store.addTokens(SCOPE, [token(500, 1), token(501, 2)]);
      await store.addTokens(SCOPE, [token(502, 1)]);
      equal(await store.token(SCOPE, id(501)), token(501, 2));
      equal(await store.token({ tenant: 'other' }, id(501)), undefined);
      equal(await store.token(SCOPE, id(1)), undefined);
      equal(await store.tokens(SCOPE, id(1)), [token(500, 1), token(502, 1)]);
    },
  },
  {
    title: 'The tokens of a tenant do not displace those of another tenant',
    run: async (store) => {
      const other = { tenant: 'other' };
      await store.addTokens(other, [token(500, 1)]);
      const many = Array.from({ length: TOKENS_MAX + 1 }, (_, at) => token(1_000 + at, 1));
      await store.addTokens(SCOPE, many);
      equal(await store.token(other, id(500)), token(500, 1));
      equal(await store.token(SCOPE, id(1_000 + TOKENS_MAX)), many.at(-1));
    },
  },
];
