import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { AgentServer, type AgentServerOptions } from '#src/clients.ts';
import { traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';
import { serve } from '../http/server.ts';
import { agentEndpoints } from './agent-endpoints.ts';
import { FORBIDDEN_KEY, KEY, serveAgents } from './agent-server.ts';

async function connect(options: Partial<AgentServerOptions> = {}) {
  const strict = await serveAgents();
  return { strict, server: new AgentServer({ url: strict.url, apiKey: KEY, ...options }) };
}

/** The calls of a client, group by group, and the call of no group. */
function callsOf(server: AgentServer): string[] {
  const groups = Object.entries(server).filter(([, value]) => typeof value === 'object');
  return [...groups.flatMap(([name, group]) => Object.keys(group).map((method) => `${name}.${method}`)), 'docs'];
}

describe('AgentServer', () => {
  it('has a tested endpoint for each of its calls', () => {
    const calls = callsOf(new AgentServer({ url: 'http://127.0.0.1' }));

    expect(calls.length).toBeGreaterThan(45);
    expect(agentEndpoints.map(({ call }) => call).sort()).toEqual(calls.sort());
  });

  it.each(agentEndpoints)('$call sends $endpoints to a strict server', async ({ call, endpoints, holds }) => {
    const { strict, server } = await connect();

    await holds(server);

    expect(strict.endpoints).toEqual(expect.arrayContaining([...endpoints]));
    expect(
      strict.seen.every(({ headers }) => headers['x-api-key'] === KEY),
      call,
    ).toBe(true);
    await server.close();
  });

  it.each([
    [undefined, 'RUNSPAN_UNAUTHENTICATED', 'Missing or invalid authentication'],
    ['another_key', 'RUNSPAN_UNAUTHENTICATED', 'Missing or invalid authentication'],
    [FORBIDDEN_KEY, 'RUNSPAN_FORBIDDEN', 'This key is for another organization'],
  ])('rejects the key %s with the explanation of the service', async (apiKey, code, detail) => {
    const { server } = await connect(apiKey === undefined ? {} : { apiKey });
    const plain = new AgentServer({ url: server.url, ...(apiKey === undefined ? {} : { apiKey }) });

    const error = await plain.system.info().catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({ code, detail });
    if (apiKey !== undefined) expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey);
  });

  it('creates an MCP transport, which sends the key and the current run to the deployment alone', async () => {
    const { strict, server } = await connect({ headers: { tenant: 't' } });
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

    expect(transport.url.href).toBe(`${strict.url}/mcp/`);
    const [{ headers: inRun } = { headers: {} }, outside] = strict.seen;
    const order = recorder.runs[0]?.dotted_order;
    expect(inRun).toMatchObject({ 'x-api-key': KEY, tenant: 't', accept: 'a', 'runspan-trace': order });
    expect(outside?.headers).toMatchObject({ 'x-api-key': KEY });
    expect(outside?.headers).not.toHaveProperty('runspan-trace');
    expect(Object.keys(other.seen[0]?.headers ?? {})).not.toEqual(expect.arrayContaining(['x-api-key']));
    await server.close();
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
    [{ url: 'ftp://host' }, 'url'],
    [{ url: 'http://host', apiKey: 'k' }, 'https'],
    [{ url: 'https://host', idleTimeoutMs: 0 }, 'idleTimeoutMs'],
    [{ url: 'https://host', propagate: 'no' }, 'propagate'],
    [{ url: 'https://host', baseUrl: 'https://host' }, 'baseUrl'],
  ])('refuses the options %j', (options, named) => {
    expect(() => new AgentServer(options as unknown as AgentServerOptions)).toThrow(named);
  });

  it('reports every invalid field of a body and sends nothing', async () => {
    const { strict, server } = await connect();
    const run = { input: 1, streamMode: 'values' };

    const error = await server.runs.create('t', run as never).catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({
      code: 'RUNSPAN_INVALID_REQUEST',
      errors: [
        { loc: ['body', 'assistant_id'], msg: 'Field required', type: 'missing' },
        { loc: ['body', 'streamMode'], msg: 'Expected the name stream_mode', type: 'value_error' },
      ],
    });
    expect(strict.seen).toEqual([]);
  });

  it.each<[unknown, path: (string | number)[], msg: string]>([
    ['user_liked', [], 'Expected a list'],
    [{ user_liked: true }, [], 'Expected a list'],
    [['user_liked', ''], [1], 'Expected a non-empty string'],
    [[7], [0], 'Expected a non-empty string'],
    [[null], [0], 'Expected a non-empty string'],
  ])('refuses the feedback keys %j before sending', async (feedback_keys, path, msg) => {
    const { strict, server } = await connect();
    const run = { assistant_id: 'agent', feedback_keys } as never;
    const errors = [{ loc: ['body', 'feedback_keys', ...path], msg, type: 'value_error' }];

    const calls = [server.runs.stream('t', run), server.statelessRuns.stream(run), server.runs.wait('t', run)];

    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST', errors });
    expect(strict.seen).toEqual([]);
  });

  it.each([[[]], [['user_liked']], [null], [undefined]])('sends the feedback keys %j', async (feedback_keys) => {
    const { strict, server } = await connect();

    await server.runs.create('t', { assistant_id: 'agent', feedback_keys } as never).catch(() => {});

    expect(JSON.parse(strict.seen[0]?.body ?? '').feedback_keys).toEqual(feedback_keys);
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
    const { strict, server } = await connect();

    await server.threads.create({ later_field: 1 } as never).catch(() => {});

    expect(JSON.parse(strict.seen[0]?.body ?? '')).toEqual({ later_field: 1 });
  });

  it('encodes ids, so that no id leads to another path', async () => {
    const { strict, server } = await connect();

    await expect(server.threads.get('../assistants/agent')).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
    await expect(server.threads.get('...')).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
    // Proxies decode encoded dots.
    for (const dots of ['.', '..'])
      await expect(server.threads.get(dots)).rejects.toMatchObject({
        code: 'RUNSPAN_INVALID_REQUEST',
        errors: [{ loc: ['path', 'thread_id'] }],
      });

    expect(strict.seen.map(({ url }) => url)).toEqual(['/threads/..%2Fassistants%2Fagent', '/threads/...']);
  });

  it('sends the page of a list of runs in the query', async () => {
    const { strict, server } = await connect();
    const { thread_id } = await server.threads.create();
    for (let count = 0; count < 3; count++) await server.runs.create(thread_id, { assistant_id: 'agent' });

    expect(await server.runs.list(thread_id, { limit: 2, status: 'success' }).toArray(10)).toHaveLength(3);
    expect(strict.seen.slice(-2).map(({ url }) => url?.split('?')[1])).toEqual([
      'limit=2&status=success&offset=0',
      'limit=2&status=success&offset=2',
    ]);
  });

  it.each([
    ['sends the next offset', { 'x-pagination-next': '1', 'x-pagination-total': '2' } as Record<string, string>, 2],
    ['sends no header and a full page', {}, 2],
    ['sends the total and no next offset', { 'x-pagination-total': '1' }, 1],
    ['sends a larger total and no next offset', { 'x-pagination-total': '2' }, 2],
    ['sends headers that are not numbers', { 'x-pagination-next': 'soon', 'x-pagination-total': 'many' }, 2],
  ])('requests the next page if the service %s', async (_, headers, requests) => {
    const { url, seen } = await serve((_, response) => {
      for (const [name, value] of Object.entries(seen.length === 1 ? headers : {})) response.setHeader(name, value);
      response.end(seen.length === 1 ? '[{"thread_id":"1"}]' : '[]');
    });

    expect(await new AgentServer({ url }).threads.search({ limit: 1 }).toArray(10)).toHaveLength(1);
    expect(seen).toHaveLength(requests);
  });

  it('stops at a page that repeats its offset', async () => {
    const { url, seen } = await serve((_, response) =>
      response.setHeader('x-pagination-next', '0').end('[{"thread_id":"1"}]'),
    );

    expect(await new AgentServer({ url }).threads.search({ limit: 1 }).toArray(10)).toHaveLength(1);
    expect(seen).toHaveLength(1);
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
