import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentServer, type AgentServerOptions } from '#src/clients.ts';
import { traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { serve } from '../http/server.ts';

const KEY = 'lsv2_agent_key_1';

/** A server with the same response to every request, and its client. */
async function connect(response = '{}', options: Partial<AgentServerOptions> = {}) {
  const served = await serve(({ headers }, answer) => {
    if (headers.accept === 'text/event-stream') answer.setHeader('content-type', 'text/event-stream');
    answer.end(response);
  });
  const server = new AgentServer({ url: served.url, apiKey: ` ${KEY} `, ...options });
  onTestFinished(() => server.close());
  return { ...served, server };
}

const PAGE = { limit: 10, offset: 0 };
const CRON = { schedule: '0 9 * * 1', assistant_id: 'agent' };
const MESSAGE = { messageId: 'm', parts: [{ kind: 'text', text: 'weather?' }] };
const RPC = { jsonrpc: '2.0', id: 1 };
const rpc = (method: string, message: object) => ({ ...RPC, method, params: { message } });

type Row = [call: string, args: readonly unknown[], request: string, body?: unknown];

const RUNS = '/threads/t/runs';
const SENT = { kind: 'message', role: 'user', ...MESSAGE };
const STREAMED = rpc('message/stream', { ...SENT, role: 'agent' });
const JOIN = `GET ${RUNS}/r/stream?cancel_on_disconnect=false&stream_mode=values&stream_mode=debug`;

/** Calls whose requests a real agent server answers (`test/peers/agent-server.test.ts`). */
const ANSWERED = `
  assistants: create get update search count schemas versions setLatest; threads: create get update delete count copy
  updateState; runs: create wait stream get delete; statelessRuns: create wait stream joinStream batch; store: put delete
  search namespaces; system: info`;
const answered = ANSWERED.split(';').flatMap((group) => {
  const [name = '', ...calls] = group.trim().split(/:?\s+/);
  return calls.map((call) => `${name}.${call}`);
});

/**
 * The other calls of the client, and calls with a query, which a server would ignore, with their requests by the
 * reference of the agent server. Without a body here, a request with a body sends the first object of the arguments,
 * and a search also the page.
 */
const rows: readonly Row[] = [
  ['assistants.delete', ['agent', { deleteThreads: true }], 'DELETE /assistants/agent?delete_threads=true'],
  ['assistants.graph', ['agent', { xray: true }], 'GET /assistants/agent/graph?xray=true'],
  ['assistants.subgraphs', ['agent', { recurse: true }], 'GET /assistants/agent/subgraphs?recurse=true'],
  ['threads.search', [{ status: 'idle', limit: 5 }], 'POST /threads/search'],
  ['threads.prune', [{ thread_ids: ['t'], strategy: 'delete' }], 'POST /threads/prune'],
  ['threads.state', ['t', { subgraphs: true }], 'GET /threads/t/state?subgraphs=true'],
  ['threads.history', ['t', { limit: 1, before: 'c' }], 'GET /threads/t/history?limit=1&before=c'],
  ['threads.joinStream', ['t', { streamModes: ['run_modes'] }], 'GET /threads/t/stream?stream_modes=run_modes'],
  ['runs.list', ['t', { status: 'success' }], `GET ${RUNS}?status=success&limit=10&offset=0`],
  ['runs.join', ['t', 'r', { cancelOnDisconnect: true }], `GET ${RUNS}/r/join?cancel_on_disconnect=true`],
  ['runs.joinStream', ['t', 'r', { streamMode: ['values', 'debug'], cancelOnDisconnect: false }], JOIN],
  ['runs.cancel', ['t', 'r', { wait: true, action: 'rollback' }], `POST ${RUNS}/r/cancel?action=rollback&wait=1`, ''],
  ['statelessRuns.cancel', [{ status: 'all' }, { action: 'rollback' }], 'POST /runs/cancel?action=rollback'],
  ['crons.create', [{ ...CRON, timezone: 'Europe/Berlin' }], 'POST /runs/crons'],
  ['crons.createForThread', ['t', CRON], `POST ${RUNS}/crons`],
  ['crons.search', [{ enabled: true }], 'POST /runs/crons/search'],
  ['crons.count', [{ enabled: true }], 'POST /runs/crons/count'],
  ['crons.update', ['c', { enabled: false }], 'PATCH /runs/crons/c'],
  ['crons.delete', ['c'], 'DELETE /runs/crons/c'],
  ['store.get', [['a', 'b'], 'k'], 'GET /store/items?namespace=a.b&key=k'],
  ['system.ok', [{ checkDb: true }], 'GET /ok?check_db=1'],
  ['system.metrics', [], 'GET /metrics?format=prometheus'],
  ['system.metrics', [{ format: 'json' }], 'GET /metrics?format=json'],
  ['a2a.send', ['agent', { message: MESSAGE }], 'POST /a2a/agent', rpc('message/send', SENT)],
  ['a2a.stream', ['agent', { message: { ...MESSAGE, role: 'agent' } }], 'POST /a2a/agent', STREAMED],
  ['a2a.card', ['a b'], 'GET /.well-known/agent-card.json?assistant_id=a b'],
  ['docs', [], 'GET /docs'],
];

function sentBody([call, args, request, body]: Row): unknown {
  if (body !== undefined || /^(?:GET|DELETE)/.test(request)) return body === '' ? undefined : body;
  const given = args.find((argument) => typeof argument === 'object');
  return call.endsWith('search') ? { ...PAGE, ...(given as object) } : given;
}

type Calls = Readonly<Record<string, Readonly<Record<string, (...args: readonly unknown[]) => PromiseLike<unknown>>>>>;

function responseTo(call: string): string {
  if (call.endsWith('count')) return '1';
  return /(search|history|list)$/.test(call) ? '[]' : '{}';
}

describe('AgentServer', () => {
  it('has a tested request for each of its calls', () => {
    const groups = Object.entries(new AgentServer({ url: 'http://127.0.0.1' }));
    const calls = groups.flatMap(([name, group]) => Object.keys(group).map((method) => `${name}.${method}`));

    expect(calls.length).toBeGreaterThan(45);
    expect(new Set([...answered, ...rows.map(([call]) => call)])).toEqual(new Set([...calls, 'docs']));
  });

  it.each(rows)('%s%j sends %s', async (...row) => {
    const [call, args, request] = row;
    const { server, seen } = await connect(responseTo(call));
    const [group = '', method] = call.split('.');

    await (method === undefined ? server.docs() : (server as unknown as Calls)[group]?.[method]?.(...args));

    expect(seen).toHaveLength(1);
    expect(`${seen[0]?.method} ${decodeURI(seen[0]?.url ?? '')}`).toBe(request);
    expect(seen[0]?.headers['x-api-key']).toBe(KEY);
    expect(seen[0]?.body ? JSON.parse(seen[0].body) : undefined).toEqual(sentBody(row));
  });

  it('has the URL of the docs, and is ready only if the server says so', async () => {
    const { server } = await connect('{"ok":"yes"}');
    expect([server.docsUrl, await server.system.ok()]).toEqual([`${server.url}/docs`, false]);
  });

  it('returns the result of an A2A message, or throws its error', async () => {
    const result = { kind: 'task', contextId: 'c' };
    const { server } = await connect(JSON.stringify({ ...RPC, result, error: null }));
    expect(await server.a2a.send('agent', { message: MESSAGE })).toEqual(result);
    const error = { code: -32602, message: 'No such assistant' };
    const failing = (await connect(JSON.stringify({ ...RPC, error }))).server;
    await expect(failing.a2a.send('none', { message: MESSAGE })).rejects.toMatchObject({
      code: 'RUNSPAN_RUN_FAILED',
      detail: 'No such assistant',
    });
    await expect(failing.a2a.send('agent', { message: { parts: [] } })).rejects.toMatchObject({
      errors: [{ loc: ['body', 'message', 'parts'], msg: 'Expected a non-empty list' }],
    });
  });

  it('streams the results of an A2A message until its error or its close', async () => {
    const event = (name: string, reply: object) => `event: ${name}\ndata: ${JSON.stringify(reply)}\n\n`;
    const results = ['status-update', 'task'].map((kind) => event('message', { ...RPC, result: { kind } }));
    const { server } = await connect(results.join('') + event('error', { ...RPC, error: { message: 'no' } }));
    const kinds: string[] = [];
    const reading = (async () => {
      for await (const { kind } of await server.a2a.stream('agent', { message: MESSAGE })) kinds.push(kind);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'RUNSPAN_RUN_FAILED', detail: 'no' });
    expect(kinds).toEqual(['status-update', 'task']);
    await using unread = await server.a2a.stream('agent', { message: MESSAGE });
    await unread.close();
    for await (const _ of unread) expect.unreachable();
    for await (const { kind } of await server.a2a.stream('agent', { message: MESSAGE })) if (kind === 'task') break;
  });

  it('creates an MCP transport, which sends the key and the current run to the deployment alone', async () => {
    const { url, seen, server } = await connect('', { headers: { tenant: 't' } });
    const other = await serve((_, response) => response.end());
    class Transport {
      readonly url: URL;
      readonly fetch: typeof fetch;

      constructor(url: URL, options: { fetch: typeof fetch }) {
        this.url = url;
        this.fetch = options.fetch;
      }
    }
    const transport = server.mcp(Transport);
    const recorder = recordRuns();

    await traceable(async () => {
      await transport.fetch(transport.url, { method: 'POST', headers: { accept: 'a' }, body: '{}' });
      await transport.fetch(new Request(other.url));
    })();
    await transport.fetch(transport.url, { method: 'POST' });
    recorder.stop();

    expect(transport.url.href).toBe(`${url}/mcp/`);
    const [{ headers: inRun } = { headers: {} }, outside] = seen;
    const order = recorder.runs[0]?.dotted_order;
    expect(inRun).toMatchObject({ 'x-api-key': KEY, tenant: 't', accept: 'a', 'runspan-trace': order });
    expect(outside?.headers).toMatchObject({ 'x-api-key': KEY });
    expect(outside?.headers).not.toHaveProperty('runspan-trace');
    expect(other.seen[0]?.headers).not.toHaveProperty('x-api-key');
  });

  it('shows no key', () => {
    const server = new AgentServer({
      url: 'https://agents.example',
      apiKey: KEY,
      headers: { authorization: 'Bearer top' },
    });

    expect(inspect(server, { depth: 9, showHidden: true })).toBe("AgentServer { url: 'https://agents.example' }");
    expect(JSON.stringify(server)).not.toMatch(/lsv2|top/);
    expect(inspect(server.threads, { depth: 9 })).not.toMatch(/lsv2|top/);
  });

  it.each([
    [{}, 'url'],
    [{ url: 'https://host', idleTimeoutMs: 0 }, 'idleTimeoutMs'],
    [{ url: 'https://host', propagate: 'no' }, 'propagate'],
    [{ url: 'https://host', baseUrl: 'https://host' }, 'baseUrl'],
  ])('refuses the options %j', (options, named) => {
    expect(() => new AgentServer(options as unknown as AgentServerOptions)).toThrow(named);
  });

  it('reports every invalid field of a body and sends nothing', async () => {
    const { seen, server } = await connect();
    const run = { input: 1, streamMode: 'values' };

    const error = await server.runs.create('t', run as never).catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({
      code: 'RUNSPAN_INVALID_REQUEST',
      errors: [
        { loc: ['body', 'assistant_id'], msg: 'Field required', type: 'missing' },
        { loc: ['body', 'streamMode'], msg: 'Expected the name stream_mode', type: 'value_error' },
      ],
    });
    expect(seen).toEqual([]);
  });

  it.each<[unknown, path: (string | number)[], msg: string]>([
    ['user_liked', [], 'Expected a list'],
    [{ user_liked: true }, [], 'Expected a list'],
    [['user_liked', ''], [1], 'Expected a non-empty string'],
    [[7], [0], 'Expected a non-empty string'],
    [[null], [0], 'Expected a non-empty string'],
  ])('refuses the feedback keys %j before sending', async (feedback_keys, path, msg) => {
    const { seen, server } = await connect();
    const run = { assistant_id: 'agent', feedback_keys } as never;
    const errors = [{ loc: ['body', 'feedback_keys', ...path], msg, type: 'value_error' }];

    const calls = [server.runs.stream('t', run), server.statelessRuns.stream(run), server.runs.wait('t', run)];

    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST', errors });
    expect(seen).toEqual([]);
  });

  it.each([[[]], [['user_liked']], [null], [undefined]])('sends the feedback keys %j', async (feedback_keys) => {
    const { seen, server } = await connect();

    await server.runs.create('t', { assistant_id: 'agent', feedback_keys } as never).catch(() => {});

    expect(JSON.parse(seen[0]?.body ?? '').feedback_keys).toEqual(feedback_keys);
  });

  it('names the invalid run of a batch and the invalid id of a path', async () => {
    const { server } = await connect();

    await expect(server.statelessRuns.batch([{ assistant_id: 'a' }, { assistant_id: '' }])).rejects.toMatchObject({
      errors: [{ loc: ['body', 1, 'assistant_id'], type: 'value_error' }],
    });
    await expect(server.statelessRuns.batch([])).rejects.toMatchObject({ errors: [{ loc: ['body'] }] });
    await expect(server.runs.get('', '')).rejects.toMatchObject({
      errors: [{ loc: ['path', 'thread_id'] }, { loc: ['path', 'run_id'] }],
    });
    await expect(server.store.get(['a.b'], 'k')).rejects.toMatchObject({ errors: [{ loc: ['body', 'namespace'] }] });
    await expect(server.threads.search({ limit: 1_001 })).rejects.toMatchObject({
      errors: [{ loc: ['body', 'limit'] }],
    });
    await expect(server.assistants.setLatest('a', 0)).rejects.toMatchObject({ errors: [{ loc: ['body', 'version'] }] });
  });

  it('sends unknown fields, for later servers', async () => {
    const { seen, server } = await connect();

    await server.threads.create({ later_field: 1 } as never).catch(() => {});

    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({ later_field: 1 });
  });

  it('encodes ids, so that no id leads to another path', async () => {
    const { seen, server } = await connect();

    for (const id of ['../assistants/agent', '...']) await server.threads.get(id);
    // Proxies decode encoded dots.
    for (const dots of ['.', '..'])
      await expect(server.threads.get(dots)).rejects.toMatchObject({
        code: 'RUNSPAN_INVALID_REQUEST',
        errors: [{ loc: ['path', 'thread_id'] }],
      });

    expect(seen.map(({ url }) => url)).toEqual(['/threads/..%2Fassistants%2Fagent', '/threads/...']);
  });

  it('sends the page of a list of runs in the query', async () => {
    const { url, seen } = await serve((_, response) => response.end(seen.length < 3 ? '[{},{}]' : '[{}]'));
    const runs = new AgentServer({ url }).runs.list('t', { limit: 2, status: 'success' });

    expect(await runs.toArray(10)).toHaveLength(5);
    expect(seen.map(({ url: path }) => path?.split('?')[1])).toEqual([
      'limit=2&status=success&offset=0',
      'limit=2&status=success&offset=2',
      'limit=2&status=success&offset=4',
    ]);
  });

  it('stops listing the history of a thread if the server ignores the cursor', async () => {
    const states = [{ checkpoint: { checkpoint_id: 'a' } }];
    const { seen, server } = await connect(JSON.stringify(states));

    expect(await server.threads.history('t', { limit: 1 }).toArray(10)).toHaveLength(2);
    expect(seen).toHaveLength(2);
  });

  it.each([
    ['sends the next offset', { 'x-pagination-next': '1', 'x-pagination-total': '2' } as Record<string, string>, 2],
    ['sends no header and a full page', {}, 2],
    ['sends the total and no next offset', { 'x-pagination-total': '1' }, 1],
    ['sends a larger total and no next offset', { 'x-pagination-total': '2' }, 2],
    ['sends headers that are not numbers', { 'x-pagination-next': 'soon', 'x-pagination-total': 'many' }, 2],
    ['repeats its offset', { 'x-pagination-next': '0' }, 1],
  ])('reads a list to its end if the service %s', async (_, headers, requests) => {
    const { url, seen } = await serve((_, response) => {
      for (const [name, value] of Object.entries(seen.length === 1 ? headers : {})) response.setHeader(name, value);
      response.end(seen.length === 1 ? '[{"thread_id":"1"}]' : '[]');
    });

    expect(await new AgentServer({ url }).threads.search({ limit: 1 }).toArray(10)).toHaveLength(1);
    expect(seen).toHaveLength(requests);
  });

  it.each(['{}', 'null', '"text"', ''])('rejects a response of another kind: %s', async (body) => {
    const { url } = await serve((_, response) => response.end(body));
    const server = new AgentServer({ url });
    const lists: readonly (() => PromiseLike<unknown>)[] = [
      () => server.threads.search(),
      () => server.threads.history('t'),
      () => server.store.search({ namespace_prefix: [] }),
      () => server.store.namespaces(),
      () => server.statelessRuns.batch([{ assistant_id: 'agent' }]),
      () => server.threads.count(),
    ];
    const objects: typeof lists = [
      () => server.system.ok(),
      () => server.threads.get('t'),
      () => server.runs.create('t', { assistant_id: 'agent' }),
    ];

    for (const call of body === '{}' ? lists : [...lists, ...objects]) {
      await expect(call()).rejects.toMatchObject({
        code: 'RUNSPAN_INVALID_RESPONSE',
        message: expect.stringMatching(/: 200, but the response (is not an? |has no )(list|number|object)$/),
      });
    }
  });

  it('keeps unknown fields and values of a response', async () => {
    const { url } = await serve((_, response) => response.end('{"thread_id":"1","status":"dreaming","later":[1]}'));

    expect(await new AgentServer({ url }).threads.get('1')).toEqual({ thread_id: '1', status: 'dreaming', later: [1] });
  });
});
