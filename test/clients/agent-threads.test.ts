import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentThreads, type AgentThreadsOptions } from '#src/clients/agent-server/protocol/agent-threads.ts';
import type { ThreadEvent } from '#src/clients/agent-server/protocol/thread-event.ts';
import type { ThreadEvents } from '#src/clients/agent-server/protocol/thread-events.ts';
import { agentServerPaths, type ThreadPaths } from '#src/clients/agent-server/protocol/thread-paths.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { serve } from '../http/server.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { serveThreads } from './thread-server.ts';

const KEY = 'lsv2_threads_key_1';

/** Returns a client that is closed when the test has finished. */
function clientOf(url: string, options: Partial<AgentThreadsOptions> = {}): AgentThreads {
  const threads = new AgentThreads({ url, ...options });
  onTestFinished(() => threads.close());
  return threads;
}

async function connect(options: Partial<AgentThreadsOptions> = {}) {
  const app = await serveThreads();
  return { app, threads: clientOf(app.url, { apiKey: KEY, ...options }) };
}

/** A server that always sends the same response. */
async function answering(status: number, text: string, type = 'application/json') {
  const served = await serve((_, response) => response.writeHead(status, { 'content-type': type }).end(text));
  return { ...served, threads: clientOf(served.url, { apiKey: KEY, maxRetries: 0 }) };
}

async function all(events: ThreadEvents | Promise<ThreadEvents>): Promise<ThreadEvent[]> {
  const found: ThreadEvent[] = [];
  for await (const event of await events) found.push(event);
  return found;
}

const kinds = (events: readonly ThreadEvent[]): string[] =>
  events.map(({ method, params: { data } }) => `${method} ${(data as { event?: string }).event ?? ''}`.trim());

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );

describe('AgentThreads', () => {
  it('creates a missing thread when its state is requested', async () => {
    const { app, threads } = await connect();

    expect(await threads.state('t-1')).toMatchObject({ values: { messages: [] }, next: [] });
    expect(await threads.state('t-1')).toMatchObject({ values: { messages: [] } });
    expect(app.seen.map(({ method, body }) => `${method} ${body}`)).toEqual([
      'GET ',
      'POST {"values":{"messages":[]}}',
      'GET ',
    ]);
    expect(await threads.state('t-2', { bootstrap: { notes: [] } })).toMatchObject({ values: { notes: [] } });
    expect(await failure(threads.state('t-3', { bootstrap: false }))).toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  });

  it('creates the thread of an agent server before its state', async () => {
    const app = await serveThreads({ makesThreads: true });
    const threads = clientOf(app.url, { paths: agentServerPaths });

    expect(await threads.state('t-1')).toMatchObject({ values: {} });
    expect(await threads.updateState('t-1', { values: { a: 1 } })).toEqual({
      checkpoint: expect.objectContaining({ checkpoint_id: 'c-1' }),
    });
    expect(app.bodies('/threads')).toEqual([{ thread_id: 't-1', if_exists: 'do_nothing' }]);
  });

  it('requests the state again if the server responds with the checkpoint only', async () => {
    let asked = 0;
    const { url } = await serve((request, response) => {
      const status = request.method === 'GET' && ++asked === 1 ? 404 : 200;
      const body = request.method === 'POST' ? { checkpoint: { checkpoint_id: 'c' } } : { values: { at: 2 } };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    const threads = clientOf(url);

    expect(await threads.state('t-1')).toEqual({ values: { at: 2 } });
  });

  it('starts runs, responds to interrupts and cancels runs', async () => {
    const { app, threads } = await connect();

    const run = { input: 'wait', config: { tags: ['a'], configurable: { user: 'u' } }, checkpoint_id: 'c-1' };
    const started = await threads.start('t-1', { ...run, multitask_strategy: 'reject', metadata: { a: 1 } });
    expect(started).toEqual({ run_id: 'r-1', applied_through_seq: 0 });
    await threads.cancel('t-1', started.run_id);
    await threads.start('t-1', { input: 'ask', assistant_id: 'agent' });
    await threads.respond('t-1', { interrupt_id: 'i-1', response: true, update: { a: 1 }, goto: ['plan'] });
    await threads.start('t-1', { input: 'ask' });
    const answers = [
      { interrupt_id: 'i-1', response: 1 },
      { interrupt_id: 'i-2', response: null, namespace: ['a'] },
    ];
    expect(await threads.respond('t-1', { responses: answers })).toEqual({ applied_through_seq: 15 });

    const config = { tags: ['a'], configurable: { user: 'u', checkpoint_id: 'c-1' } };
    const params = { assistant_id: '_', input: 'wait', metadata: { a: 1 }, config, multitaskStrategy: 'reject' };
    expect(app.bodies('/threads/t-1/commands')).toEqual([
      { id: 1, method: 'run.start', params },
      { id: 2, method: 'run.start', params: { assistant_id: 'agent', input: 'ask' } },
      {
        id: 3,
        method: 'input.respond',
        params: { namespace: [], interrupt_id: 'i-1', response: true, update: { a: 1 }, goto: ['plan'] },
      },
      { id: 4, method: 'run.start', params: { assistant_id: '_', input: 'ask' } },
      {
        id: 5,
        method: 'input.respond',
        params: { responses: [{ namespace: [], ...answers[0] }, answers[1]] },
      },
    ]);
    expect(app.seen.every(({ headers }) => headers['x-api-key'] === KEY)).toBe(true);
  });

  it('lists threads, pages through the history and deletes threads', async () => {
    const { app, threads } = await connect();
    for (let step = 0; step < 5; step++) await threads.updateState('t-1', { values: { step }, as_node: 'plan' });

    expect(await threads.list()).toEqual([{ id: 't-1', title: 'New conversation', updatedAt: null, pinned: false }]);
    const history = threads.history<{ step: number }>('t-1', { limit: 2 });
    expect((await history).items.map(({ values }) => values.step)).toEqual([4, 3]);
    expect(
      (await threads.history<{ step: number }>('t-1', { limit: 2 }).toArray(9)).map(({ values }) => values.step),
    ).toEqual([4, 3, 2, 1, 0]);
    expect(app.bodies('/threads/t-1/history').slice(1)).toEqual([
      { limit: 2 },
      { limit: 2, before: 'c-3' },
      { limit: 2, before: 'c-1' },
    ]);
    const five = threads.history('t-1', { limit: 5, before: 'c-4', metadata: { a: 1 } });
    expect([(await five).items.length, (await five).hasNext]).toEqual([4, false]);
    await threads.list({ limit: 2, offset: 4 });
    expect(app.seen.at(-1)?.url).toBe('/threads?limit=2&offset=4');
    await expect(threads.list({ limit: 0 })).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
    await threads.delete('t-1');
    expect(await threads.list()).toEqual([]);
  });

  it('stops at a history page that repeats its cursor', async () => {
    const { threads } = await answering(200, '[{"values":{},"checkpoint":{"checkpoint_id":"c-1"}}]');

    expect(await threads.history('t-1', { limit: 1 }).toArray(9)).toHaveLength(2);
  });

  it.each([true, false])('returns the events of a run to its end (server sends run ids: %s)', async (tellsRuns) => {
    const app = await serveThreads({ tellsRuns });
    const threads = clientOf(app.url);
    await threads.start('t-1', { input: 'fail' });
    await threads.start('t-1', { input: 'hello' });

    const first = await threads.run('t-1', { input: 'hello' });
    expect(first).toMatchObject({ threadId: 't-1', runId: 'r-3' });
    const events = await all(first);
    expect(kinds(events)).toEqual([
      'lifecycle running',
      'lifecycle completed',
      'messages message-start',
      'messages content-block-delta',
      'messages message-finish',
      'values',
      'lifecycle completed',
    ]);
    expect(first.lastSeq).toBe(events.at(-1)?.seq);
    expect(first.lastEventId).toBe(`e-${first.lastSeq}`);

    const narrow = await all(
      threads.run('t-1', { input: 'hello' }, { channels: ['values'], namespaces: [[]], depth: 0 }),
    );
    expect(kinds(narrow)).toEqual(['lifecycle running', 'values', 'lifecycle completed']);
  });

  it.each([{ tellsRuns: true }, { tellsRuns: false }, { keepsRuns: true }])(
    'continues a run with a response to an interrupt (server: %j)',
    async (manner) => {
      const app = await serveThreads(manner);
      const threads = clientOf(app.url);

      const asked = await all(threads.run('t-1', { input: 'ask' }));
      expect(kinds(asked)).toEqual(['lifecycle running', 'input.requested', 'lifecycle interrupted']);
      const answered = await all(threads.resume('t-1', { interrupt_id: 'i-1', response: 'yes' }));
      expect(kinds(answered).at(-1)).toBe('lifecycle completed');
      expect(answered).toHaveLength(7);
    },
  );

  it('returns the events of an earlier run, and no others', async () => {
    const { threads } = await connect();
    const run = await threads.start('t-1', { input: 'hello' });
    await threads.start('t-1', { input: 'fail' });

    const events = await all(threads.events('t-1', { run, channels: ['values'] }));

    expect(kinds(events)).toEqual(['lifecycle running', 'lifecycle completed', 'values', 'lifecycle completed']);
  });

  it('throws the error of a run after its last event', async () => {
    const { threads } = await connect();
    const seen: ThreadEvent[] = [];
    const reading = (async () => {
      for await (const event of await threads.run('t-1', { input: 'fail' })) seen.push(event);
    })();

    const error = await failure(reading);
    expect(error).toMatchObject({ name: 'RunFailedError', runId: 'r-1', threadId: 't-1', detail: 'no such city' });
    expect(kinds(seen)).toEqual(['lifecycle running', 'lifecycle failed']);
  });

  it('requests the channels, namespaces and place of the options', async () => {
    const { app, threads } = await connect();
    await threads.start('t-1', { input: 'hello' });
    const firstOf = async (events: Promise<ThreadEvents>) => {
      for await (const { seq } of await events) return seq;
      return undefined;
    };

    expect(await firstOf(threads.events('t-1'))).toBe(1);
    expect(await firstOf(threads.events('t-1', { channels: ['values', 'custom:a'] }))).toBe(6);
    expect(await firstOf(threads.events('t-1', { namespaces: [['tools:c-1']], depth: 2 }))).toBe(2);
    expect(await firstOf(threads.events('t-1', { since: 4, lastEventId: 'e-4' }))).toBe(5);
    const [first, ...others] = app.bodies('/threads/t-1/stream');
    const channels = ['values', 'updates', 'messages', 'tools', 'lifecycle', 'input', 'checkpoints', 'tasks', 'custom'];
    expect(first).toEqual({ channels });
    expect(others).toEqual([
      { channels: ['values', 'custom:a'] },
      { channels, namespaces: [['tools:c-1']], depth: 2 },
      { channels, since: 4 },
    ]);
    expect(app.seen.at(-1)?.headers).toMatchObject({ 'last-event-id': 'e-4', accept: 'text/event-stream' });
  });

  it.each([
    [503, '{"message":"not now"}', '503 not now'],
    [404, '', '404'],
    [200, '{}', '200, but the response is not a stream of events'],
  ])('names the started run if its events respond with %d', async (status, text, problem) => {
    const { url, seen } = await serve((request, response) => {
      const isCommand = request.url?.endsWith('/commands') === true;
      const body = isCommand ? '{"type":"success","id":1,"result":{"run_id":"r-1"}}' : text;
      response.writeHead(isCommand ? 200 : status, { 'content-type': 'application/json' }).end(body);
    });
    const threads = clientOf(url, { maxRetries: 0 });

    const error = await failure(threads.run('t-1', { input: 1 }));

    expect(error).toMatchObject({ code: 'RUNSPAN_STREAM_BROKEN', runId: 'r-1', threadId: 't-1', lastEvent: undefined });
    expect(String(error)).toContain(
      `the stream broke before any event of run r-1: [POST] "${url}/threads/t-1/stream": ${problem}`,
    );
    expect(seen).toHaveLength(2);
  });

  it('rejects with the reason of the signal at every step', async () => {
    const ending = new AbortController();
    const reason = new Error('enough');
    const { url } = await serve((request, response) => {
      if (request.url?.endsWith('/stream')) return ending.abort(reason);
      return response.setHeader('content-type', 'application/json').end('{"result":{"run_id":"r-1"}}');
    });
    const threads = clientOf(url);

    expect(await failure(threads.run('t-1', { input: 1 }, { signal: ending.signal }))).toBe(reason);
    expect(await failure(threads.start('t-1', { input: 1 }, { signal: ending.signal }))).toBe(reason);
  });

  it('creates thread ids that are ordered by time', () => {
    const threads = new AgentThreads({ url: 'http://127.0.0.1' });
    const ids = [threads.newThreadId(), threads.newThreadId()];

    expect(ids[0]).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(2);
  });

  it('shows no key', async () => {
    const { threads } = await connect({ headers: { authorization: 'Bearer top' } });
    const events = await threads.events('t-1');

    expect(inspect(threads, { depth: 9, showHidden: true })).toMatch(
      /^AgentThreads \{ url: 'http:\/\/127.0.0.1:\d+' \}$/,
    );
    expect(inspect(events, { depth: 9 }) + JSON.stringify([threads, events])).not.toMatch(/lsv2|top/);
    await events.close();
  });
});

describe('a command', () => {
  const refused = (error: string, id: number | null = 1) =>
    JSON.stringify({ type: 'error', id, error, message: `no: ${KEY}` });

  it.each([
    [200, 'no_such_run'],
    [200, 'of_a_later_version'],
    [400, 'invalid_argument'],
    [403, 'permission_denied'],
    [404, 'no_such_checkpoint'],
  ])('that is refused with %d rejects with the reason %s', async (status, reason) => {
    const { threads, seen } = await answering(status, refused(reason, null));

    const error = await failure(threads.start('t-1', { input: 1 }));

    expect(error).toMatchObject({
      name: 'CommandError',
      code: 'RUNSPAN_COMMAND_REFUSED',
      reason,
      detail: 'no: [secret]',
      command: 'run.start',
      request: { method: 'POST', attempts: 1 },
    });
    expect(String(error)).toMatch(
      new RegExp(`commands": the command run.start was refused \\(${reason}\\): no: \\[secret\\]$`),
    );
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(KEY);
    expect(seen).toHaveLength(1);
  });

  it.each([
    [500, refused('unknown_error'), 'RUNSPAN_SERVER_ERROR'],
    [503, '{"message":"not now"}', 'RUNSPAN_SERVER_ERROR'],
    [429, refused('unknown_error'), 'RUNSPAN_RATE_LIMITED'],
    [400, '{"success":false,"error":{"name":"ZodError","issues":[]}}', 'RUNSPAN_BAD_REQUEST'],
    [400, '{"type":"error"}', 'RUNSPAN_BAD_REQUEST'],
    [422, '{"detail":[{"loc":["body","method"],"msg":"Field required","type":"missing"}]}', 'RUNSPAN_UNPROCESSABLE'],
    [200, '{"type":"success","id":1,"result":{}}', 'RUNSPAN_INVALID_ANSWER'],
    [200, '{"type":"success","id":1,"result":{"run_id":7}}', 'RUNSPAN_INVALID_ANSWER'],
    [200, '[]', 'RUNSPAN_INVALID_ANSWER'],
    [200, '"r-1"', 'RUNSPAN_INVALID_ANSWER'],
    [200, '{"type":', 'RUNSPAN_INVALID_ANSWER'],
    [202, '', 'RUNSPAN_INVALID_ANSWER'],
  ])('with the response %d %s is sent once and rejects with %s', async (status, text, code) => {
    const { threads, seen } = await answering(status, text);

    expect(await failure(threads.start('t-1', { input: 1 }))).toMatchObject({ code });
    expect(seen).toHaveLength(1);
  });

  it.each([
    [202, ''],
    [200, '{"type":"success","id":1,"result":{}}'],
    [200, '{"type":"success","id":1}'],
  ])('that continues a run accepts the response %d %s', async (status, text) => {
    const { threads } = await answering(status, text);

    expect(await threads.respond('t-1', { interrupt_id: 'i', response: undefined })).toEqual({});
  });

  it.each([
    [{}, [['body', 'input']]],
    [{ input: 1, assistantId: 'a' }, [['body', 'assistantId']]],
    ['hello', [['body']]],
  ])('that starts a run is not sent with the body %j', async (run, places) => {
    const { app, threads } = await connect();

    for (const call of [threads.start('t-1', run as never), threads.run('t-1', run as never)]) {
      const error = (await failure(call)) as { code: string; errors: { loc: unknown }[] };
      expect(error.code).toBe('RUNSPAN_INVALID_REQUEST');
      expect(error.errors.map(({ loc }) => loc)).toEqual(places);
    }
    expect(app.seen).toEqual([]);
  });

  it.each([
    [{}, [['body', 'interrupt_id']]],
    [{ responses: [] }, [['body', 'responses']]],
    [{ responses: {} }, [['body', 'responses']]],
    [
      { responses: [{ interrupt_id: 'i' }, { response: 1 }, 3] },
      [
        ['body', 'responses', 1, 'interrupt_id'],
        ['body', 'responses', 2],
      ],
    ],
    [null, [['body']]],
  ])('that responds is not sent with the body %j', async (response, places) => {
    const { app, threads } = await connect();

    const error = (await failure(threads.respond('t-1', response as never))) as { errors: { loc: unknown }[] };
    expect(error.errors.map(({ loc }) => loc)).toEqual(places);
    expect(await failure(threads.resume('t-1', response as never))).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
    expect(app.seen).toEqual([]);
  });

  it('is not sent if the options of its events are invalid', async () => {
    const { app, threads } = await connect();

    for (const options of [
      { channels: [] },
      { depth: -1 },
      { since: 0.5 },
      { namespaces: [['a']] },
      { namespaces: 'a' },
      { channel: 'a' },
    ])
      expect(await failure(threads.run('t-1', { input: 1 }, options as never))).toMatchObject({
        code: 'RUNSPAN_INVALID_OPTION',
      });
    expect(app.seen).toEqual([]);
  });
});

it.each([
  [{}, 'url'],
  [{ url: 'http://host', apiKey: 'k' }, 'https'],
  [{ url: 'https://host', paths: { stream: '/stream' } }, 'paths'],
  [{ url: 'https://host', paths: { streams: '/{thread_id}' } }, 'paths'],
  [{ url: 'https://host', idleTimeoutMs: 0 }, 'idleTimeoutMs'],
  [{ url: 'https://host', propagate: 1 }, 'propagate'],
  [{ url: 'https://host', apiUrl: 'https://host' }, 'apiUrl'],
])('AgentThreads refuses the options %j', (options, named) => {
  expect(() => new AgentThreads(options as unknown as AgentThreadsOptions)).toThrow(named);
});

it('AgentThreads sends nothing for an invalid id', async () => {
  const { app, threads } = await connect();
  const calls = [
    () => threads.state(''),
    () => threads.updateState('', {}),
    () => threads.delete(''),
    () => threads.start('', { input: 1 }),
    () => threads.run('', { input: 1 }),
    () => threads.respond('', { interrupt_id: 'i', response: 1 }),
    () => threads.cancel('t-1', ''),
    () => threads.events(undefined as never),
    () => threads.history('').toArray(1),
  ];

  for (const call of calls) expect(await failure(call())).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
  expect(app.seen).toEqual([]);
});

describe('within a run', () => {
  const within = <Result>(fn: () => Promise<Result>): Promise<Result> => traceable(fn, { name: 'answer' })();

  it('calls that create runs are recorded as child runs and propagate the trace', async () => {
    const { app, threads } = await connect();
    const recorder = record();

    await within(async () => {
      await threads.state('t-1');
      await threads.start('t-1', { input: 'ask' });
      await threads.respond('t-1', { interrupt_id: 'i-1', response: 1 });
      await all(threads.run('t-1', { input: 'hello' }));
      await failure(all(threads.run('t-1', { input: 'fail' })));
      for await (const _ of await threads.run('t-1', { input: 'hello' })) break;
    });

    const { runs } = recorder;
    expect(treeOf(runs)).toEqual({ answer: { 'threads.start': {}, 'threads.respond': {}, 'threads.run': {} } });
    const [done, failed, left] = runs.filter(({ name }) => name === 'threads.run');
    expect(done).toMatchObject({
      inputs: { thread_id: 't-1', assistant_id: '_', input: 'hello' },
      outputs: { messages: [{ type: 'ai', content: 'Hello' }] },
      extra: { metadata: { agent_run_id: 'r-3', agent_thread_id: 't-1' } },
    });
    expect(done?.error).toBeUndefined();
    expect(failed?.error).toMatch(/^RunFailedError: The run r-4 failed: no such city/);
    expect(left).toMatchObject({ extra: { metadata: { end_reason: 'cancelled' } } });
    const commands = app.seen.filter(({ url }) => url?.endsWith('/commands'));
    expect(commands.map(({ headers }) => headers['runspan-trace'] !== undefined)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ]);
    const streams = app.seen.filter(({ url }) => url?.endsWith('/stream'));
    expect(streams.some(({ headers }) => 'runspan-trace' in headers)).toBe(false);
  });

  it('a refused command fails its recorded run', async () => {
    const { threads } = await connect();
    const recorder = record();

    await within(() => failure(threads.resume('t-1', { interrupt_id: 'i-1', response: 1 })));

    expect(recorder.runs.find(({ name }) => name === 'threads.resume')?.error).toMatch(/^CommandError: /);
  });

  it('`propagate: false` sends no trace headers', async () => {
    const { app, threads } = await connect({ propagate: false });
    record();

    await within(() => threads.start('t-1', { input: 'hello' }));

    expect(app.seen[0]?.headers).not.toHaveProperty('runspan-trace');
  });
});

describe('the paths of threads', () => {
  const open = (paths: unknown): AgentThreads => new AgentThreads({ url: 'https://host', paths: paths as ThreadPaths });

  it.each([
    {},
    agentServerPaths,
    { commands: '/v1/chat/{thread_id}', list: '/conversations', delete: '/x-{thread_id}.json', state: undefined },
    { cancel: '/{thread_id}/{run_id}/of/{thread_id}' },
  ])('may be %j', (paths) => expect(() => open(paths)).not.toThrow());

  it.each<[unknown, string]>([
    [
      { stream: '/threads' },
      '`stream` to be a path for `paths` that begins with a slash, has {thread_id} and no query',
    ],
    [
      { cancel: '/{thread_id}' },
      '`cancel` to be a path for `paths` that begins with a slash, has {thread_id} and {run_id}',
    ],
    [{ list: 'threads' }, '`list` to be a path for `paths` that begins with a slash, has no placeholder and no query'],
    [{ streams: '/threads/{thread_id}' }, '`paths` to contain only commands, stream, state, history, cancel'],
    [null, '`paths` to be an object, got null'],
    ...[
      'threads/{thread_id}',
      '/threads/{id}',
      '/threads/{thread_id}?a=1',
      '/../{thread_id}',
      '//host/{thread_id}',
    ].map((stream) => [{ stream }, '`stream` to be a path'] as [unknown, string]),
    [{ state: '/threads/{thread_id}/\r\n' }, '`state` to be a path'],
  ])('cannot be %j', (paths, message) => expect(() => open(paths)).toThrow(`Expected ${message}`));

  it('encode ids, so that no id leads to another path', async () => {
    const { url, seen } = await serve((_, response) => response.end('{}'));
    const threads = clientOf(url, { paths: { cancel: '/{run_id}/of/{thread_id}' } });

    for (const id of ['t-1', 'a/b', '...', '../a', 'ü ?#', '{run_id}', '$&']) await threads.cancel(id, 'r');
    for (const id of ['', '.', '..'])
      expect(await failure(threads.cancel(id, 'r'))).toMatchObject({ errors: [{ loc: ['path', 'thread_id'] }] });

    const ids = ['t-1', 'a%2Fb', '...', '..%2Fa', '%C3%BC%20%3F%23', '%7Brun_id%7D', '%24%26'];
    expect(seen.map((request) => request.url)).toEqual(ids.map((id) => `/r/of/${id}`));
  });
});
