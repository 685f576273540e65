import '../support/virtual-timers.ts';

import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunStream } from '#src/clients/agent-server/streams/run-stream.ts';
import type { AgentServer } from '#src/clients.ts';
import { serve } from '../http/server.ts';
import { gate } from '../support/gate.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { thrownBy } from './make-api.ts';
import { KEY, reset, type Step, script, settled, status } from './stepped-server.ts';

const RUN = { assistant_id: 'agent' };
const RESUMABLE = { ...RUN, stream_resumable: true };
const SSE = { 'content-type': 'text/event-stream' };
const HEAD = { ...SSE, 'content-location': '/threads/t-1/runs/r-1' };
const METADATA = 'event: metadata\ndata: {"run_id":"r-1"}\nid: 0\n\n';
const value = (id: number): string => `event: values\ndata: {"count":${id}}\nid: ${id}\n\n`;

/** Sends the start of a stream and breaks the connection. */
const breaking =
  (text: string, headers: Record<string, string> = HEAD): Step =>
  (response) =>
    response.writeHead(200, headers).write(text, () => response.destroy());
const ending =
  (text: string, headers: Record<string, string> = HEAD): Step =>
  (response) =>
    response.writeHead(200, headers).end(text);
const hang: Step = () => {};
const begun: Step = (response) => response.writeHead(200, HEAD).write(METADATA);

async function failure(promise: Promise<unknown>, stepMs?: number): Promise<unknown> {
  const result = await settled(promise, stepMs);
  if (result.status === 'rejected') return result.reason;
  throw new Error(`it resolved with ${JSON.stringify(result.value)}`);
}

async function success<Result>(promise: Promise<Result>): Promise<Result> {
  const result = await settled(promise);
  if (result.status === 'fulfilled') return result.value;
  throw result.reason;
}

async function names(stream: RunStream | Promise<RunStream>, found: string[] = []): Promise<string[]> {
  for await (const event of await stream) found.push(`${event.event} ${event.id}`);
  return found;
}

// The first request would load undici, which takes real time.
beforeAll(() => import('undici'));
beforeEach(() => {
  virtualClock.reset();
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});

it.each<[name: string, create: (client: AgentServer) => Promise<unknown>]>([
  ['runs.create', (client) => client.runs.create('t-1', RUN)],
  ['runs.wait', (client) => client.runs.wait('t-1', RUN)],
  ['runs.stream', (client) => client.runs.stream('t-1', RUN).then(names)],
  ['runs.stream of stored events', (client) => client.runs.stream('t-1', RESUMABLE).then(names)],
  ['statelessRuns.create', (client) => client.statelessRuns.create(RUN)],
  ['statelessRuns.wait', (client) => client.statelessRuns.wait(RUN)],
  ['statelessRuns.stream', (client) => client.statelessRuns.stream(RUN).then(names)],
  ['statelessRuns.batch', (client) => client.statelessRuns.batch([RUN])],
  ['crons.create', (client) => client.crons.create({ ...RUN, schedule: '* * * * *' })],
  ['threads.create', (client) => client.threads.create()],
  ['threads.copy', (client) => client.threads.copy('t-1')],
])('%s is sent once if the request may have arrived, and again after 429', async (_, create) => {
  for (const [step, code] of [
    [reset, 'RUNSPAN_NO_RESPONSE'],
    [hang, 'RUNSPAN_TIMEOUT'],
    [status(503, { 'retry-after': '1' }), 'RUNSPAN_SERVER_ERROR'],
  ] as const) {
    const { client, seen } = await script([step]);
    expect(await failure(create(client), 10_000)).toMatchObject({ code });
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  }
  const { client, seen } = await script([status(429, { 'retry-after': '7' }), status(400)]);
  expect(await failure(create(client))).toMatchObject({ code: 'RUNSPAN_BAD_REQUEST', detail: 'not now' });
  expect(seen).toHaveLength(2);
});

it('a search is retried, though it is a POST', async () => {
  const { client, seen } = await script([reset, status(500), status(200, {}, '[]')]);
  expect(await success(client.threads.search().toArray(1))).toEqual([]);
  expect(seen.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST']);
});

describe('a response that is a web page', () => {
  const page = status(200, { 'content-type': 'text/html; charset=utf-8' }, '<h1>Log in</h1>');

  it.each<[string, (client: AgentServer) => Promise<unknown>]>([
    ['threads.delete', (client) => client.threads.delete('t-1')],
    ['runs.cancel', (client) => client.runs.cancel('t-1', 'r-1')],
    ['store.put', (client) => client.store.put({ namespace: ['a'], key: 'k', value: {} })],
  ])('is an InvalidResponseError of %s', async (_, call) => {
    const { client } = await script([page]);
    expect(await failure(call(client))).toMatchObject({
      name: 'InvalidResponseError',
      message: expect.stringMatching(/200, but the response is a web page$/),
    });
  });

  it('is accepted if it is empty', async () => {
    const { client } = await script([status(200, { 'content-type': 'text/html' }, '')]);
    expect(await success(client.threads.delete('t-1'))).toBeUndefined();
  });
});

describe('a broken stream', () => {
  it.each([0, 1, 2, 3, 4])('continues after event %i without a gap or a repetition', async (cutAfter) => {
    const events = [METADATA, ...[1, 2, 3, 4].map(value)];
    const cut = `${events.slice(0, cutAfter).join('')}event: values\ndata: {"mess`;
    const { client, asked, seen } = await script([breaking(cut), ending(events.slice(cutAfter).join(''))]);

    const found = await success(names(client.runs.stream('t-1', RESUMABLE)));

    expect(found).toEqual(['metadata 0', 'values 1', 'values 2', 'values 3', 'values 4']);
    expect(asked().slice(0, 2)).toEqual(['POST /threads/t-1/runs/stream', 'GET /threads/t-1/runs/r-1/stream']);
    expect(seen[1]?.headers['last-event-id']).toBe(String(cutAfter - 1));
  });

  it('continues at the `Location` of the response', async () => {
    const { client, asked, seen } = await script([
      breaking(METADATA, { ...HEAD, location: '/threads/t-1/runs/r-1/stream?stream_mode=values&stream_mode=debug' }),
      ending(value(1)),
    ]);

    expect(await success(names(client.runs.stream('t-1', RUN)))).toEqual(['metadata 0', 'values 1']);

    expect(asked()[1]).toBe('GET /threads/t-1/runs/r-1/stream?stream_mode=values&stream_mode=debug');
    expect(seen[1]?.headers).toMatchObject({ 'last-event-id': '0', accept: 'text/event-stream', 'x-api-key': KEY });
  });

  it('continues at the run of its first event if the headers name no run', async () => {
    const { client, asked } = await script([breaking(METADATA, SSE), ending(value(1))]);
    expect(await success(names(client.runs.stream('t-1', RESUMABLE)))).toEqual(['metadata 0', 'values 1']);

    expect(asked()[1]).toBe('GET /threads/t-1/runs/r-1/stream');
  });

  it('does not continue at another origin', async () => {
    const other = await serve();
    const { client, asked } = await script([breaking(METADATA, { ...HEAD, location: `${other.url}/stream` })]);

    expect(await failure(names(client.runs.stream('t-1', RUN)))).toMatchObject({ code: 'RUNSPAN_STREAM_BROKEN' });

    expect(other.seen).toEqual([]);
    expect(asked()).toHaveLength(1);
  });

  it('does not continue if the last event cleared the id', async () => {
    const { client, seen } = await script([breaking(`${METADATA}event: values\nid:\ndata: {}\n\n`)]);
    expect(await failure(names(client.runs.stream('t-1', RESUMABLE)))).toMatchObject({
      message: expect.stringMatching(/after the event "values" of run r-1: .*; the last event has no id/),
    });
    expect(seen).toHaveLength(1);
  });

  it.each([
    ['skips the event after which it continues if the server repeats it', value(1), value(1) + value(2), [1, 2]],
    ['returns events without an id after it continued', '', 'event: values\ndata: {}\n\n', [0]],
  ])('%s', async (_, before, after, ids) => {
    const { client } = await script([breaking(METADATA + before), ending(after)]);

    const events = await success(names(client.runs.stream('t-1', RESUMABLE)));

    expect(events).toEqual(['metadata 0', ...ids.map((id) => `values ${id}`)]);
  });

  it('reconnects five times in a row with growing delays, and an event resets the count', async () => {
    const down = status(503);
    const { client, seen } = await script(
      [breaking(METADATA), down, down, down, down, breaking(value(1)), down, down, down, down, down, ending(value(2))],
      { maxRetries: 0 },
    );

    const error = await failure(names(client.runs.stream('t-1', RESUMABLE)), 100);

    expect(error).toMatchObject({
      lastEvent: { id: '1' },
      message: expect.stringContaining('5 attempts to reconnect failed'),
    });
    expect(seen).toHaveLength(11);
    // Twice 1, 2, 4, 5 and 5 seconds, each with half a second of jitter.
    expect(virtualClock.nowMs).toBeGreaterThanOrEqual(2 * 19_500);
    expect(virtualClock.nowMs).toBeLessThan(2 * 19_500 + 4_000);
  });

  it('waits for the delay that the server requests', async () => {
    const { client } = await script([
      breaking(`retry: 20000\n${METADATA}`),
      ending(`${value(1)}event: end\ndata:\n\n`),
    ]);

    await success(names(client.runs.stream('t-1', RESUMABLE)));

    expect(virtualClock.nowMs).toBeGreaterThanOrEqual(20_500);
    expect(virtualClock.nowMs).toBeLessThan(23_000);
  });

  it.each([404, 410, 401])('ends at once if the server responds with %i', async (code) => {
    const { client, seen } = await script([breaking(METADATA), status(code)]);

    const error = await failure(names(client.runs.stream('t-1', RESUMABLE)));

    expect(error).toMatchObject({ code: 'RUNSPAN_STREAM_BROKEN', cause: { status: code } });
    expect(seen).toHaveLength(2);
  });

  it('of a joined run continues after each event', async () => {
    const { client, asked, seen } = await script([breaking(value(4)), reset, breaking(value(5)), ending(value(6))]);

    const stream = client.runs.joinStream('t-1', 'r-1', { lastEventId: '3', streamMode: 'values' });

    expect(await success(names(stream))).toEqual(['values 4', 'values 5', 'values 6']);
    expect(new Set(asked().slice(0, 4))).toEqual(new Set(['GET /threads/t-1/runs/r-1/stream?stream_mode=values']));
    expect(seen.slice(0, 4).map(({ headers }) => headers['last-event-id'])).toEqual(['3', '4', '4', '5']);
  });

  it('of a thread continues until a connection brings no event, even if a run failed', async () => {
    const failed = 'event: error\ndata: {"message":"no"}\nid: 5\n\n';
    const { client, asked, seen } = await script([breaking(''), ending(failed), ending(failed + value(6)), ending('')]);

    const stream = client.threads.joinStream('t-1', { streamModes: ['run_modes', 'lifecycle'] });

    expect(await success(names(stream))).toEqual(['error 5', 'values 6']);
    expect(new Set(asked())).toEqual(
      new Set(['GET /threads/t-1/stream?stream_modes=run_modes&stream_modes=lifecycle']),
    );
    expect(seen.map(({ headers }) => headers['last-event-id']).join(' ')).toBe('  5 6');
    expect((await stream).runId).toBeUndefined();
  });

  it('ends at an event that is too long', async () => {
    // Sending and decoding 64 MiB would take seconds.
    const { decode } = TextDecoder.prototype;
    vi.spyOn(TextDecoder.prototype, 'decode').mockImplementation(function (this: unknown, ...args) {
      return Reflect.apply(decode, this, args).replace('data: long', () => 'x'.repeat(64 * 1024 * 1024 + 1));
    });
    const { client } = await script([ending(`${METADATA}data: long`)]);

    expect(await failure(names(client.runs.stream('t-1', RESUMABLE)))).toMatchObject({
      code: 'RUNSPAN_STREAM_BROKEN',
      message: expect.stringContaining(
        'an event has more than 67108864 characters; the client stopped reading the stream',
      ),
    });
  });
});

const [first, next, none, both] = [ending(METADATA), ending(value(1)), ending(''), ending(METADATA + value(1))];
const runIs = (state: string): Step => status(200, {}, JSON.stringify({ status: state }));
const active = Array.from({ length: 6 }, () => [runIs('running'), none]).flat();
const gone = ending('event: error\ndata: "Run not found"\n\n');
const heartbeats: Step = (response) => {
  const beat = setInterval(() => response.write(': heartbeat\n\n'), 1_000);
  response
    .on('close', () => clearInterval(beat))
    .writeHead(200, SSE)
    .flushHeaders();
};
const location = { ...SSE, location: '/runs/r-1/stream' };
const cuts = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => ending(value(id)));

it.each<[run: string, steps: readonly Step[], requests: string]>([
  ['has failed', [first, runIs('error'), next, none], 'run 0 1 fulfilled'],
  ['has timed out, and the connection breaks', [both, runIs('timeout'), breaking('')], 'run 1 fulfilled'],
  ['has timed out, and its error is missing', [first, runIs('timeout'), next, gone], 'run 0 1 rejected'],
  ['has succeeded, and the server is down', [both, runIs('success'), status(503)], 'run 1 fulfilled'],
  ['has succeeded, and its events are gone', [both, runIs('success'), gone], 'run 1 fulfilled'],
  ['has succeeded, and only heartbeats arrive', [both, runIs('success'), heartbeats], 'run 1 fulfilled'],
  ['is interrupted, and its events are deleted', [both, runIs('interrupted'), status(404)], 'run 1 fulfilled'],
  ['was deleted', [both, status(404), gone], 'run 1 fulfilled'],
  ['is pending', [first, runIs('pending'), ending(`${value(1)}event: end\ndata:\n\n`)], 'run 0 fulfilled'],
  ['is running', [first, runIs('running'), next, runIs('success'), none], 'run 0 run 1 fulfilled'],
  ['cannot be read at first', [first, status(503), next, runIs('success'), none], 'run 0 run 1 fulfilled'],
  ['cannot be read', [both, hang, none], 'run 1 fulfilled'],
  ['is active without events', [first, ...active, runIs('error'), next, none], `${'run 0 '.repeat(7)}1 fulfilled`],
  ['has ended, and its events repeat', [both, runIs('success'), both], 'run 1 fulfilled'],
  ['is active, and its events repeat', [first, runIs('running'), both, runIs('error'), both], 'run 0 run 1 fulfilled'],
  ['is stateless', [ending(METADATA, location), ...cuts, none], '0 1 2 3 4 5 6 7 8 9 fulfilled'],
  ['is stateless and not stored', [both], 'fulfilled'],
])('a stream whose connection is closed ends, or fails, if its run %s', async (run, steps, requests) => {
  const { client, seen } = await script(steps, { maxRetries: 0 });
  const [found, isStateless] = [[] as string[], run.startsWith('is stateless')];
  const stream = isStateless ? client.statelessRuns.stream(RUN) : client.runs.stream('t-1', RESUMABLE);
  const { status } = await settled(names(stream, found));
  expect([...found.slice(0, 2), new Set(found).size]).toEqual(['metadata 0', 'values 1', found.length]);
  const sent = seen.slice(1).map(({ url, headers }) => (url?.endsWith('/r-1') ? 'run' : headers['last-event-id']));
  expect([...sent, status].join(' ')).toBe(requests);
});

it('a joined run that has ended may have no event', async () => {
  const { client } = await script([ending(': heartbeat'), runIs('success'), ending(': heartbeat')]);
  expect(await success(names(client.runs.joinStream('t-1', 'r-1')))).toEqual([]);
});

describe('silence', () => {
  const begins =
    (text: string): Step =>
    (response) =>
      response.writeHead(200, HEAD).write(text);

  it.each([
    ['300 s', {}, METADATA, 300_000],
    ['`idleTimeoutMs` of the client', { idleTimeoutMs: 10_000 }, METADATA, 10_000],
    ['60 s after heartbeats', {}, `: heartbeat\n\n${METADATA}`, 60_000],
    ['a shorter `idleTimeoutMs` after heartbeats', { idleTimeoutMs: 5_000 }, `: heartbeat\n\n${METADATA}`, 5_000],
  ])('breaks a stream after %s', async (_, options, text, silenceMs) => {
    const { client } = await script([begins(text)], options);
    const stream = await client.runs.stream('t-1', RUN);
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const startMs = virtualClock.nowMs;

    const error = await failure(iterator.next(), silenceMs / 10);

    expect(error).toMatchObject({ message: expect.stringContaining(`no data arrived for ${silenceMs} ms; `) });
    expect(virtualClock.nowMs - startMs).toBe(silenceMs);
  });

  it('is limited by `idleTimeoutMs` of each call', async () => {
    const { client } = await script([begins('')]);
    const join = { idleTimeoutMs: 3_000 };
    const streams = [
      client.runs.stream('t-1', RUN, join),
      client.statelessRuns.stream(RUN, join),
      client.runs.joinStream('t-1', 'r-1', join),
      client.statelessRuns.joinStream('r-1', join),
    ];

    for (const stream of streams)
      expect(await failure(stream.then(names))).toMatchObject({
        message: expect.stringContaining('no data arrived for 3000 ms'),
      });
  });

  it('cannot be longer than a timer can wait', async () => {
    const { client, seen } = await script([begins('')]);
    const tooLong = { idleTimeoutMs: 2 ** 31 };

    const opened = await Promise.allSettled([
      client.runs.stream('t-1', RUN, tooLong),
      client.threads.joinStream('t-1', tooLong),
    ]);

    const refused = { status: 'rejected', reason: { code: 'RUNSPAN_INVALID_OPTION' } };
    expect(opened).toMatchObject([refused, refused]);
    expect(seen).toEqual([]);
  });

  it('does not break a stream with a slow reader', async () => {
    const { client } = await script([ending(METADATA + value(1))], { idleTimeoutMs: 1_000 });
    const iterator = (await client.runs.stream('t-1', RUN))[Symbol.asyncIterator]();
    await iterator.next();

    await virtualClock.advance(10_000);

    expect(await success(iterator.next())).toMatchObject({ value: { id: '1' } });
  });

  it('after the response headers does not count for `timeoutMs`', async () => {
    const began = gate<ServerResponse>();
    const { client } = await script([(response) => began.open(response.writeHead(200, HEAD))], { timeoutMs: 1_000 });
    const opening = client.runs.stream('t-1', RUN);
    const response = await began;
    response.flushHeaders();
    const stream = await opening;
    await virtualClock.advance(100_000);
    response.end(METADATA);

    expect(await success(names(stream))).toEqual(['metadata 0']);
  });

  it('does not end a wait for a run while empty lines arrive', async () => {
    const began = gate<ServerResponse>();
    const { client } = await script([(response) => began.open(response.writeHead(200, HEAD))], { timeoutMs: 1_000 });
    const waiting = client.runs.wait('t-1', RUN);
    const response = await began;
    response.flushHeaders();
    for (let count = 0; count < 5; count++) {
      response.write('\n');
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      await virtualClock.advance(200_000);
    }
    response.end('{"done":true}');

    expect(await success(waiting)).toEqual({ done: true });
  });

  it('ends a wait with an error that names the run', async () => {
    const { client, seen } = await script([(response) => response.writeHead(200, HEAD).write('\n')], {
      idleTimeoutMs: 2_000,
    });

    expect(await failure(client.runs.wait('t-1', RUN))).toMatchObject({
      code: 'RUNSPAN_STREAM_BROKEN',
      runId: 'r-1',
      message: expect.stringContaining(
        'no data arrived for 2000 ms; the run may still be active; call runs.join to wait for its end',
      ),
    });
    expect(seen).toHaveLength(1);
  });

  it('before the response headers ends a join, unless the call has a timeout', async () => {
    const { client } = await script([hang], { idleTimeoutMs: 90_000 });

    expect(await failure(client.runs.join('t-1', 'r-1'), 10_000)).toMatchObject({ code: 'RUNSPAN_TIMEOUT' });
    expect(virtualClock.nowMs).toBe(90_000);
    expect(await failure(client.runs.join('t-1', 'r-1', { timeoutMs: 20_000 }), 10_000)).toMatchObject({
      code: 'RUNSPAN_TIMEOUT',
    });
    expect(virtualClock.nowMs).toBe(110_000);
  });
});

describe('a wait for a run', () => {
  it('applies `timeoutMs` of the client to the response headers', async () => {
    const { client } = await script([hang], { timeoutMs: 10_000 });
    const timeout = { code: 'RUNSPAN_TIMEOUT', message: expect.stringContaining('no response within 10000 ms') };

    expect(await failure(client.runs.wait('t-1', RUN), 5_000)).toMatchObject(timeout);
    expect(await failure(client.runs.join('t-1', 'r-1', {}), 5_000)).toMatchObject(timeout);
    expect(await failure(client.statelessRuns.wait(RUN), 5_000)).toMatchObject(timeout);
    expect(virtualClock.nowMs).toBe(30_000);
  });

  it.each([
    ['breaks', breaking('\n\n{"a":', HEAD), 'RUNSPAN_STREAM_BROKEN'],
    ['is not JSON', ending('\n\n{"a":', HEAD), 'RUNSPAN_INVALID_RESPONSE'],
    ['contains an error', ending('\n{"__error__":{"error":"E","message":"m"}}', HEAD), 'RUNSPAN_RUN_FAILED'],
    ['contains an error as text', ending('{"__error__":"gone"}', HEAD), 'RUNSPAN_RUN_FAILED'],
  ])('rejects if the response %s', async (_, step, code) => {
    const { client, seen } = await script([step]);

    expect(await failure(client.runs.wait('t-1', RUN))).toMatchObject({ code });
    expect(seen).toHaveLength(1);
  });
});

/** How a signal or a client ends a call: when the server has this number of requests, and with which code of a close. */
const moments: readonly (readonly [moment: string, steps: readonly Step[], requests: number, code: string])[] = [
  ['a stream before the call', [begun], 0, 'RUNSPAN_NO_RESPONSE'],
  ['a stream before the headers', [hang], 1, 'RUNSPAN_NO_RESPONSE'],
  ['a stream between events', [begun], 1, 'RUNSPAN_STREAM_BROKEN'],
  ['a stream in the delay after a break', [breaking(METADATA), begun], 1, 'RUNSPAN_STREAM_BROKEN'],
  ['a stream before the headers of a reconnect', [breaking(METADATA), hang], 2, 'RUNSPAN_STREAM_BROKEN'],
  ['a stream in the request for the status of the run', [ending(METADATA), hang], 2, 'RUNSPAN_STREAM_BROKEN'],
  ['a stream after a reconnect', [breaking(METADATA), begun], 2, 'RUNSPAN_STREAM_BROKEN'],
  ['a stream after the end of its run', [ending(METADATA), runIs('error'), begun], 3, 'RUNSPAN_STREAM_BROKEN'],
  ['a wait before the headers', [hang], 1, 'RUNSPAN_NO_RESPONSE'],
  ['a wait while the body is read', [begun], 1, 'RUNSPAN_STREAM_BROKEN'],
];

describe.each(['an abort', 'the close of the client'])('%s', (way) => {
  const reason = new Error('enough');

  it.each(moments)(
    'ends %s at once and leaves no listener and no connection',
    async (moment, steps, requests, code) => {
      const { client, asked, open } = await script(steps);
      const ending = new AbortController();
      const end = (): unknown => (way === 'an abort' ? ending.abort(reason) : void client.close());
      if (requests === 0) end();
      const { signal } = ending;
      const isWait = moment.startsWith('a wait');
      const call = isWait
        ? client.runs.wait('t-1', RUN, { signal })
        : names(client.runs.stream('t-1', RESUMABLE, { signal }));
      const error = thrownBy(call);
      while (asked().length < requests) {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
        if (asked().length < requests) await virtualClock.advance(250);
      }
      // The client handles the headers and events before the end.
      for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
      end();

      // The clock stands still.
      if (way === 'an abort') expect(await error).toBe(reason);
      else expect(await error).toMatchObject({ code, message: expect.stringMatching(/the client (is|was) closed/) });
      expect(asked()).toHaveLength(requests);
      expect(getEventListeners(signal, 'abort')).toEqual([]);
      await expect.poll(() => open.size).toBe(0);
    },
  );
});

describe('the signal of a stream', () => {
  it('can end many streams without a warning of Node', async () => {
    const { client } = await script([begun]);
    const warned = vi.spyOn(process, 'emitWarning');
    const ending = new AbortController();
    const streams = await Promise.all(
      Array.from({ length: 11 }, () => client.runs.stream('t-1', RESUMABLE, { signal: ending.signal })),
    );
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);

    expect(warned).not.toHaveBeenCalled();
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(11);
    for (const stream of streams) await stream.close();
  });

  it.each(['an end', 'an error', 'a break', 'leaving the loop', 'close'])(
    'has no listener and no connection after %s',
    async (way) => {
      const text = way === 'an error' ? 'event: error\ndata: "no"\n\n' : METADATA;
      const isLeft = way === 'leaving the loop' || way === 'close';
      const step = way === 'a break' ? breaking(text) : isLeft ? begun : ending(text);
      const { client, open } = await script([step]);
      const { signal } = new AbortController();
      const stream = await client.runs.stream('t-1', RUN, { signal });
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);

      if (way === 'close') await stream.close();
      else if (way === 'leaving the loop') for await (const _ of stream) break;
      else await settled(names(stream));

      expect(getEventListeners(signal, 'abort')).toEqual([]);
      await expect.poll(() => open.size).toBe(0);
    },
  );
});
