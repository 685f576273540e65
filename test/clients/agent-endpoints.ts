import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { AgentServer } from '#src/clients/agent-server/agent-server.ts';

/** A method of the client, its endpoints, and expectations that hold with any server. */
export interface AgentEndpoint {
  /** Name of the call: `threads.create`. */
  readonly call: string;
  /** Endpoints in the reference's notation. The call's options decide between several. */
  readonly endpoints: readonly string[];
  /** Why the in-memory agent server cannot serve the call. The strict server serves all calls. */
  readonly missing?: string;
  readonly holds: (server: AgentServer) => Promise<void>;
}

const ASK = { assistant_id: 'agent', input: { messages: [{ type: 'human', content: 'weather?' }] } } as const;
const ANSWER = 'It is sunny in Kiel.';
const SCHEDULE = { schedule: '0 9 * * 1', assistant_id: 'agent' } as const;

const newThread = async (server: AgentServer): Promise<string> => (await server.threads.create()).thread_id;
const lastOf = (values: Record<string, unknown>): unknown =>
  (values.messages as { content: unknown }[]).at(-1)?.content;
const NO_CRONS = 'responds with 500 (not implemented), and with 400 to these fields';

const MISSING: Readonly<Record<string, string>> = Object.fromEntries([
  ...'threads.prune threads.joinStream statelessRuns.cancel crons.count crons.update system.metrics docs a2a.send a2a.stream a2a.card'
    .split(' ')
    .map((call) => [call, 'responds with 404']),
  ...'crons.create crons.createForThread crons.search crons.delete'.split(' ').map((call) => [call, NO_CRONS]),
]);

function row(call: string, endpoints: readonly string[], holds: AgentEndpoint['holds']): AgentEndpoint {
  const missing = MISSING[call];
  return { call, endpoints, holds, ...(missing !== undefined && { missing }) };
}

/** Every method of the client that calls an endpoint. */
export const agentEndpoints: readonly AgentEndpoint[] = [
  row('assistants.create', ['POST /assistants'], async ({ assistants }) => {
    const id = randomUUID();
    const wanted = { graph_id: 'agent', assistant_id: id, name: 'Skipper', metadata: { of: id } };
    expect(await assistants.create(wanted)).toMatchObject(wanted);
    await expect(assistants.create(wanted)).rejects.toMatchObject({ code: 'RUNSPAN_CONFLICT' });
    expect(await assistants.create({ ...wanted, if_exists: 'do_nothing' })).toMatchObject({ assistant_id: id });
  }),
  row('assistants.get', ['GET /assistants/{assistant_id}'], async ({ assistants }) => {
    expect(await assistants.get('agent')).toMatchObject({ graph_id: 'agent' });
    await expect(assistants.get(randomUUID())).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('assistants.update', ['PATCH /assistants/{assistant_id}'], async ({ assistants }) => {
    const { assistant_id } = await assistants.create({ graph_id: 'agent' });
    expect(await assistants.update(assistant_id, { name: 'Mate' })).toMatchObject({ name: 'Mate', version: 2 });
  }),
  row('assistants.delete', ['DELETE /assistants/{assistant_id}'], async ({ assistants }) => {
    const { assistant_id } = await assistants.create({ graph_id: 'agent' });
    await assistants.delete(assistant_id, { deleteThreads: true });
    await expect(assistants.get(assistant_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('assistants.search', ['POST /assistants/search'], async ({ assistants }) => {
    const of = randomUUID();
    for (let count = 0; count < 3; count++) await assistants.create({ graph_id: 'agent', metadata: { of } });
    const found = [];
    for await (const one of assistants.search({ metadata: { of }, limit: 2 })) found.push(one.assistant_id);
    expect(new Set(found).size).toBe(3);
  }),
  row('assistants.count', ['POST /assistants/count'], async ({ assistants }) => {
    const of = randomUUID();
    await assistants.create({ graph_id: 'agent', metadata: { of } });
    expect(await assistants.count({ metadata: { of } })).toBe(1);
  }),
  row('assistants.graph', ['GET /assistants/{assistant_id}/graph'], async ({ assistants }) => {
    const { nodes, edges } = await assistants.graph('agent', { xray: true });
    expect(nodes.map(({ id }) => id)).toContain('plan');
    expect(edges.map(({ source }) => source)).toContain('__start__');
  }),
  row('assistants.schemas', ['GET /assistants/{assistant_id}/schemas'], async ({ assistants }) =>
    expect(await assistants.schemas('agent')).toMatchObject({ graph_id: 'agent' }),
  ),
  row(
    'assistants.subgraphs',
    ['GET /assistants/{assistant_id}/subgraphs', 'GET /assistants/{assistant_id}/subgraphs/{namespace}'],
    async ({ assistants }) => {
      expect(Object.keys(await assistants.subgraphs('agent', { recurse: true }))).toEqual(['weather']);
      expect(Object.keys(await assistants.subgraphs('agent', { namespace: 'weather' }))).toEqual(['weather']);
    },
  ),
  row('assistants.versions', ['POST /assistants/{assistant_id}/versions'], async ({ assistants }) => {
    const { assistant_id } = await assistants.create({ graph_id: 'agent' });
    const [first] = await assistants.versions(assistant_id).toArray(10);
    expect(first).toMatchObject({ assistant_id, version: 1 });
  }),
  row('assistants.setLatest', ['POST /assistants/{assistant_id}/latest'], async ({ assistants }) => {
    const { assistant_id } = await assistants.create({ graph_id: 'agent' });
    await assistants.update(assistant_id, { name: 'Mate' });
    expect(await assistants.setLatest(assistant_id, 1)).toMatchObject({ version: 1 });
  }),
  row('threads.create', ['POST /threads'], async ({ threads }) => {
    const thread_id = randomUUID();
    expect(await threads.create({ thread_id, metadata: { a: 1 } })).toMatchObject({ thread_id, metadata: { a: 1 } });
    await expect(threads.create({ thread_id })).rejects.toMatchObject({ code: 'RUNSPAN_CONFLICT' });
    expect(await threads.create({ thread_id, if_exists: 'do_nothing' })).toMatchObject({ thread_id });
  }),
  row('threads.get', ['GET /threads/{thread_id}'], async (server) => {
    const thread_id = await newThread(server);
    expect(await server.threads.get(thread_id)).toMatchObject({ thread_id, status: 'idle' });
    await expect(server.threads.get(randomUUID())).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('threads.update', ['PATCH /threads/{thread_id}'], async (server) => {
    const thread_id = await newThread(server);
    await server.threads.update(thread_id, { metadata: { b: 2 } });
    expect(await server.threads.get(thread_id)).toMatchObject({ metadata: { b: 2 } });
  }),
  row('threads.delete', ['DELETE /threads/{thread_id}'], async (server) => {
    const thread_id = await newThread(server);
    await server.threads.delete(thread_id);
    await expect(server.threads.get(thread_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('threads.search', ['POST /threads/search'], async ({ threads }) => {
    const of = randomUUID();
    for (let count = 0; count < 3; count++) await threads.create({ metadata: { of } });
    const sizes = [];
    for await (const { items } of threads.search({ metadata: { of }, limit: 2 }).pages()) sizes.push(items.length);
    expect(sizes).toEqual([2, 1]);
  }),
  row('threads.count', ['POST /threads/count'], async ({ threads }) => {
    const of = randomUUID();
    await threads.create({ metadata: { of } });
    expect(await threads.count({ metadata: { of } })).toBe(1);
  }),
  row('threads.copy', ['POST /threads/{thread_id}/copy'], async (server) => {
    const thread_id = await newThread(server);
    expect((await server.threads.copy(thread_id)).thread_id).not.toBe(thread_id);
  }),
  row('threads.prune', ['POST /threads/prune'], async (server) => {
    const thread_ids = [await newThread(server)];
    expect(await server.threads.prune({ thread_ids, strategy: 'delete' })).toEqual({ pruned_count: 1 });
  }),
  row(
    'threads.state',
    [
      'GET /threads/{thread_id}/state',
      'GET /threads/{thread_id}/state/{checkpoint_id}',
      'POST /threads/{thread_id}/state/checkpoint',
    ],
    async (server) => {
      const id = await newThread(server);
      expect(await server.threads.state(id)).toMatchObject({ values: {}, next: [], checkpoint: null });
      await server.runs.wait(id, ASK);
      const state = await server.threads.state(id);
      expect(lastOf(state.values)).toBe(ANSWER);
      const checkpointId = String(state.checkpoint?.checkpoint_id);
      expect(await server.threads.state(id, { checkpointId })).toMatchObject({ values: state.values });
      const checkpoint = { checkpoint_id: checkpointId, checkpoint_ns: '' };
      expect(await server.threads.state(id, { checkpoint })).toMatchObject({ values: state.values });
    },
  ),
  row('threads.updateState', ['POST /threads/{thread_id}/state'], async (server) => {
    const id = await newThread(server);
    await server.runs.wait(id, ASK);
    const values = { messages: [{ type: 'human', content: 'and tomorrow?' }] };
    const { checkpoint } = await server.threads.updateState(id, { values, as_node: 'answer' });
    const state = await server.threads.state(id);
    expect(state.checkpoint?.checkpoint_id).toBe(checkpoint.checkpoint_id);
    expect(lastOf(state.values)).toBe('and tomorrow?');
  }),
  row('threads.history', ['GET /threads/{thread_id}/history', 'POST /threads/{thread_id}/history'], async (server) => {
    const id = await newThread(server);
    await server.runs.wait(id, ASK);
    const ids: unknown[] = [];
    for await (const { checkpoint } of server.threads.history(id, { limit: 1 })) ids.push(checkpoint?.checkpoint_id);
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(ids.length);
    const { items } = await server.threads.history(id, { limit: 1, metadata: {} });
    expect(items[0]?.checkpoint?.checkpoint_id).toBe(ids[0]);
  }),
  row('threads.joinStream', ['GET /threads/{thread_id}/stream'], async (server) => {
    const id = await newThread(server);
    await server.runs.create(id, ASK);
    const names = [];
    for await (const { event } of await server.threads.joinStream(id, { streamModes: 'run_modes' })) names.push(event);
    expect(names).toContain('values');
  }),
  row('runs.create', ['POST /threads/{thread_id}/runs'], async (server) => {
    const thread_id = await newThread(server);
    const run = await server.runs.create(thread_id, { ...ASK, multitask_strategy: 'enqueue' });
    expect(run).toMatchObject({ thread_id });
    await server.runs.join(thread_id, run.run_id);
  }),
  row('runs.wait', ['POST /threads/{thread_id}/runs/wait'], async (server) => {
    const id = await newThread(server);
    expect(lastOf(await server.runs.wait(id, ASK))).toBe(ANSWER);
    const input = { messages: [{ type: 'human', content: 'fail' }] };
    await expect(server.runs.wait(await newThread(server), { ...ASK, input })).rejects.toMatchObject({
      code: 'RUNSPAN_RUN_FAILED',
      error: 'RangeError',
      detail: 'no such city',
    });
  }),
  row('runs.stream', ['POST /threads/{thread_id}/runs/stream'], async (server) => {
    const id = await newThread(server);
    const stream = await server.runs.stream(id, { ...ASK, stream_mode: 'values', stream_subgraphs: true });
    expect(stream).toMatchObject({ threadId: id, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    const events = [];
    for await (const event of stream) events.push(event);
    expect(events[0]).toMatchObject({ event: 'metadata', data: { run_id: stream.runId } });
    expect(events.some(({ event, namespace: [first] }) => event === 'values' && first?.startsWith('weather:'))).toBe(
      true,
    );
    const last = events.findLast(({ event, namespace }) => event === 'values' && namespace.length === 0);
    expect(lastOf(last?.data as Record<string, unknown>)).toBe(ANSWER);
  }),
  row('runs.list', ['GET /threads/{thread_id}/runs'], async (server) => {
    const id = await newThread(server);
    for (let count = 0; count < 3; count++) await server.runs.wait(id, ASK);
    expect(await server.runs.list(id, { limit: 10 }).toArray(10)).toHaveLength(3);
  }),
  row('runs.get', ['GET /threads/{thread_id}/runs/{run_id}'], async (server) => {
    const id = await newThread(server);
    const { run_id } = await server.runs.create(id, ASK);
    expect(await server.runs.get(id, run_id)).toMatchObject({ run_id, thread_id: id });
    await server.runs.join(id, run_id);
  }),
  row('runs.delete', ['DELETE /threads/{thread_id}/runs/{run_id}'], async (server) => {
    const id = await newThread(server);
    const { run_id } = await server.runs.create(id, ASK);
    await server.runs.join(id, run_id);
    await server.runs.delete(id, run_id);
    await expect(server.runs.get(id, run_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('runs.join', ['GET /threads/{thread_id}/runs/{run_id}/join'], async (server) => {
    const id = await newThread(server);
    const { run_id } = await server.runs.create(id, ASK);
    expect(lastOf(await server.runs.join(id, run_id, { cancelOnDisconnect: false }))).toBe(ANSWER);
  }),
  row('runs.joinStream', ['GET /threads/{thread_id}/runs/{run_id}/stream'], async (server) => {
    const id = await newThread(server);
    const { run_id } = await server.runs.create(id, { ...ASK, stream_resumable: true });
    const ids = [];
    const all = await server.runs.joinStream(id, run_id, { lastEventId: '-1' });
    for await (const event of all) ids.push(event.id);
    expect(ids.slice(0, 3)).toEqual(['0', '1', '2']);
    const rest = [];
    for await (const event of await server.runs.joinStream(id, run_id, { lastEventId: '1' })) rest.push(event.id);
    expect(rest).toEqual(ids.slice(2));
  }),
  row('runs.cancel', ['POST /threads/{thread_id}/runs/{run_id}/cancel'], async (server) => {
    const id = await newThread(server);
    const input = { messages: [{ type: 'human', content: 'wait' }] };
    const { run_id } = await server.runs.create(id, { ...ASK, input });
    await server.runs.cancel(id, run_id, { wait: true, action: 'interrupt' });
    expect((await server.runs.get(id, run_id)).status).not.toBe('running');
  }),
  row('statelessRuns.create', ['POST /runs'], async (server) => {
    expect(await server.statelessRuns.create({ ...ASK, on_completion: 'keep' })).toMatchObject({
      run_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  }),
  row('statelessRuns.wait', ['POST /runs/wait'], async (server) =>
    expect(lastOf(await server.statelessRuns.wait(ASK))).toBe(ANSWER),
  ),
  row('statelessRuns.stream', ['POST /runs/stream'], async (server) => {
    const stream = await server.statelessRuns.stream(ASK);
    expect(stream).toMatchObject({ threadId: undefined, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    const events = [];
    for await (const event of stream) events.push(event);
    expect(lastOf(events.findLast(({ event }) => event === 'values')?.data as Record<string, unknown>)).toBe(ANSWER);
  }),
  row('statelessRuns.joinStream', ['GET /runs/{run_id}/stream'], async (server) => {
    const { run_id } = await server.statelessRuns.create({ ...ASK, stream_resumable: true, on_completion: 'keep' });
    const names = [];
    for await (const { event } of await server.statelessRuns.joinStream(run_id, { lastEventId: '-1' }))
      names.push(event);
    expect(names[0]).toBe('metadata');
  }),
  row('statelessRuns.batch', ['POST /runs/batch'], async (server) =>
    expect(await server.statelessRuns.batch([ASK, ASK])).toHaveLength(2),
  ),
  row('statelessRuns.cancel', ['POST /runs/cancel'], async (server) => {
    await server.statelessRuns.cancel({ status: 'all' }, { action: 'rollback' });
  }),
  row('crons.create', ['POST /runs/crons'], async ({ crons }) =>
    expect(await crons.create({ ...SCHEDULE, timezone: 'Europe/Berlin' })).toMatchObject({ schedule: '0 9 * * 1' }),
  ),
  row('crons.createForThread', ['POST /threads/{thread_id}/runs/crons'], async (server) => {
    const thread_id = await newThread(server);
    const cron = { ...SCHEDULE, multitask_strategy: 'enqueue' } as const;
    expect(await server.crons.createForThread(thread_id, cron)).toMatchObject({ thread_id });
  }),
  row('crons.search', ['POST /runs/crons/search'], async ({ crons }) => {
    const of = randomUUID();
    for (let count = 0; count < 3; count++) await crons.create({ ...SCHEDULE, metadata: { of } });
    expect(await crons.search({ metadata: { of }, limit: 2 }).toArray(10)).toHaveLength(3);
  }),
  row('crons.count', ['POST /runs/crons/count'], async ({ crons }) => {
    const of = randomUUID();
    await crons.create({ ...SCHEDULE, metadata: { of } });
    expect(await crons.count({ metadata: { of } })).toBe(1);
  }),
  row('crons.update', ['PATCH /runs/crons/{cron_id}'], async ({ crons }) => {
    const { cron_id } = await crons.create(SCHEDULE);
    expect(await crons.update(cron_id, { enabled: false })).toMatchObject({ cron_id, enabled: false });
  }),
  row('crons.delete', ['DELETE /runs/crons/{cron_id}'], async ({ crons }) => {
    const { cron_id } = await crons.create(SCHEDULE);
    await crons.delete(cron_id);
    await expect(crons.delete(cron_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  }),
  row('store.put', ['PUT /store/items'], async ({ store }) => {
    const namespace = ['put', randomUUID()];
    await store.put({ namespace, key: 'k', value: { a: 1 } });
    await store.put({ namespace, key: 'k', value: { a: 2 } });
    expect(await store.get(namespace, 'k')).toMatchObject({ namespace, key: 'k', value: { a: 2 } });
  }),
  row('store.get', ['GET /store/items'], async ({ store }) =>
    expect(await store.get(['get', randomUUID()], 'none')).toBeUndefined(),
  ),
  row('store.delete', ['DELETE /store/items'], async ({ store }) => {
    const namespace = ['delete', randomUUID()];
    await store.put({ namespace, key: 'k', value: {} });
    await store.delete(namespace, 'k');
    expect(await store.get(namespace, 'k')).toBeUndefined();
  }),
  row('store.search', ['POST /store/items/search'], async ({ store }) => {
    const namespace = ['search', randomUUID()];
    for (const key of ['a', 'b', 'c']) await store.put({ namespace, key, value: { key } });
    const found = await store.search({ namespace_prefix: namespace, limit: 2 }).toArray(10);
    expect(found.map(({ key }) => key).sort()).toEqual(['a', 'b', 'c']);
  }),
  row('store.namespaces', ['POST /store/namespaces'], async ({ store }) => {
    const namespace = ['namespaces', randomUUID()];
    await store.put({ namespace, key: 'k', value: {} });
    expect(await store.namespaces({ prefix: ['namespaces'] }).toArray(1_000)).toContainEqual(namespace);
  }),
  row('system.info', ['GET /info'], async ({ system }) =>
    expect(await system.info()).toMatchObject({ flags: { assistants: true } }),
  ),
  row('system.ok', ['GET /ok'], async ({ system }) => expect(await system.ok({ checkDb: true })).toBe(true)),
  row('system.metrics', ['GET /metrics'], async ({ system }) => {
    expect(await system.metrics()).toBe('runs 1\n');
    expect(await system.metrics({ format: 'json' })).toEqual({ runs: 1 });
  }),
  row('a2a.send', ['POST /a2a/{assistant_id}'], async ({ a2a }) => {
    const message = { parts: [{ kind: 'text', text: 'weather?' }], contextId: 'c' };
    expect(await a2a.send('agent', { message })).toMatchObject({ kind: 'task', contextId: 'c' });
    await expect(a2a.send('none', { message })).rejects.toMatchObject({
      code: 'RUNSPAN_RUN_FAILED',
      detail: 'No such assistant',
    });
    await expect(a2a.send('agent', { message: { parts: [] } })).rejects.toMatchObject({
      errors: [{ loc: ['body', 'message', 'parts'], msg: 'Expected a non-empty list' }],
    });
  }),
  row('a2a.stream', ['POST /a2a/{assistant_id}'], async ({ a2a }) => {
    const message = { parts: [{ kind: 'text', text: 'weather?' }] };
    const kinds: string[] = [];
    for await (const { kind } of await a2a.stream('agent', { message })) kinds.push(kind);
    expect(kinds).toEqual(['status-update', 'task']);
    const refused = await a2a.stream('none', { message });
    await expect(refused[Symbol.asyncIterator]().next()).rejects.toMatchObject({ detail: 'No such assistant' });
    await using unread = await a2a.stream('agent', { message });
    await unread.close();
    for await (const _ of unread) expect.unreachable();
  }),
  row('a2a.card', ['GET /.well-known/agent-card.json'], async ({ a2a }) =>
    expect(await a2a.card('a b')).toMatchObject({ name: 'a b' }),
  ),
  row('docs', ['GET /docs'], async (server) => {
    expect(server.docsUrl).toBe(`${server.url}/docs`);
    expect(await server.docs()).toContain('<title>Reference</title>');
  }),
];
