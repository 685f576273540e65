import { rejects } from 'node:assert/strict';
import { parseExact } from '#src/payload/fields.ts';
import { comparable } from '#src/receiver/domain/comparable.ts';
import type { RunQuery, SuggestionQuery } from '#src/receiver/domain/query/query.ts';
import type { RunFields } from '#src/receiver/domain/run-message.ts';
import type { FilterNode } from '#src/receiver/filter/filter.ts';
import { condition } from '#src/receiver/filter/parser.ts';
import { ALL_RUNS, ALL_TIMES, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  equal,
  feedback,
  id,
  listed,
  matches,
  numberOf,
  numbersOf,
  outlined,
  pagesOf,
  patch,
  post,
  runsOf,
  SCOPE,
  SPECIAL_TEXTS,
  type StoreCase,
  second,
  simple,
  stamp,
  table,
  traced,
} from './support.ts';

const STATUSES: readonly (readonly [status: string, fields: RunFields])[] = [
  ['pending', {}],
  ['success', { end_time: second(9) }],
  ['error', { end_time: second(9), error: 'Error: no money' }],
  ['cancelled', { error: 'AbortError: gone', extra: { runspan_end_reason: 'cancelled' } }],
  ['interrupted', { error: 'Interrupted: collected', extra: { runspan_end_reason: 'interrupted' } }],
  ['incomplete', { error: 'Incomplete: the run had not ended', extra: { runspan_end_reason: 'incomplete' } }],
];

/** Search texts, and whether they find the run of the case. */
const SEARCHES: readonly (readonly [text: string, isFound: boolean])[] = [
  ['parcel', true],
  ['parc', true],
  ['arcel', false],
  ['PARCEL where', true],
  ['way', true],
  ['model', true],
  ['money', true],
  ['eu', true],
  ['ada', true],
  ['question', false],
  ['way ada', true],
  ['way letter', false],
  ['"my parcel"', true],
  ['"where parcel"', false],
  ['"prod eu"', false],
  ['7', true],
  ['?!', true],
];

const filters: StoreCase[] = [
  {
    title: 'Runs are found by their status',
    run: async (store) => {
      const runs = STATUSES.map(([, fields], at) => post(at, fields));
      await store.apply(SCOPE, runs);
      for (const [at, [status]] of STATUSES.entries()) {
        equal(await numbersOf(store, { filter: `status:${status}` }), [at], status);
        equal(await listed(store, { filter: `status:${status}` }), [at], status);
      }
    },
  },
  {
    title: 'Runs are found by the words of their name, error, tags, metadata, inputs and outputs',
    run: async (store) => {
      const payloads = { inputs: { question: 'Where is my parcel?' }, outputs: { text: 'On its way' } };
      const others = { tags: ['prod', 'eu'], extra: { metadata: { user_id: 'ada', shard: 7 } } };
      await store.apply(SCOPE, [post(1, { name: 'model', error: 'Error: no money', ...payloads, ...others })]);
      for (const [filter, isFound] of SEARCHES) {
        equal(await numbersOf(store, { filter }), isFound ? [1] : [], filter);
        equal(await listed(store, { filter }), isFound ? [1] : [], filter);
      }
    },
  },
  {
    title: 'Runs are found by project, trace and model, and limited',
    run: async (store) => {
      const model = { run_type: 'llm', extra: { metadata: { ls_model_name: 'gpt-x', shard: 7 } } };
      await store.apply(SCOPE, [post(1), post(2, { parent: 1, ...model }), post(3, { session_name: 'other' })]);
      const expected: [RunQuery, number[]][] = [
        [{}, [1, 2, 3]],
        [{ limit: 2 }, [1, 2]],
        [{ project: 'other' }, [3]],
        [{ traceId: id(1) }, [1, 2]],
        [{ filter: 'model:gpt-x' }, [2]],
        [{ project: 'shop', filter: 'status:pending type:chain' }, [1]],
      ];
      for (const [query, numbers] of expected) equal(await numbersOf(store, query), numbers, JSON.stringify(query));
    },
  },
  {
    title: 'Threads and users may have numbers as ids',
    run: async (store) => {
      const extra = { metadata: { thread_id: 42, user_id: 7.5 } };
      await store.apply(SCOPE, [post(1, { extra }), post(2, { extra: { metadata: { session_id: true } } })]);
      for (const filter of ['thread:42', 'user:7.5', 'meta.thread_id:42']) equal(await listed(store, { filter }), [1]);
      equal(await listed(store, { filter: '-thread:42' }), [2]);
      equal(await store.removable(SCOPE, { kind: 'thread', id: '42' }), { runs: 1, traces: 1 });
    },
  },
  {
    title: 'Texts with characters that databases cut or replace stay apart, also when runs are deleted',
    run: async (store) => {
      const users = ['nul', 'nul\0one', 'nul\0two', 'half \ud83d'];
      const runs = users.map((user_id, at) =>
        post(at + 1, { name: `n${user_id}`, tags: [user_id], extra: { metadata: { user_id, thread_id: user_id } } }),
      );
      await store.apply(SCOPE, runs);
      for (const [at, user] of users.entries()) {
        for (const key of ['user:', 'thread:', 'tag:', 'meta.user_id=', 'name:n']) {
          const filter = key === 'name:n' ? `name:"n${user}"` : `${key}"${user}"`;
          equal(await listed(store, { filter }), [at + 1], JSON.stringify(filter));
        }
      }
      equal(await store.remove(SCOPE, { kind: 'user', id: 'nul\0one' }), { runs: 1, traces: 1 });
      equal(await store.remove(SCOPE, { kind: 'thread', id: 'half \ud83d' }), { runs: 1, traces: 1 });
      equal(await listed(store, { order: 'ascending' }), [1, 3]);
    },
  },
  {
    title: 'Texts with special characters are compared as they are, also long ones',
    run: async (store) => {
      const texts = [...SPECIAL_TEXTS, 'x'.repeat(1_000)];
      const runs = texts.map((text, at) => {
        const metadata = { [text]: 1, key: text, thread_id: text, ls_model_name: text };
        const fields = { name: text, tags: [text, 'all'], error: `Error: ${text}`, session_name: text };
        return post(at, { ...fields, extra: { metadata } });
      });
      await store.apply(SCOPE, runs);
      const keyOf = (text: string) => text.slice(0, 100);
      const given = texts.map((text, at) => feedback(at, { id: id(1_000 + at), key: keyOf(text), value: text }));
      await Promise.all(given.map((one) => store.addFeedback(SCOPE, one)));
      const found = async (...conditions: FilterNode[]) =>
        (await store.list(SCOPE, { filter: { ...ALL_RUNS, conditions } })).items.map((run) => numberOf(run.id));
      for (const [at, text] of texts.entries()) {
        const values = [{ kind: 'equal' as const, text }];
        const equals: FilterNode[] = [
          ...(['name', 'model', 'thread', 'project', 'tag'] as const).map((field) => ({ field, values })),
          { field: 'meta', key: 'key', values },
          { field: 'meta', key: text },
          { field: 'feedback', key: keyOf(text), values },
        ];
        const ids = (['trace', 'run'] as const).map((field) => ({ field, values }));
        const parts = (['prefix', 'suffix', 'contains'] as const).map((kind) => ({ kind, text }));
        const patterns = parts.flatMap((value) => [
          { field: 'name' as const, values: [value] },
          { field: 'tag' as const, values: [value] },
        ]);
        const inError = { field: 'error' as const, values: [{ kind: 'contains' as const, text: text.toLowerCase() }] };
        equal(await found(...equals, ...patterns, inError), [at], `all conditions with ${keyOf(text)}`);
        equal(await found({ some: [...equals, ...ids] }), [at], `each condition with ${keyOf(text)}`);
      }
    },
  },
  {
    title: 'Texts of more than 1,000 characters are cut in lists and groups, stay apart, and are stored in full',
    run: async (store) => {
      const texts = ['one', 'two'].map((end) => '\u{1f600}'.repeat(600) + end);
      const metadata = (text: string) => ({ thread_id: text, user_id: text, ls_model_name: text, [text]: text });
      const fields = (text: string) => ({ name: text, tags: [text], session_name: text });
      const runs = texts.map((text, at) => post(at, { ...fields(text), extra: { metadata: metadata(text) } }));
      await store.apply(SCOPE, runs);
      const cut = texts.map(comparable);
      for (const one of cut) equal([one.length, one.slice(0, 962)], [999, '\u{1f600}'.repeat(481)]);
      const { items } = await store.list(SCOPE, parsedQuery({ order: 'ascending' }));
      for (const [at, text] of texts.entries()) {
        const one = cut[at] ?? '';
        matches(items[at], { ...fields(one), thread: one, user: one, model: one });
        matches(await store.details(SCOPE, id(at)), fields(text));
        matches(await runsOf(store, { filter: condition('run', id(at)) }), [fields(text)]);
        for (const key of ['name', 'tag', 'project', 'thread', 'user', 'model', 'meta.user_id', `meta."${one}"`]) {
          for (const value of [text, one]) equal(await listed(store, { filter: condition(key, value) }), [at], key);
        }
      }
      for (const groupBy of ['name', 'tag', 'project', 'thread', 'user', 'model', 'meta.user_id'] as const) {
        const { groups } = await store.statistics(SCOPE, parsedQuery({ groupBy }));
        equal(groups.map(({ group }) => group).sort(), cut.toSorted(), groupBy);
      }
      equal(await store.remove(SCOPE, { kind: 'user', id: texts[0] ?? '' }), { runs: 1, traces: 1 });
      equal(await listed(store), [1]);
      equal(await store.remove(SCOPE, { kind: 'thread', id: cut[1] ?? '' }), { runs: 1, traces: 1 });
    },
  },
  {
    title: 'Statistics group by metadata with any characters in its key, and with any value',
    run: async (store) => {
      const keys = ['a.b', "it's", 'x[0]', '\u00e9\u{1f600}', 'say "hi"', 'C:\\users', 'a\nb', '$', '__proto__'];
      const values: unknown[] = parseExact('["text", 1.5, true, null, {"a": [1]}, 12345678901234567890]');
      for (const [at, value] of values.entries()) {
        const metadata = Object.fromEntries(keys.map((key) => [key, value]));
        await store.apply(SCOPE, [post(at, { extra: { metadata: { ...metadata, [`only ${at}`]: 'x' } } })]);
      }
      const expected = ['1.5', '12345678901234567890', 'null', 'text', 'true', '{"a":[1]}'];
      for (const key of keys) {
        const { groups } = await store.statistics(SCOPE, parsedQuery({ groupBy: `meta.${key}` }));
        equal(groups.map(({ group }) => group).sort(), expected, key);
      }
    },
  },
  {
    title: 'Runs are found by characters that their JSON text escapes',
    run: async (store) => {
      const [inputs, outputs] = [{ text: 'Caf\u00e9' }, { text: 'C:\\users' }];
      const texts = { inputs: '{"text":"Caf\\u00e9"}', outputs: '{"text":"C:\\\\users"}' };
      await store.apply(SCOPE, [{ ...post(1, { inputs, outputs }), texts }]);
      equal(await listed(store, { filter: 'cafe users' }), [1]);
      const texted = (await payloadsOf(store, 1)).map((text) => JSON.parse(text ?? ''));
      equal(texted, [inputs, outputs]);
    },
  },
  {
    title: 'Runs are found by their current text',
    run: async (store) => {
      await store.apply(SCOPE, [post(4), patch(4, { outputs: { text: 'zebra' } })]);
      equal(await listed(store, { filter: 'zebra' }), [4]);
      await store.apply(SCOPE, [patch(4, { outputs: { text: 'horse' } })]);
      equal([await listed(store, { filter: 'zebra' }), await listed(store, { filter: 'horse' })], [[], [4]]);
    },
  },
];

const OTHER_TRACE = id(20);

/** Two traces, a run with markup in its values, and feedback on runs 11, 12 and 14. */
async function applyFiltered(store: Store): Promise<void> {
  const usage = (input_tokens: number, output_tokens: number, total_cost: number) => ({
    outputs: { usage_metadata: { input_tokens, output_tokens, total_cost } },
  });
  const about = (metadata: Record<string, unknown>) => ({ extra: { metadata } });
  await store.apply(SCOPE, [
    post(11, { ms: 1_500, name: 'answer', tags: ['prod', 'eu'], ...about({ user_id: 'ada', thread_id: 't1', n: 7 }) }),
    post(12, { parent: 11, ms: 500, name: 'model', run_type: 'llm', ...usage(6, 4, 0.25), ...about({ plan: 'pro' }) }),
    post(13, { parent: 11, name: 'search', run_type: 'tool', error: 'TimeoutError: Zu spät\n  at Socket.end' }),
    post(14, { ms: 3_000, name: 'answer question', tags: ['eu'], ...about({ user_id: 'bob', plan: null }) }),
    post(15, { name: '50% [a*b] "q"', session_name: 'other', ...about({ 'a key': 'x=y', deep: { a: 1 } }) }),
  ]);
  await store.addFeedback(SCOPE, feedback(11, { id: id(901), key: 'liked', score: 0.25 }));
  await store.addFeedback(SCOPE, feedback(11, { id: id(902), key: 'liked', score: 0.75 }));
  await store.addFeedback(SCOPE, { ...feedback(12, { id: id(903), key: 'topic', value: 'refund' }), score: true });
  await store.addFeedback(SCOPE, feedback(14, { id: id(904), key: 'liked', score: 1, comment: 'wrong price' }));
  await store.addFeedback(SCOPE, feedback(12, { id: id(905), key: 'note', comment: 'wrong price' }));
  await store.addFeedback(SCOPE, feedback(14, { id: id(906), key: 'note', score: 0.25 }));
}

/** Filters, the runs that they select, and the roots of the traces that they select. */
const FILTER_TEXTS: readonly (readonly [filter: string, runs: number[], roots?: number[]])[] = [
  ['', [11, 12, 13, 14, 15], [11, 14, 15]],
  ['name:answer', [11]],
  ['name:answer,model', [11, 12], [11]],
  ['name:answer*', [11, 14]],
  ['name:*question', [14]],
  ['name:model,*question', [12, 14], [14]],
  ['name:*SWER*', []],
  ['name:*swer*', [11, 14]],
  ['name:"answer question"', [14]],
  ['name:"50% [a*b] \\"q\\""', [15]],
  ['name:*"[a*b]"*', [15]],
  ['name:*[A*', []],
  ['name:5?%*', []],
  ['type:llm,tool', [12, 13], []],
  ['-type:llm', [11, 13, 14, 15], [11, 14, 15]],
  ['model:*', [], []],
  ['status:success', [11, 12, 14], [11, 14]],
  ['status:error', [13], []],
  ['status:error,pending', [13, 15], [15]],
  ['-status:success', [13, 15], [15]],
  ['project:other', [15]],
  ['-project:other', [11, 12, 13, 14], [11, 14]],
  ['project:other,shop status:pending', [15]],
  ['user:ada', [11]],
  ['user:ada,bob', [11, 14]],
  ['user:a*', [11]],
  ['user:*', [11, 14]],
  ['-user:ada', [12, 13, 14, 15], [14, 15]],
  ['thread:t1', [11]],
  ['tag:prod', [11]],
  ['tag:eu tag:prod', [11]],
  ['tag:prod,eu', [11, 14]],
  ['tag:*u', [11, 14]],
  ['tag:prod,e*', [11, 14]],
  ['tag:eu meta.user_id:bob', [14]],
  ['-tag:prod', [12, 13, 14, 15], [14, 15]],
  [`trace:${id(11)}`, [11, 12, 13], [11]],
  [`trace:${id(11).toUpperCase().replaceAll('-', '')}`, [11, 12, 13], [11]],
  [`-trace:${id(11)}`, [14, 15]],
  [`trace:${OTHER_TRACE}`, []],
  [`trace:${id(11)},${id(14)}`, [11, 12, 13, 14], [11, 14]],
  [`run:${id(12)},${id(14)}`, [12, 14], [14]],
  ['error:timeout', [13], []],
  ['error:SPÄT', [13], []],
  ['error:socket.end', [13], []],
  ['error:*', [13], []],
  ['-error:*', [11, 12, 14, 15], [11, 14, 15]],
  ['meta.user_id', [11, 14]],
  ['meta.user_id:ada', [11]],
  ['meta.user_id=ada,bob', [11, 14]],
  ['meta.n:7', [11]],
  ['meta.n:70', []],
  ['meta.plan', [12, 14], [14]],
  ['meta.plan:null', [14]],
  ['meta.plan:p*', [12], []],
  ['meta.plan:null,p*', [12, 14], [14]],
  ['-meta.plan:pro', [11, 13, 14, 15], [11, 14, 15]],
  ['meta."a key"="x=y"', [15]],
  ['meta.deep:"{\\"a\\":1}"', [15]],
  ['meta.toString', []],
  ['feedback.liked', [11, 14]],
  ['feedback.liked>0.5', [11, 14]],
  ['feedback.liked<0.5', [11]],
  ['feedback.liked:0.3..0.7', []],
  ['feedback.liked:0.7..', [11, 14]],
  ['feedback.liked:1', [14]],
  ['feedback.topic:refund', [12], []],
  ['feedback.topic:true', [12], []],
  ['feedback.topic>=1', [12], []],
  ['-feedback.liked', [12, 13, 15], [15]],
  ['note:"wrong price"', [12], []],
  ['note=x,w*', [12], []],
  ['note:*price*', [12], []],
  ['note:price', []],
  ['note:*', [12], []],
  ['note:0.25', []],
  ['-note:*', [11, 13, 14, 15], [11, 14, 15]],
  ['latency>=1500ms', [11, 14]],
  ['latency>1.5', [14]],
  ['latency<1500ms', [12], []],
  ['latency:1s..3s', [11, 14]],
  ['latency:500ms', [12], []],
  ['-latency>1s', [12, 13, 15], [15]],
  ['tokens:10', [12], [11]],
  ['tokens>10', []],
  ['input_tokens<=6', [12], [11]],
  ['output_tokens:4..', [12], [11]],
  ['cost>0.2', [12], [11]],
  ['cost:..0.2', []],
  ['is:root', [11, 14, 15]],
  ['-is:root', [12, 13], []],
  [`since:${second(14)}`, [14, 15]],
  [`before:${second(12)} before:${second(14)}`, [11]],
  ['name:answer OR user:bob', [11, 14]],
  ['type:chain name:model OR user:bob OR meta.deep', [14, 15]],
  ['(name:answer tag:prod) OR (name:model tag:prod)', [11]],
  ['NOT (name:answer OR type:llm)', [13, 14, 15], [14, 15]],
  ['-(status:success -user:bob)', [13, 14, 15], [14, 15]],
  ['any(status:error)', [11, 12, 13], [11]],
  ['any(type:llm cost>0.2) AND -error:*', [11, 12], [11]],
  ['-any(type:llm)', [14, 15]],
  ['any(name:model error:*)', []],
  ['any(name:model) any(error:*)', [11, 12, 13], [11]],
  ['any(feedback.topic OR project:other)', [11, 12, 13, 15], [11, 15]],
  ['any(type:tool OR user:bob) -any(type:llm)', [14]],
  ['zu spät', [13], [11]],
  [`since:${second(11)} zu since:${second(13)} spät type:tool`, [13], []],
  ['"zu spät" any(type:llm)', [13], [11]],
  ['spät -name:search', [], [11]],
];

const languages: StoreCase[] = [
  {
    title: 'A filter text selects runs, and traces by their root',
    run: async (store) => {
      await applyFiltered(store);
      for (const [filter, runs, roots = runs] of FILTER_TEXTS) {
        const [found, foundRoots, exported, { total }] = await Promise.all([
          listed(store, { filter, order: 'ascending' }),
          traced(store, { filter, order: 'ascending' }),
          numbersOf(store, { filter }),
          store.statistics(SCOPE, parsedQuery({ filter })),
        ]);
        equal(found, runs, `runs with ${filter}`);
        equal(foundRoots, roots, `traces with ${filter}`);
        equal(exported.sort(), runs, `exported runs with ${filter}`);
        equal(total.runs, runs.length, `statistics of ${filter}`);
      }
    },
  },
  ...table<[string, SuggestionQuery, string]>(
    'Suggestions for',
    [
      ['names', { field: 'name', text: 'AN' }, 'answer 1, answer question 1'],
      ['types', { field: 'type' }, 'chain 3, llm 1, tool 1'],
      ['statuses', { field: 'status' }, 'success 3, error 1, pending 1'],
      ['projects', { field: 'project' }, 'shop 4, other 1'],
      ['names in a project', { field: 'name', project: 'other' }, '50% [a*b] "q" 1'],
      ['users', { field: 'user' }, 'ada 1, bob 1'],
      ['threads', { field: 'thread' }, 't1 1'],
      ['models', { field: 'model' }, ''],
      ['tags', { field: 'tag' }, 'eu 2, prod 1'],
      ['metadata keys', { field: 'meta', text: 'e' }, 'user_id 2, a key 1, deep 1, thread_id 1'],
      ['metadata values', { field: 'meta.plan' }, 'null 1, pro 1'],
      ['feedback', { field: 'feedback' }, 'liked 2, note 2, topic 1'],
    ],
    async (store, [, query, expected]) => {
      await applyFiltered(store);
      const suggestions = await store.suggestions(SCOPE, query);
      equal(suggestions.map(({ value, runs }) => `${value} ${runs}`).join(', '), expected);
    },
  ),
  {
    title: 'The projects of runs are their current ones, also of runs that have just arrived',
    run: async (store) => {
      const other = { tenant: 'other' };
      await store.apply(other, [post(1, { session_name: 'foreign' }), post(9, { session_name: 'foreign' })]);
      await store.apply(SCOPE, [
        post(1, { session_name: 'chat' }),
        post(2, { parent: 1, session_name: 'secret' }),
        post(3),
      ]);
      await store.apply(SCOPE, [post(4, { session_name: 'chat' }), patch(5, { outputs: {} })]);
      const projectsOf = async (...numbers: number[]) => (await store.projectsOf(SCOPE, numbers.map(id))).sort();
      equal(await projectsOf(), []);
      equal(await projectsOf(1, 4, 5, 9), ['chat']);
      equal(await projectsOf(1, 2, 3, 4), ['chat', 'secret', 'shop']);
      await store.apply(SCOPE, [patch(4, { session_name: 'secret' })]);
      equal(await projectsOf(4), ['secret']);
      const many = Array.from({ length: 1_000 }, (_, at) => id(at + 1));
      equal((await store.projectsOf(SCOPE, many)).sort(), ['chat', 'secret', 'shop']);
    },
  },
  {
    title: 'A filter combines with the other fields of a query, and selects runs only within the project of a scope',
    run: async (store) => {
      await applyFiltered(store);
      equal(await listed(store, { filter: 'project:other', project: 'shop' }), []);
      await store.apply(SCOPE, [post(16, { parent: 11, session_name: 'other', name: 'elsewhere' })]);
      const inShop = { ...SCOPE, project: 'shop' };
      for (const filter of ['any(name:elsewhere)', 'elsewhere']) {
        equal((await store.traces(inShop, parsedQuery({ filter }))).items, []);
        equal(await traced(store, { filter }), [11]);
      }
    },
  },
];

const pages: StoreCase[] = [
  {
    title: 'A run in a list has what its fields and payloads contain, and no more',
    run: async (store) => {
      const messages = [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hello  there' },
      ];
      const fields = {
        run_type: 'llm',
        tags: ['a'],
        session_id: id(77),
        inputs: { messages },
        outputs: { usage_metadata: { input_tokens: 3, output_tokens: 4, total_cost: 0.5 } },
        events: [{ name: 'new_token', time: second(2) }],
        error: 'RateLimitError: slow down\n  at x',
        extra: { invocation_params: { model: 'm1' } },
      };
      await store.apply(SCOPE, [post(1, { ...fields, ms: 1_500 }), post(2)]);
      const { items } = await store.list(SCOPE, parsedQuery({ order: 'ascending' }));
      const known = {
        name: 'run 2',
        run_type: 'chain',
        status: 'pending',
        start_time: second(2),
        session_name: 'shop',
      };
      equal(items[1], { id: id(2), trace_id: id(2), ...known });
      matches(items.slice(0, 1), [
        {
          id: id(1),
          trace_id: id(1),
          name: 'run 1',
          run_type: 'llm',
          status: 'error',
          start_time: second(1),
          end_time: second(2.5),
          session_name: 'shop',
          session_id: id(77),
          tags: ['a'],
          model: 'm1',
          error: 'RateLimitError: slow down',
          usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7, total_cost: 0.5 },
          first_token_time: second(2),
          inputs_preview: 'Hello there',
        },
      ]);
    },
  },
  ...table<[string, { sort?: 'latency' | 'tokens' | 'cost'; order?: 'ascending' }, number[]]>(
    'A list is sorted, runs without the value last',
    [
      ['by start, latest first', {}, [4, 3, 2, 1]],
      ['by start, earliest first', { order: 'ascending' }, [1, 2, 3, 4]],
      ['by latency', { sort: 'latency' }, [2, 1, 3, 4]],
      ['by latency, shortest first', { sort: 'latency', order: 'ascending' }, [3, 1, 2, 4]],
      ['by tokens', { sort: 'tokens' }, [3, 1, 4, 2]],
      ['by cost', { sort: 'cost', order: 'ascending' }, [1, 3, 2, 4]],
    ],
    async (store, [, query, expected]) => {
      const usage = (total_tokens: number, total_cost: number) => ({
        outputs: { usage_metadata: { total_tokens, total_cost } },
      });
      await store.apply(SCOPE, [
        post(1, { ms: 20, ...usage(5, 1) }),
        post(2, { ms: 30 }),
        post(3, { ms: 10, ...usage(9, 2) }),
        post(4),
      ]);
      equal(await listed(store, query), expected);
      equal(await traced(store, query), expected);
      const pages = await pagesOf((page) => store.list(SCOPE, page), { ...query, limit: 1 });
      const found = pages.flat().map((run) => numberOf(run.id));
      equal(found, expected);
    },
  ),
  {
    title: 'An invalid cursor is rejected',
    run: async (store) => {
      const error = { code: 'RUNSPAN_INVALID_OPTION' };
      await rejects(store.list(SCOPE, parsedQuery({ cursor: 'x' })), error);
      await rejects(store.traces(SCOPE, parsedQuery({ cursor: 'x' })), error);
    },
  },
];

const call = (tokens: number) => ({
  run_type: 'llm',
  ms: 10,
  outputs: { text: 'an answer', usage_metadata: { input_tokens: tokens, output_tokens: 1 } },
});

const traces: StoreCase[] = [
  {
    title: 'A trace in a list has its root and the totals of its runs',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1, { ms: 20_000, outputs: { usage_metadata: { total_tokens: 1_000 } } }),
        post(2, { parent: 1, ...call(5) }),
        post(3, { parent: 1, ...call(6), error: 'Error: x' }),
        post(4, { parent: 1 }),
      ]);
      const { items } = await store.traces(SCOPE, parsedQuery({}));
      matches(items, [{ id: id(1), name: 'run 1', status: 'success' }]);
      const usage = { input_tokens: 11, output_tokens: 2, total_tokens: 13 };
      equal(items[0]?.trace, {
        ...{ runs: 4, pending: 1, errors: 1, model_calls: 2, end_time: second(21), usage },
        ...{ answered_run_id: id(1), failed_run_id: id(3) },
      });
    },
  },
  {
    title: 'A trace is listed by its first run until its root arrives',
    run: async (store) => {
      const named = async () => (await store.traces(SCOPE, parsedQuery({}))).items;
      await store.apply(SCOPE, [post(3, { parent: 1 }), post(2, { parent: 1 })]);
      matches(await named(), [{ id: id(2), trace_id: id(1), trace: { runs: 2 } }]);
      await store.apply(SCOPE, [post(1)]);
      matches(await named(), [{ id: id(1), trace: { runs: 3 } }]);
    },
  },
  {
    title: 'A trace is found by its root, by its tokens, and by the words of any of its runs',
    run: async (store) => {
      await store.apply(SCOPE, [post(1, { ms: 10 }), post(2, { parent: 1, ...call(5) }), post(3, call(2))]);
      equal(await traced(store), [3, 1]);
      equal(await traced(store, { filter: 'type:llm' }), [3]);
      equal(await traced(store, { filter: 'tokens>=6' }), [1]);
      equal(await traced(store, { sort: 'tokens' }), [1, 3]);
      equal(await traced(store, { filter: 'answer run status:success' }), [3, 1]);
      equal(await traced(store, { filter: 'answer name:"run 1"' }), [1]);
      equal(await traced(store, { limit: 1 }), [3]);
    },
  },
  {
    title: 'Projects have a number of traces and the start of the latest',
    run: async (store) => {
      const nameless = simple(6);
      const byId = simple(7, { session_id: id(70) });
      for (const { fields } of [nameless, byId]) delete fields.session_name;
      await store.apply(SCOPE, [
        post(1),
        post(2, { parent: 1 }),
        post(3),
        post(4, { session_name: 'another' }),
        nameless,
        byId,
      ]);
      const project = (name: string, count: number, last: number) => ({
        name,
        traces: count,
        last_start_time: second(last),
      });
      const all = [project(id(70), 1, 7), project('another', 1, 4), project('default', 1, 6), project('shop', 2, 3)];
      equal(await store.projects(SCOPE, ALL_TIMES), all);
      equal([await listed(store, { project: 'default' }), await listed(store, { project: id(70) })], [[6], [7]]);
    },
  },
  {
    title: 'An outline has all runs of a trace, parents before children, without payloads',
    run: async (store) => {
      await store.apply(SCOPE, [post(3, { parent: 1, ms: 5, inputs: { a: 'x' } }), post(1), post(2, { parent: 1 })]);
      const line = (number: number, fields: object) => ({
        id: id(number),
        name: `run ${number}`,
        run_type: 'chain',
        status: 'pending',
        start_time: second(number),
        ...fields,
      });
      const child = { parent_run_id: id(1) };
      const ended = { status: 'success', end_time: second(3.005) };
      equal(await outlined(store, 1), [line(1, {}), line(2, child), line(3, { ...child, ...ended })]);
      equal(await store.outline(SCOPE, id(9)), []);
    },
  },
  {
    title: 'Details have all fields but payloads, which are returned as text',
    run: async (store) => {
      const attachment = { name: 'a.png', mimeType: 'image/png', bytes: Uint8Array.of(1, 2, 3) };
      const error = 'Error: no\n  at here';
      const extra = { metadata: { user: 'ada' }, runtime: { sdk: 'x' } };
      const large = { text: 'ä'.repeat(2_000) };
      const run = post(1, { inputs: { a: 'ä' }, outputs: large, error, extra });
      await store.apply(SCOPE, [{ ...run, attachments: [attachment] }]);
      await store.addFeedback(SCOPE, feedback(1));
      const size = Buffer.byteLength(JSON.stringify(large));
      matches(await store.details(SCOPE, id(1)), {
        id: id(1),
        dotted_order: stamp(1),
        error,
        extra,
        payload_sizes: { inputs: 10, outputs: size },
        attachments: [{ name: 'a.png', mime_type: 'image/png', size: 3 }],
        feedback: [feedback(1)],
      });
      equal(await store.payload(SCOPE, id(1), 'inputs'), '{"a":"ä"}');
      equal(await store.payload(SCOPE, id(1), 'outputs'), JSON.stringify(large));
      equal(await store.payload(SCOPE, id(1), 'events'), undefined);
      equal(await payloadsOf(store, 2), [undefined, undefined]);
      equal(await store.details(SCOPE, id(2)), undefined);
    },
  },
];

function payloadsOf(store: Store, number: number): Promise<(string | undefined)[]> {
  return Promise.all([store.payload(SCOPE, id(number), 'inputs'), store.payload(SCOPE, id(number), 'outputs')]);
}

export const queryCases: readonly StoreCase[] = [...filters, ...languages, ...pages, ...traces];
