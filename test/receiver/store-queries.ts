import { beforeEach, describe, expect, test } from 'vitest';
import type { Feedback, ListQuery, RunFields, RunOperation, RunQuery, Store } from '../../src/receiver.ts';

const id = (index: number) => `00000000-0000-7000-8000-${index.toString().padStart(12, '0')}`;
const second = (index: number) => `2026-11-20T07:00:${index.toString().padStart(2, '0')}.000000Z`;

/** A run that starts at second `index` and takes `ms`, if it has ended. */
function run(
  index: number,
  { parent, ms, ...fields }: RunFields & { parent?: number; ms?: number } = {},
): RunOperation {
  const line = parent === undefined ? [index] : [parent, index];
  const stamped = line.map((each) => `20261120T0700${each.toString().padStart(2, '0')}000000Z${id(each)}`);
  const whole: RunFields = {
    name: `run ${index}`,
    run_type: 'chain',
    start_time: second(index),
    inputs: {},
    trace_id: id(parent ?? index),
    dotted_order: stamped.join('.'),
    session_name: 'shop',
    ...(parent === undefined ? {} : { parent_run_id: id(parent) }),
    ...(ms === undefined
      ? {}
      : { end_time: new Date(Date.parse(second(index)) + ms).toISOString().replace('Z', '000Z') }),
    ...fields,
  };
  return { kind: 'post', id: id(index), fields: whole, attachments: [] };
}

function numberOf(runId: string): number {
  return Number(runId.slice(-12));
}

function feedback(index: number, fields: Partial<Feedback> = {}): Feedback {
  const at = second(0);
  return { id: id(900), run_id: id(index), key: 'liked', score: 1, created_at: at, modified_at: at, ...fields };
}

/** What every store answers about the runs that it keeps. */
export function describeQueries(makeStore: () => Promise<Store>): void {
  let store: Store;
  beforeEach(async () => {
    store = await makeStore();
  });

  const runsOf = async (query: RunQuery) => (await store.runs(query)).map((found) => numberOf(found.id));
  const listOf = async (query: ListQuery) => (await store.list(query)).items.map((found) => numberOf(found.id));
  const tracesOf = async (query: ListQuery) => (await store.traces(query)).items.map((found) => numberOf(found.id));

  describe('runs are found', () => {
    const model = { run_type: 'llm', extra: { metadata: { ls_model_name: 'gpt-x', user: 'ada', shard: 7 } } };

    beforeEach(async () => {
      await store.apply([
        run(1, { ms: 100, tags: ['prod', 'eu'], inputs: { question: 'Where is my parcel?' } }),
        run(2, {
          parent: 1,
          ms: 50,
          name: 'model',
          ...model,
          outputs: { text: 'On its way', usage_metadata: { total_tokens: 10 } },
        }),
        run(3, { session_name: 'other', error: 'Error: no money\n  at pay', ms: 2_000, tags: ['prod'] }),
        run(4),
        run(5, { ms: 1, extra: { metadata: { end_reason: 'cancelled' } }, error: 'AbortError: gone' }),
        run(6, { ms: 1, extra: { metadata: { end_reason: 'interrupted' } }, error: 'Interrupted: collected' }),
        run(7, { ms: 1, error: 'Incomplete: the run had not ended when its exporter gave up waiting for it' }),
      ]);
    });

    test.each<[string, RunQuery, number[]]>([
      ['all', {}, [1, 2, 3, 4, 5, 6, 7]],
      ['project', { project: 'other' }, [3]],
      ['trace', { traceId: id(1) }, [1, 2]],
      ['name', { name: 'model' }, [2]],
      ['name, which has to be whole', { name: 'mod' }, []],
      ['type', { runType: 'llm' }, [2]],
      ['model', { model: 'gpt-x' }, [2]],
      ['status pending', { status: 'pending' }, [4]],
      ['status success', { status: 'success' }, [1, 2]],
      ['status error', { status: 'error' }, [3]],
      ['status cancelled', { status: 'cancelled' }, [5]],
      ['status interrupted', { status: 'interrupted' }, [6]],
      ['status incomplete', { status: 'incomplete' }, [7]],
      ['one of several statuses', { status: ['error', 'pending'] }, [3, 4]],
      ['tag', { tag: 'prod' }, [1, 3]],
      ['each of several tags', { tag: ['prod', 'eu'] }, [1]],
      ['tag, which has to be whole', { tag: 'pro' }, []],
      ['key of metadata', { metadata: { user: null } }, [2]],
      ['value of metadata', { metadata: { user: 'ada' } }, [2]],
      ['another value of metadata', { metadata: { user: 'bob' } }, []],
      ['value of metadata that is no text', { metadata: { shard: '7' } }, [2]],
      ['several of metadata', { metadata: { user: 'ada', shard: '8' } }, []],
      ['start, which is included', { startedFrom: second(6) }, [6, 7]],
      ['start before, which is not', { startedBefore: second(2) }, [1]],
      ['latency from, included', { latencyMsMin: 100 }, [1, 3]],
      ['latency up to, included', { latencyMsMax: 50 }, [2, 5, 6, 7]],
      ['tokens from, included', { tokensMin: 10 }, [2]],
      ['tokens above', { tokensMin: 11 }, []],
      ['tokens up to, which runs without tokens are not', { tokensMax: 10 }, [2]],
      ['several at once', { project: 'shop', status: 'success', runType: 'chain' }, [1]],
      ['limit', { limit: 2 }, [1, 2]],
    ])('by %s', async (_, query, found) => {
      expect(await runsOf(query)).toEqual(found);
      const { limit, ...listed } = query;
      if (limit === undefined) expect((await listOf({ ...listed, order: 'ascending' })).sort()).toEqual(found);
    });

    test.each<[string, string, number[]]>([
      ['a word of the inputs', 'parcel', [1]],
      ['the beginning of a word', 'parc', [1]],
      ['not by what stands within a word', 'arcel', []],
      ['upper and lower case', 'PARCEL where', [1]],
      ['outputs', 'way', [2]],
      ['the name', 'model', [2]],
      ['the error', 'money', [3]],
      ['a tag', 'eu', [1]],
      ['a value of metadata', 'ada', [2]],
      ['not by a key', 'question', []],
      ['all words, wherever they stand', 'way ada', [2]],
      ['not by some of the words', 'way parcel', []],
      ['words next to each other', '"my parcel"', [1]],
      ['not by words that are elsewhere', '"where parcel"', []],
      ['not by words of two texts', '"prod eu"', []],
      ['nothing that is a word', '?!', [1, 2, 3, 4, 5, 6, 7]],
    ])('by text: %s', async (_, text, found) => {
      expect(await runsOf({ text })).toEqual(found);
    });

    test('by text with accents, without them, and in scripts without spaces', async () => {
      await store.apply([run(8, { inputs: { a: 'Crème brûlée', b: '東京タワーに行く' } })]);
      expect(await runsOf({ text: 'creme BRÛLÉE' })).toEqual([8]);
      expect(await runsOf({ text: '"東京タワー"' })).toEqual([8]);
      expect(await runsOf({ text: '"京東"' })).toEqual([]);
    });

    test('by text as it is after a patch', async () => {
      await store.apply([{ kind: 'patch', id: id(4), fields: { outputs: { text: 'zebra' } }, attachments: [] }]);
      expect(await runsOf({ text: 'zebra' })).toEqual([4]);
      await store.apply([{ kind: 'patch', id: id(4), fields: { outputs: { text: 'horse' } }, attachments: [] }]);
      expect(await runsOf({ text: 'zebra' })).toEqual([]);
      expect(await runsOf({ text: 'horse' })).toEqual([4]);
    });
  });

  describe('a run in a list', () => {
    test('tells what its fields and payloads say', async () => {
      const fields = {
        ms: 1_500,
        run_type: 'llm',
        tags: ['a'],
        session_id: id(77),
        inputs: {
          messages: [
            { role: 'system', content: 'Be kind.' },
            { role: 'user', content: 'Hello  there' },
          ],
        },
        outputs: { usage_metadata: { input_tokens: 3, output_tokens: 4, input_cost: 0.1, output_cost: 0.2 } },
        events: [{ name: 'new_token', time: second(2) }],
        error: 'RateLimitError: slow down\n  at x',
        extra: { invocation_params: { model: 'm1' } },
      };
      await store.apply([run(1, fields)]);
      expect((await store.list({})).items).toEqual([
        {
          id: id(1),
          trace_id: id(1),
          name: 'run 1',
          run_type: 'llm',
          status: 'error',
          start_time: second(1),
          end_time: '2026-11-20T07:00:02.500000Z',
          session_name: 'shop',
          session_id: id(77),
          tags: ['a'],
          model: 'm1',
          error: 'RateLimitError: slow down',
          usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7, total_cost: expect.closeTo(0.3) },
          first_token_time: second(2),
          inputs_preview: 'Hello there',
          outputs_preview: expect.stringContaining('usage_metadata'),
        },
      ]);
    });

    test('has no more than is known of it', async () => {
      await store.apply([run(1)]);
      expect((await store.list({})).items).toEqual([
        {
          id: id(1),
          trace_id: id(1),
          name: 'run 1',
          run_type: 'chain',
          status: 'pending',
          start_time: second(1),
          session_name: 'shop',
        },
      ]);
    });

    test('has no tokens that nobody can have counted', async () => {
      const told = (usage: Record<string, unknown>) => ({ outputs: { usage_metadata: usage } });
      const most = Number.MAX_SAFE_INTEGER;
      await store.apply([
        run(1, told({ input_tokens: -5, output_tokens: '3', total_tokens: 1e308 })),
        run(2, told({ total_tokens: most + 1, input_tokens: most, total_cost: Number.NaN })),
      ]);
      const usages = (await store.list({ order: 'ascending' })).items.map(({ usage }) => usage);
      expect(usages).toEqual([undefined, { input_tokens: most, total_tokens: most }]);
    });

    test('is not there before its name, type and start are known', async () => {
      await store.apply([{ kind: 'patch', id: id(1), fields: { outputs: { a: 1 } }, attachments: [] }]);
      expect(await store.list({})).toEqual({ items: [] });
      expect(await store.traces({})).toEqual({ items: [] });
      await store.apply([run(1)]);
      expect((await store.list({})).items).toMatchObject([{ outputs_preview: '{"a":1}', status: 'pending' }]);
    });
  });

  describe('a list', () => {
    const usage = (total_tokens: number, total_cost: number) => ({ usage_metadata: { total_tokens, total_cost } });

    beforeEach(async () => {
      await store.apply([
        run(1, { ms: 300, outputs: usage(5, 0.5) }),
        run(2, { ms: 100, outputs: usage(9, 0.1) }),
        run(3),
        run(4, { ms: 200, outputs: usage(5, 0.5) }),
      ]);
    });

    test.each<[ListQuery, number[]]>([
      [{}, [4, 3, 2, 1]],
      [{ order: 'ascending' }, [1, 2, 3, 4]],
      [{ sort: 'latency' }, [1, 4, 2, 3]],
      [{ sort: 'latency', order: 'ascending' }, [2, 4, 1, 3]],
      [{ sort: 'tokens' }, [2, 4, 1, 3]],
      [{ sort: 'cost', order: 'ascending' }, [2, 1, 4, 3]],
    ])('is sorted as %j says, runs without the value last', async (query, sorted) => {
      expect(await listOf(query)).toEqual(sorted);
    });

    test.each<ListQuery>([
      {},
      { order: 'ascending' },
      { sort: 'tokens' },
      { sort: 'tokens', order: 'ascending' },
      { sort: 'latency' },
    ])('comes in pages that make up the whole, sorted by %j', async (query) => {
      const whole = await listOf(query);
      for (const limit of [1, 2, 3]) {
        const paged: number[] = [];
        let cursor: string | undefined;
        do {
          const page = await store.list({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) });
          expect(page.items.length).toBeLessThanOrEqual(limit);
          paged.push(...page.items.map((found) => numberOf(found.id)));
          expect(paged.length).toBeLessThanOrEqual(whole.length);
          cursor = page.next;
        } while (cursor !== undefined);
        expect(paged).toEqual(whole);
      }
    });

    test('names no next page where there is none', async () => {
      expect((await store.list({ limit: 4 })).next).toBeUndefined();
      expect((await store.list({ limit: 3 })).next).toBeDefined();
    });

    test('goes on after the last run of a page, whatever has come before it meanwhile', async () => {
      const first = await store.list({ limit: 2 });
      await store.apply([run(9)]);
      expect(await listOf({ limit: 2, cursor: first.next ?? '' })).toEqual([2, 1]);
    });

    test('refuses a cursor that is none', async () => {
      await expect(store.list({ cursor: 'x' })).rejects.toThrow('Expected `cursor` to be the `next` value');
      await expect(store.traces({ cursor: 'x' })).rejects.toThrow('Expected `cursor` to be the `next` value');
    });
  });

  describe('a trace in a list', () => {
    const call = (tokens: number) => ({
      run_type: 'llm',
      ms: 10,
      outputs: { text: 'an answer', usage_metadata: { input_tokens: tokens, output_tokens: 1 } },
    });

    test('is its root with what the whole comes to', async () => {
      await store.apply([
        run(1, { ms: 20_000, outputs: { usage_metadata: { total_tokens: 1_000 } } }),
        run(2, { parent: 1, ...call(5) }),
        run(3, { parent: 1, ...call(6), error: 'Error: x' }),
        run(4, { parent: 1 }),
      ]);
      const { items } = await store.traces({});
      expect(items).toMatchObject([{ id: id(1), name: 'run 1', status: 'success' }]);
      expect(items[0]?.trace).toEqual({
        runs: 4,
        pending: 1,
        errors: 1,
        end_time: '2026-11-20T07:00:21.000000Z',
        usage: { input_tokens: 11, output_tokens: 2, total_tokens: 13 },
      });
    });

    const agent = (tokens: number) => ({ ms: 10, outputs: { usage_metadata: { total_tokens: tokens } } });
    const model = (tokens: number) => ({ run_type: 'llm', ...agent(tokens) });
    /** Creates a run of simple ingestion, which is attached to its parent once the parent arrives. */
    const below = (parent: number, index: number, given: RunFields & { ms?: number } = {}): RunOperation => {
      const { dotted_order, trace_id, ...fields } = run(index, { ...given, parent_run_id: id(parent) }).fields;
      return { ...run(index), fields };
    };
    const asPatch = (operation: RunOperation): RunOperation => ({ ...operation, kind: 'patch' });

    // Expected sums: models and embeddings always count, other runs only if no nested run has usage.
    test.each<[string, RunOperation[][], number]>([
      ['a chain that repeats its model', [[run(1, agent(5)), below(1, 2, model(5))]], 5],
      ['a chain before its model', [[run(1, agent(5))], [below(1, 2, model(6))]], 6],
      ['a chain after its model', [[below(1, 2, model(6))], [run(1, agent(5))]], 6],
      ['an agent without a model', [[run(1), below(1, 2, agent(7))], [below(2, 3)]], 7],
      ['an agent within an agent', [[run(1, agent(9)), below(1, 2, agent(7))]], 7],
      [
        'agents beside each other',
        [
          [run(1, agent(9)), below(1, 2, agent(7))],
          [below(1, 3), below(3, 4, model(2))],
        ],
        9,
      ],
      ['a model within a model', [[run(1, model(3)), below(1, 2, model(4))]], 7],
      ['a model that ends later', [[run(1, agent(5)), below(1, 2)], [asPatch(below(1, 2, model(6)))]], 6],
      ['a model whose parent comes later', [[run(1, agent(5)), below(2, 3, model(6))], [below(1, 2)]], 6],
      [
        'a run that is a model after all',
        [[run(1, agent(5)), below(1, 2, agent(6))], [asPatch(below(1, 2, model(6)))]],
        6,
      ],
      [
        'a model that moves to another agent',
        [[run(1, agent(5)), below(1, 2, agent(3)), below(2, 3, model(6))], [asPatch(below(1, 3, model(6)))]],
        9,
      ],
    ])('and the statistics count the usage of %s once', async (_, requests, tokens) => {
      for (const request of requests) await store.apply(request);
      const { items } = await store.traces({ tokensMin: 1 });
      expect(items.map(({ trace }) => trace.usage?.total_tokens)).toEqual([tokens]);
      expect((await store.statistics({})).total.usage?.total_tokens).toBe(tokens);
    });

    test('is the first of its runs while the root has not come', async () => {
      await store.apply([run(3, { parent: 1 }), run(2, { parent: 1 })]);
      expect((await store.traces({})).items).toMatchObject([{ id: id(2), trace_id: id(1), trace: { runs: 2 } }]);
      await store.apply([run(1)]);
      expect((await store.traces({})).items).toMatchObject([{ id: id(1), trace: { runs: 3 } }]);
    });

    test('is found by its root, by its tokens and by what any of its runs says', async () => {
      await store.apply([run(1, { ms: 10 }), run(2, { parent: 1, ...call(5) }), run(3, call(2))]);
      expect(await tracesOf({})).toEqual([3, 1]);
      expect(await tracesOf({ runType: 'llm' })).toEqual([3]);
      expect(await tracesOf({ tokensMin: 6 })).toEqual([1]);
      expect(await tracesOf({ sort: 'tokens' })).toEqual([1, 3]);
      expect(await tracesOf({ text: 'answer run', status: 'success' })).toEqual([3, 1]);
      expect(await tracesOf({ text: 'answer', name: 'run 1' })).toEqual([1]);
      expect(await tracesOf({ limit: 1 })).toEqual([3]);
    });

    test('tells what is said of its runs', async () => {
      await store.apply([run(1), run(2, { parent: 1 })]);
      await store.addFeedback(feedback(1));
      await store.addFeedback(feedback(2, { id: id(901), score: 0 }));
      await store.addFeedback(
        feedback(2, { id: id(902), key: 'comment', score: undefined as never, comment: 'so so' }),
      );
      expect((await store.traces({})).items[0]?.trace.feedback).toEqual([
        { key: 'comment', count: 1 },
        { key: 'liked', count: 2, average_score: 0.5 },
      ]);
    });
  });

  test('projects have their traces and the start of the latest', async () => {
    const nameless = { ...run(6), fields: { ...run(6).fields } };
    delete nameless.fields.session_name;
    const byId = { ...run(7, { session_id: id(70) }), fields: { ...run(7, { session_id: id(70) }).fields } };
    delete byId.fields.session_name;
    await store.apply([run(1), run(2, { parent: 1 }), run(3), run(4, { session_name: 'another' }), nameless, byId]);
    expect(await store.projects()).toEqual([
      { name: id(70), traces: 1, last_start_time: second(7) },
      { name: 'another', traces: 1, last_start_time: second(4) },
      { name: 'default', traces: 1, last_start_time: second(6) },
      { name: 'shop', traces: 2, last_start_time: second(3) },
    ]);
    expect(await listOf({ project: 'default' })).toEqual([6]);
    expect(await listOf({ project: id(70) })).toEqual([7]);
  });

  describe('one trace', () => {
    test('is outlined parents first, without payloads', async () => {
      await store.apply([run(3, { parent: 1, ms: 5, inputs: { a: 'x' } }), run(1), run(2, { parent: 1 })]);
      expect(await store.outline(id(1))).toEqual([
        { id: id(1), name: 'run 1', run_type: 'chain', status: 'pending', start_time: second(1) },
        {
          id: id(2),
          parent_run_id: id(1),
          name: 'run 2',
          run_type: 'chain',
          status: 'pending',
          start_time: second(2),
        },
        {
          id: id(3),
          parent_run_id: id(1),
          name: 'run 3',
          run_type: 'chain',
          status: 'success',
          start_time: second(3),
          end_time: '2026-11-20T07:00:03.005000Z',
        },
      ]);
      expect(await store.outline(id(9))).toEqual([]);
    });

    test('gives the details of a run and its payloads one by one', async () => {
      const attachment = { name: 'a.png', mimeType: 'image/png', bytes: Uint8Array.of(1, 2, 3) };
      const error = 'Error: no\n  at here';
      const extra = { metadata: { user: 'ada' }, runtime: { sdk: 'x' } };
      await store.apply([{ ...run(1, { inputs: { a: 'ä' }, error, extra }), attachments: [attachment] }]);
      await store.addFeedback(feedback(1));
      expect(await store.details(id(1))).toMatchObject({
        id: id(1),
        dotted_order: `20261120T070001000000Z${id(1)}`,
        error,
        extra,
        payload_sizes: { inputs: 10 },
        attachments: [{ name: 'a.png', mime_type: 'image/png', size: 3 }],
        feedback: [feedback(1)],
      });
      expect(await store.payload(id(1), 'inputs')).toBe('{"a":"ä"}');
      expect(await store.payload(id(1), 'outputs')).toBeUndefined();
      expect(await store.payload(id(2), 'inputs')).toBeUndefined();
      expect(await store.details(id(2))).toBeUndefined();
      expect(await store.attachment(id(1), 'a.png')).toEqual(attachment);
    });
  });

  describe('statistics', () => {
    test('of nothing are nothing', async () => {
      expect(await store.statistics({})).toEqual({
        total: { runs: 0, pending: 0, errors: 0 },
        groups: [],
        buckets: [],
      });
    });

    test('count runs, errors, tokens and cost, and rank latencies', async () => {
      const usage_metadata = { input_tokens: 1, output_tokens: 2, total_cost: 0.25 };
      const runs = Array.from({ length: 10 }, (_, at) =>
        run(at + 1, { name: 'a', ms: (at + 1) * 10, outputs: { usage_metadata } }),
      );
      await store.apply([...runs, run(11, { name: 'b', error: 'Error: x', ms: 5 }), run(12, { name: 'b' })]);
      const { total, groups } = await store.statistics({});
      expect(total).toEqual({
        runs: 12,
        pending: 1,
        errors: 1,
        // Of 5, 10, 20, … 100: the 6th, 10th, 11th, 11th and 11th of 11.
        latency_ms: { p50: 50, p90: 90, p95: 100, p99: 100, max: 100 },
        usage: { input_tokens: 10, output_tokens: 20, total_tokens: 30, total_cost: 2.5 },
      });
      expect(groups).toEqual([
        {
          group: 'a',
          runs: 10,
          pending: 0,
          errors: 0,
          latency_ms: { p50: 50, p90: 90, p95: 100, p99: 100, max: 100 },
          usage: { input_tokens: 10, output_tokens: 20, total_tokens: 30, total_cost: 2.5 },
        },
        { group: 'b', runs: 2, pending: 1, errors: 1, latency_ms: { p50: 5, p90: 5, p95: 5, p99: 5, max: 5 } },
      ]);
    });

    test('are grouped as asked, by those with most runs, runs without the value left out', async () => {
      const model = (name: string) => ({ extra: { metadata: { ls_model_name: name } } });
      await store.apply([run(1, model('x')), run(2, model('y')), run(3, model('y')), run(4, { session_name: 'b' })]);
      const groupsOf = async (query: Parameters<Store['statistics']>[0]) =>
        (await store.statistics(query)).groups.map(({ group, runs }) => [group, runs]);
      expect(await groupsOf({ groupBy: 'model' })).toEqual([
        ['y', 2],
        ['x', 1],
      ]);
      expect(await groupsOf({ groupBy: 'model', groups: 1 })).toEqual([['y', 2]]);
      expect(await groupsOf({ groupBy: 'project' })).toEqual([
        ['shop', 3],
        ['b', 1],
      ]);
      expect(await groupsOf({ groupBy: 'status' })).toEqual([['pending', 4]]);
      expect(await groupsOf({ groupBy: 'run_type', project: 'b' })).toEqual([['chain', 1]]);
    });

    test('are cut into pieces of time from the first start to the last', async () => {
      await store.apply([run(10), run(11), run(14), run(20)]);
      const { from, to, buckets } = await store.statistics({ buckets: 5 });
      expect([from, to]).toEqual([second(10), second(20)]);
      expect(buckets.map(({ start_time, runs }) => [start_time, runs])).toEqual([
        [second(10), 2],
        [second(12), 0],
        [second(14), 1],
        [second(16), 0],
        [second(18), 1],
      ]);
    });

    test('or over the time that is asked for', async () => {
      await store.apply([run(10), run(11), run(20)]);
      const { from, to, buckets } = await store.statistics({
        startedFrom: second(8),
        startedBefore: second(12),
        buckets: 2,
      });
      expect([from, to]).toEqual([second(8), second(12)]);
      expect(buckets.map(({ start_time, runs }) => [start_time, runs])).toEqual([
        [second(8), 0],
        [second(10), 2],
      ]);
    });
  });

  describe('changes', () => {
    test('are counted, and tell which traces have changed since', async () => {
      const seqs: number[] = [];
      store.subscribe(({ seq }) => seqs.push(seq));
      const { seq: before } = await store.changes(0, 10);
      await store.apply([run(1)]);
      await store.apply([run(2), run(3)]);
      await store.addFeedback(feedback(1));
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
      expect(new Set(seqs).size).toBe(3);
      expect(seqs[0]).toBeGreaterThan(before);
      const idsAfter = async (seq = 0) => (await store.changes(seq, 10)).traceIds.map(numberOf).sort();
      expect(await idsAfter(before)).toEqual([1, 2, 3]);
      expect(await idsAfter(seqs[0])).toEqual([1, 2, 3]);
      expect(await idsAfter(seqs[1])).toEqual([1]);
      expect(await store.changes(seqs[2] ?? 0, 10)).toEqual({ seq: seqs[2], traceIds: [] });
    });

    test('come in pieces, of which none is passed over', async () => {
      const { seq: before } = await store.changes(0, 10);
      for (const index of [1, 2, 3, 4, 5]) await store.apply([run(index)]);
      const found: number[] = [];
      for (let seq = before; ; ) {
        const change = await store.changes(seq, 2);
        if (change.traceIds.length === 0) break;
        expect(change.traceIds.length).toBeLessThanOrEqual(2);
        found.push(...change.traceIds.map(numberOf));
        seq = change.seq;
      }
      expect(found).toEqual([1, 2, 3, 4, 5]);
    });
  });

  describe('feedback', () => {
    test('is kept with its run, in the order in which it was given', async () => {
      await store.apply([run(1), run(2, { parent: 1 })]);
      const [first, later] = [feedback(2), feedback(1, { id: id(901), created_at: second(5), comment: 'good' })];
      expect(await store.addFeedback(later)).toBe(true);
      expect(await store.addFeedback(first)).toBe(true);
      expect(await store.feedback(id(1))).toEqual([first, later]);
      expect((await store.details(id(2)))?.feedback).toEqual([first]);
    });

    test('that is given again takes the place of the earlier, and keeps when that was given', async () => {
      await store.apply([run(1)]);
      await store.addFeedback(feedback(1, { comment: 'good' }));
      await store.addFeedback(feedback(1, { score: 0, created_at: second(9), modified_at: second(9) }));
      expect(await store.feedback(id(1))).toEqual([feedback(1, { score: 0, modified_at: second(9) })]);
    });

    test('of an unknown run is not kept', async () => {
      expect(await store.addFeedback(feedback(1))).toBe(false);
      await store.apply([run(1)]);
      expect(await store.feedback(id(1))).toEqual([]);
    });

    test('has tokens, which may be there before their run', async () => {
      const token = (index: number, runIndex: number) => ({
        id: id(index),
        run_id: id(runIndex),
        feedback_key: 'liked',
        feedback_id: id(index + 100),
        expires_at: second(59),
      });
      await store.addTokens([token(500, 1), token(501, 2)]);
      await store.addTokens([token(502, 1)]);
      expect(await store.token(id(501))).toEqual(token(501, 2));
      expect(await store.token(id(1))).toBeUndefined();
      expect(await store.tokens(id(1))).toEqual([token(500, 1), token(502, 1)]);
    });
  });
}
