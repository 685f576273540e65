// Network faults, for calls that read, calls that create, and feedback. The clock is virtual.

import '../support/virtual-timers.ts';

import { getEventListeners } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { CallOptions, RetryEvent } from '#src/clients/client-options.ts';
import { submitFeedback } from '#src/clients.ts';
import { serve } from '../http/server.ts';
import { gate } from '../support/gate.ts';
import { listen } from '../support/listen.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { virtualClock } from '../support/virtual-timers.ts';
import { GET, makeApi, POST, thrownBy } from './make-api.ts';

interface Kind {
  readonly name: string;
  /** Whether the call may be repeated. */
  readonly isIdempotent: boolean;
  readonly readsBody: boolean;
  /** Makes the call. Its delays pass at once and are recorded in `waits`. */
  readonly call: (url: string, options?: CallOptions) => Promise<unknown>;
  readonly waits: number[];
}

/** Number of attempts of the last call. */
let attempts = 0;

function kind(
  name: string,
  isIdempotent: boolean,
  send: (url: string, options: CallOptions, hooks: object) => Promise<unknown>,
): Kind {
  const waits: number[] = [];
  const hooks = {
    onRequest: () => void attempts++,
    onRetry: ({ delayMs }: RetryEvent) => {
      waits.push(delayMs);
      setImmediate(() => void virtualClock.advance(Math.max(1, delayMs)));
    },
  };
  const call = (url: string, options: CallOptions = {}): Promise<unknown> => {
    attempts = 0;
    waits.length = 0;
    return send(url, options, hooks);
  };
  return { name, isIdempotent, readsBody: name !== 'feedback', call, waits };
}

const kinds: Kind[] = [
  kind('a call that reads', true, (url, options, hooks) => makeApi(url, { hooks }).json({ ...GET, options })),
  kind('a call that creates', false, (url, options, hooks) => makeApi(url, { hooks }).json({ ...POST, options })),
  kind('feedback', false, (url, options, hooks) =>
    submitFeedback(`${url}/t/token`, { score: 1 }, { hooks, ...options }),
  ),
];
const reading = kinds.filter(({ readsBody }) => readsBody);

/** A server whose response never ends. `begun` resolves when the response has begun. */
async function halting(begin: (response: ServerResponse) => void) {
  const begun = gate();
  const closed = gate();
  const served = await serve((request, response) => {
    request.socket.on('close', () => closed.open());
    begin(response);
    setImmediate(() => begun.open());
  });
  return { ...served, begun, closed };
}

/** A hook that ends a delay. Otherwise, the delay passes soon afterwards. */
const endedBy = (end: () => unknown) => (): void => {
  setImmediate(() => {
    end();
    setImmediate(() => void virtualClock.advance(10_000));
  });
};

const silent = (): void => {};
const partly = (status: number) => (response: ServerResponse) => void response.writeHead(status).write('{"detail":');

describe('the timeout', () => {
  test.each(kinds)('ends $name and its connection before the response headers, without a retry', async ({ call }) => {
    const { url, seen, begun, closed } = await halting(silent);
    const error = thrownBy(call(url, { timeoutMs: 5_000 }));
    await begun;
    await virtualClock.advance(5_000);
    expect(await error).toMatchObject({ name: 'TimeoutError', code: 'RUNSPAN_TIMEOUT' });
    expect(String(await error)).toMatch(/no response within 5000 ms$/);
    await closed;
    expect([seen.length, attempts]).toEqual([1, 1]);
  });

  test.each([...reading.map((each) => [200, each] as const), ...kinds.map((each) => [503, each] as const)])(
    'ends $name within the body of a response with %i',
    async (status, { call }) => {
      const { url, seen, begun, closed } = await halting(partly(status));
      const error = thrownBy(call(url, { timeoutMs: 5_000 }));
      await begun;
      // After the response headers, another timer runs.
      for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
      await virtualClock.advance(5_000);
      expect(await error).toMatchObject({ name: 'TimeoutError' });
      await closed;
      expect(seen).toHaveLength(1);
    },
  );
});

describe('a connection', () => {
  test.each(kinds)(
    'that is reset before the response fails $name, which is retried only if idempotent',
    async (kind) => {
      const { url, seen } = await serve((request) => request.socket.resetAndDestroy());
      const error = await thrownBy(kind.call(url));
      expect(error).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE', mayHaveArrived: true });
      expect(seen).toHaveLength(kind.isIdempotent ? 3 : 1);
    },
  );

  test.each(reading)('that is reset within the body of an error response fails $name with its status', async (kind) => {
    const { url, seen } = await serve((request, response) => {
      response.writeHead(400).write('{"detail":', () => setImmediate(() => request.socket.resetAndDestroy()));
    });
    expect(await thrownBy(kind.call(url))).toMatchObject({ status: 400, detail: undefined });
    expect(seen).toHaveLength(1);
  });

  test.each(reading)('that is reset within the body fails $name, which is retried only if idempotent', async (kind) => {
    const { url, seen } = await serve((request, response) => {
      response.write('{"a":', () => setImmediate(() => request.socket.resetAndDestroy()));
    });
    const error = await thrownBy(kind.call(url));
    expect(error).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE', mayHaveArrived: true });
    expect(seen).toHaveLength(kind.isIdempotent ? 3 : 1);
  });

  test.each(kinds)(
    'that cannot be made fails $name, which cannot have arrived and is retried',
    async ({ call, waits }) => {
      const server = createServer();
      const url = await listen(server);
      await new Promise((resolve) => server.close(resolve));
      const error = await thrownBy(call(url));
      expect(error).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE', mayHaveArrived: false });
      expect(String(error)).toContain('no program listens on this host and port');
      expect([attempts, waits.length]).toEqual([3, 2]);
    },
  );

  test.each([
    'garbage\r\n\r\n',
    'HTTP/1.1 200 OK\r\nbad header\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n',
  ])('with the invalid response %j may have delivered the request', async (answer) => {
    const server = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(answer)));
    const error = await thrownBy(makeApi(await listenInTest(server)).json(POST));
    expect(error).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE', mayHaveArrived: true });
    expect(String(error)).toMatch(/: the response is not HTTP$/);
  });
});

test.each([
  [GET, 3],
  [POST, 2],
])('a reused connection that breaks at the next call retries $0.method only if idempotent', async (call, times) => {
  const { url, seen, connections } = await serve((request, response) => {
    if (seen.length === 2) request.socket.resetAndDestroy();
    else response.end('{}');
  });
  const api = makeApi(url, {
    hooks: { onRetry: ({ delayMs }) => void setImmediate(() => void virtualClock.advance(delayMs + 1)) },
  });
  await api.json(call);
  await new Promise((resolve) => setImmediate(resolve));
  const ended = await api.json(call).catch((error: Error) => error.name);
  expect([ended, seen.length]).toEqual([times === 3 ? {} : 'ConnectionError', times]);
  // The pool opens another connection if a call follows before the first connection has ended.
  expect(connections()).toBeLessThanOrEqual(times);
});

describe('a busy service', () => {
  const once429: RequestListener = (_, response) => response.writeHead(429, { 'retry-after': '7' }).end();

  test.each(kinds)('with one 429 delays $name as requested, and receives it once more', async ({ call, waits }) => {
    const { url, seen } = await serve((request, response) =>
      seen.length === 1 ? once429(request, response) : response.end('{}'),
    );
    await call(url);
    expect([seen.length, waits]).toEqual([2, [7_000]]);
    expect(seen[1]?.body).toBe(seen[0]?.body);
  });

  test.each(kinds)('with 429 for ever receives $name as often as `maxRetries` allows', async ({ call, waits }) => {
    const { url, seen } = await serve(once429);
    for (const [maxRetries, times] of [
      [0, 1],
      [1, 2],
      [undefined, 3],
    ] as const) {
      const before = seen.length;
      const options = maxRetries === undefined ? {} : { maxRetries };
      expect(await thrownBy(call(url, options))).toMatchObject({ code: 'RUNSPAN_RATE_LIMITED' });
      expect([seen.length - before, waits.length]).toEqual([times, times - 1]);
    }
  });

  test.each(kinds)('that requests a longer delay than the timeout fails $name at once', async ({ call, waits }) => {
    const { url, seen } = await serve(once429);
    expect(await thrownBy(call(url, { timeoutMs: 7_000 }))).toMatchObject({ status: 429 });
    expect([seen.length, waits]).toEqual([1, []]);
  });

  test.each(kinds.flatMap((each) => [500, 502, 503, 504, 408].map((status) => [status, each] as const)))(
    'with %i receives $name again only if idempotent',
    async (status, { call, isIdempotent }) => {
      const { url, seen } = await serve((_, response) => response.writeHead(status).end());
      expect(await thrownBy(call(url))).toMatchObject({ name: 'ApiError', status });
      expect(seen).toHaveLength(isIdempotent ? 3 : 1);
    },
  );
});

describe('a response', () => {
  test.each(kinds.flatMap((each) => [301, 302, 303, 307, 308].map((status) => [status, each] as const)))(
    'with %i is not followed, and its target receives no request and no key [security 4]',
    async (status, { call }) => {
      const elsewhere = await serve();
      const { url, seen } = await serve((_, response) =>
        response.writeHead(status, { location: `${elsewhere.url}/other` }).end(),
      );
      const error = await thrownBy(call(url));
      expect(error).toMatchObject({ code: 'RUNSPAN_UNEXPECTED_STATUS', status });
      expect([seen.length, elsewhere.connections()]).toEqual([1, 0]);
    },
  );

  test.each(reading.flatMap((each) => ['{"a":', '<html>', 'null null', '{}x'].map((body) => [body, each] as const)))(
    'with the body %s is not JSON, and is not requested again',
    async (body, { call }) => {
      const { url, seen } = await serve((_, response) => response.end(body));
      expect(await thrownBy(call(url))).toMatchObject({
        name: 'InvalidResponseError',
        code: 'RUNSPAN_INVALID_RESPONSE',
      });
      expect(seen).toHaveLength(1);
    },
  );

  test.each([
    [262_143, 262_143],
    [262_144, 262_144],
    [262_145, 262_144],
  ])('with an error of %i bytes is read up to %i bytes [security 7]', async (bytes, read) => {
    const { url } = await serve((_, response) => response.writeHead(400).end('x'.repeat(bytes)));
    const error = await thrownBy(makeApi(url).json(GET));
    expect(error.body).toHaveLength(read);
  });
});

describe('a signal', () => {
  const reason = new Error('enough');

  test.each(kinds)('that was aborted before sends nothing: $name', async ({ call }) => {
    const { url, connections } = await serve();
    const signal = AbortSignal.abort(reason);
    expect(await thrownBy(call(url, { signal }))).toBe(reason);
    expect([connections(), attempts, getEventListeners(signal, 'abort').length]).toEqual([0, 0, 0]);
  });

  test.each<[string, (response: ServerResponse) => void, Kind[]]>([
    ['before the response headers', silent, kinds],
    ['within the body', partly(200), reading],
    ['within the body of a failure', partly(503), kinds],
  ])('ends any call and its connection %s', async (_, begin, some) => {
    for (const { call } of some) {
      const controller = new AbortController();
      const { url, seen, begun, closed } = await halting(begin);
      const error = thrownBy(call(url, { signal: controller.signal }));
      await begun;
      controller.abort(reason);
      expect(await error).toBe(reason);
      await closed;
      expect([seen.length, getEventListeners(controller.signal, 'abort').length]).toEqual([1, 0]);
    }
  });

  test.each(kinds)('ends $name while it waits for a retry', async ({ call }) => {
    const controller = new AbortController();
    const { url, seen } = await serve((_, response) => {
      response.writeHead(429, { 'retry-after': '10' }).end();
    });
    const hooks = { onRetry: endedBy(() => controller.abort(reason)) };
    const options = { signal: controller.signal };
    const other = call === kinds[2]?.call ? submitFeedback(`${url}/t/token`, {}, { hooks, ...options }) : undefined;
    expect(await thrownBy(other ?? makeApi(url, { hooks }).json({ ...POST, options }))).toBe(reason);
    expect([seen.length, getEventListeners(controller.signal, 'abort').length]).toEqual([1, 0]);
  });

  test('that a hook aborts ends the call at each step', async () => {
    const { url, seen } = await serve((_, response) => response.writeHead(seen.length === 1 ? 200 : 503).end('{}'));
    for (const name of ['onRequest', 'onResponse', 'onRetry']) {
      const controller = new AbortController();
      const hooks = { [name]: () => controller.abort(reason) };
      const call = makeApi(url, { hooks }).json({ ...GET, options: { signal: controller.signal } });
      expect(await thrownBy(call)).toBe(reason);
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    }
  });

  test('has no listeners after calls, and can belong to many calls without a warning', async () => {
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const { url } = await serve((request, response) => response.writeHead(request.url === '/no' ? 404 : 200).end('{}'));
    const api = makeApi(url);
    const paths = Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? '/yes' : '/no'));
    const made = paths.map((path) => api.json({ ...GET, path, options: { signal } }));
    const results = await Promise.allSettled(made);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(15);
    await new Promise((resolve) => setImmediate(resolve));
    expect([getEventListeners(signal, 'abort').length, warnings]).toEqual([0, []]);
  });
});

describe('a closed client', () => {
  const closed = { code: 'RUNSPAN_NO_RESPONSE', message: expect.stringMatching(/the client was closed$/) };

  test('ends calls that wait for a response, without a retry', async () => {
    const { url, seen, begun } = await halting(silent);
    const api = makeApi(url);
    const error = thrownBy(api.json(GET));
    await begun;
    await api.close();
    expect(await error).toMatchObject(closed);
    expect(seen).toHaveLength(1);
  });

  test('ends calls that wait for a retry', async () => {
    const { url, seen } = await serve((_, response) => response.writeHead(429, { 'retry-after': '10' }).end());
    let waits = 0;
    const end = endedBy(() => api.close());
    const onRetry = (): void => {
      waits++;
      end();
    };
    const api = makeApi(url, { hooks: { onRetry } });
    expect(await thrownBy(api.json(GET))).toMatchObject(closed);
    expect([seen.length, waits]).toEqual([1, 1]);
  });

  test('sends nothing, and calls no hook', async () => {
    const { url, connections } = await serve();
    const onRetry = vi.fn();
    const api = makeApi(url, { hooks: { onRetry } });
    await api.close();
    expect(await thrownBy(api.json(GET))).toMatchObject({ ...closed, mayHaveArrived: false });
    expect(await thrownBy(api.json(POST))).toMatchObject({ ...closed, mayHaveArrived: false });
    expect(await thrownBy(api.open(POST))).toMatchObject({ ...closed, mayHaveArrived: false });
    expect([connections(), onRetry.mock.calls]).toEqual([0, []]);
  });
});
