import { randomUUID } from 'node:crypto';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { equal, feedback, id, matches, post, SCOPE, type StoreCase, second } from './support.ts';

export const feedbackCases: readonly StoreCase[] = [
  {
    title: 'Feedback is stored with its run, and returned in the order of its creation',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { parent: 1 })]);
      const [first, later] = [feedback(2), feedback(1, { id: id(901), created_at: second(5), comment: 'good' })];
      equal([await store.addFeedback(SCOPE, later), await store.addFeedback(SCOPE, first)], [true, true]);
      equal(await store.feedback(SCOPE, [id(1)]), [first, later]);
      equal((await store.details(SCOPE, id(2)))?.feedback, [first]);
    },
  },
  {
    title: 'Feedback with the same id replaces the earlier one, and keeps its time of creation',
    run: async (store) => {
      await store.apply(SCOPE, [post(1)]);
      await store.addFeedback(SCOPE, feedback(1, { comment: 'good' }));
      await store.addFeedback(SCOPE, feedback(1, { score: 0, created_at: second(9), modified_at: second(9) }));
      equal(await store.feedback(SCOPE, [id(1)]), [feedback(1, { score: 0, modified_at: second(9) })]);
    },
  },
  {
    title: 'Feedback on an unknown run is not stored',
    run: async (store) => {
      equal(await store.addFeedback(SCOPE, feedback(1)), false);
      await store.apply(SCOPE, [post(1)]);
      equal(await store.feedback(SCOPE, [id(1)]), []);
    },
  },
  {
    title: 'Feedback is found by its id in the scope, and deleted from its run',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { parent: 1, session_name: 'other' })]);
      const [own, nested] = [feedback(1), feedback(2, { id: id(901) })];
      for (const each of [own, nested]) await store.addFeedback(SCOPE, each);
      const found = (project?: string) => store.feedbackWithId({ ...SCOPE, ...(project && { project }) }, nested.id);
      equal(await Promise.all([found(), found('other'), found('shop')]), [nested, nested, undefined]);
      const given = (project: string) => store.feedback({ ...SCOPE, project }, [id(1)]);
      equal(await Promise.all([given('shop'), given('other')]), [[own], [nested]]);
      equal(await store.addFeedback({ tenant: 'stranger' }, own), false);
      equal(await store.feedbackWithId({ tenant: 'stranger' }, nested.id), undefined);
      equal(await store.removeFeedback({ tenant: 'stranger' }, nested), false);
      equal(await store.removeFeedback(SCOPE, { ...nested, run_id: id(1) }), false);
      equal([await store.removeFeedback(SCOPE, nested), await store.removeFeedback(SCOPE, nested)], [true, false]);
      equal([await found(), await store.feedback(SCOPE, [id(1)])], [undefined, [own]]);
      await store.addFeedback(SCOPE, nested);
      equal(await found(), nested);
    },
  },
  {
    title: 'Traces have the number and the average score of feedback by key, also if the root arrives later',
    run: async (store) => {
      await store.apply(SCOPE, [post(2, { parent: 1 })]);
      await store.addFeedback(SCOPE, feedback(2, { id: id(901), score: 0 }));
      const { score: _, ...comment } = feedback(2, { id: id(902), key: 'comment', comment: 'so so' });
      await store.addFeedback(SCOPE, comment);
      await store.apply(SCOPE, [post(1)]);
      await store.addFeedback(SCOPE, feedback(1));
      const liked = { key: 'liked', count: 2, average_score: 0.5 };
      const { items } = await store.traces(SCOPE, parsedQuery({}));
      matches(items, [{ trace: { feedback: [{ key: 'comment', count: 1 }, liked] } }]);
      equal((await store.feedback(SCOPE, [id(1)])).length, 3);
    },
  },
  {
    title: 'Secrets of tokens are returned in the order of their creation, each once',
    run: async (store) => {
      // All tenants share the secrets.
      const test = randomUUID();
      const [first, second] = [1, 2].map((createdMs) => ({ secret: `${test} ${createdMs}`, createdMs }));
      for (const each of [second, first, second]) if (each !== undefined) await store.addTokenSecret(each);
      const secrets = (await store.tokenSecrets()).filter(({ secret }) => secret.startsWith(test));
      equal(secrets, [first, second]);
    },
  },
  {
    title: 'Revoked tokens have the latest time at which one of their ids was revoked, also before a run arrives',
    run: async (store) => {
      equal(await store.tokensRevokedMs(SCOPE, [id(1), id(2)]), undefined);
      for (const [number, ms] of [[1, 7] as const, [1, 5] as const, [2, 6] as const]) {
        await store.revokeTokens(SCOPE, id(number), ms);
      }
      equal(await store.tokensRevokedMs(SCOPE, [id(2)]), 6);
      equal(await store.tokensRevokedMs(SCOPE, [id(2), id(1), id(3)]), 7);
      equal(await store.tokensRevokedMs(SCOPE, [id(3)]), undefined);
    },
  },
];
