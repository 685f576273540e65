import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { flushedAfter } from '#src/instrument/with-flush.ts';
import type { FlushLimit, FlushResult } from '#src/run/sink.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { gate } from '../support/gate.ts';
import { logLines } from '../support/log-lines.ts';

const NEXT = Symbol.for('@next/request-context');
const VERCEL = Symbol.for('@vercel/request-context');

/** Returns a flush that the test ends, the time limits that it received, and the `waitUntil` of a platform. */
function flushing() {
  const done = gate<FlushResult>();
  const limits: unknown[] = [];
  const works: Promise<unknown>[] = [];
  const flush = (limit: FlushLimit): Promise<FlushResult> => {
    limits.push(limit.timeoutMs);
    return done;
  };
  return {
    limits,
    works,
    end: () => done.open({ ok: true, pending: 0 }),
    waitUntil: (work: Promise<unknown>): void => void works.push(work),
    wrap: <Fn extends (...args: never[]) => unknown>(handler: Fn, options?: unknown): Fn =>
      flushedAfter(handler, options as FlushLimit, flush),
  };
}

/** Whether a promise has settled after three turns of the event loop. */
async function isSettled(promise: Promise<unknown> | undefined): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  promise?.then(settle, settle);
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

function streamed(...chunks: string[]): Response {
  return new Response(Readable.toWeb(Readable.from(chunks.map((chunk) => Buffer.from(chunk)))) as ReadableStream);
}

const respond = async (_request: object, _context: object): Promise<Response> => streamed('a');

afterEach(() => {
  Reflect.deleteProperty(globalThis, NEXT);
  Reflect.deleteProperty(globalThis, VERCEL);
});

describe('a handler', () => {
  it('resolves with its value after the flush', async () => {
    const { wrap, limits, end } = flushing();
    const value = { statusCode: 200 };
    const answer = wrap(async () => value)();
    expect(await isSettled(answer)).toBe(false);
    end();
    expect(await answer).toBe(value);
    expect(limits).toEqual([2_000]);
  });

  it('rejects with its error after the flush, and causes one unhandled rejection', async () => {
    const { wrap, end } = flushing();
    const unhandled = unhandledRejections();
    const error = new Error('mine');
    const failing = wrap(() => Promise.reject(error));
    const answer = failing();
    expect(await isSettled(answer)).toBe(false);
    end();
    await expect(answer).rejects.toBe(error);
    void failing();
    await isSettled(undefined);
    expect(await unhandled()).toEqual([error]);
  });

  it('returns or throws immediately if it is synchronous, and starts a flush', () => {
    const { wrap, limits } = flushing();
    const error = new Error('mine');
    const failing = (): never => {
      throw error;
    };
    expect(wrap(() => 7)()).toBe(7);
    expect(wrap(failing)).toThrow(error);
    expect(limits).toEqual([2_000, 2_000]);
  });

  it('may return a lazy thenable, whose `then` is called once', async () => {
    const { wrap, end } = flushing();
    end();
    const then = vi.fn((resolve: (value: string) => void) => resolve('lazy'));
    expect(await wrap(() => ({ then }))()).toBe('lazy');
    expect(then).toHaveBeenCalledTimes(1);
  });

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['text', 'string'],
    [class Handler {}, 'a class'],
  ])('that is not a function is returned, and one line is logged: %s', (handler, got) => {
    const lines = logLines();
    expect(flushing().wrap(handler as never)).toBe(handler);
    expect(lines).toEqual([`warn: withFlush(handler): expected a function, got ${got}; nothing is flushed.`]);
  });
});

describe('the time limit of the flush', () => {
  const limitFor = (options: unknown, ...args: unknown[]): unknown => {
    const { wrap, limits } = flushing();
    wrap((..._: unknown[]) => 1, options)({}, ...args);
    return limits[0];
  };

  it.each([
    [{ timeoutMs: 500 }, 500],
    [{ timeoutMs: 0 }, 0],
    // A timer with a longer delay would fire at once.
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 2 ** 31 - 1],
    [{}, 2_000],
    [undefined, 2_000],
  ])('is the limit of the options: %j', (options, limit) => {
    expect(limitFor(options)).toBe(limit);
  });

  it.each([{ timeoutMs: -1 }, { timeoutMs: '5' }, { timeoutMs: Number.NaN }, null, 500, { timeoutMS: 5 }])(
    'is the default if the options are invalid, and one line is logged: %j',
    (options) => {
      const lines = logLines();
      expect(limitFor(options)).toBe(2_000);
      expect(lines).toEqual([
        'warn: withFlush: expected { timeoutMs } with a number from 0; anything else is ignored.',
      ]);
    },
  );

  it.each([
    [2_251, 2_000],
    [2_250, 2_000],
    [2_249, 1_999],
    [250, 0],
    [100, 0],
    [Number.NaN, 2_000],
  ])('leaves 250 ms of the remaining time of AWS Lambda: %d', (left, limit) => {
    const context = { getRemainingTimeInMillis: () => left };
    expect(limitFor(undefined, context)).toBe(limit);
    expect(limitFor(undefined, 'a response stream', context)).toBe(limit);
  });

  it('is computed when the handler has resolved', async () => {
    const { wrap, limits, end } = flushing();
    end();
    let left = 3_000;
    const handler = async (_event: object, _context: object): Promise<void> => {
      left = 1_000;
    };
    await wrap(handler)({}, { getRemainingTimeInMillis: () => left });
    expect(limits).toEqual([750]);
  });
});

describe('if the platform has waitUntil,', () => {
  type WaitUntil = (work: Promise<unknown>) => void;
  const ofHost = (name: symbol) => (waitUntil: WaitUntil) => {
    Object.assign(globalThis, { [name]: { get: () => ({ waitUntil }) } });
    return [{}];
  };

  it.each<[string, (waitUntil: WaitUntil) => unknown[]]>([
    ['of the third argument', (waitUntil) => [{}, {}, { waitUntil }]],
    ['of the second argument', (waitUntil) => [{}, { waitUntil }]],
    ["of Next's context", ofHost(NEXT)],
    ["of Vercel's context", ofHost(VERCEL)],
  ])('the value is returned immediately and the platform waits for the flush: %s', async (_, argumentsFor) => {
    const { wrap, limits, works, waitUntil, end } = flushing();
    const handler = async (..._args: unknown[]): Promise<string> => 'answer';
    expect(await wrap(handler)(...argumentsFor(waitUntil))).toBe('answer');
    expect([limits, works.length]).toEqual([[2_000], 1]);
    expect(await isSettled(works[0])).toBe(false);
    end();
    expect(await works[0]).toBeUndefined();
  });

  it('it is called as a method of the request context at the time of the call', async () => {
    const { wrap, works } = flushing();
    class Context {
      readonly #works = works;
      waitUntil(work: Promise<unknown>): void {
        this.#works.push(work);
      }
    }
    Object.assign(globalThis, { [VERCEL]: { get: () => new Context() } });
    await wrap(async () => void Reflect.deleteProperty(globalThis, VERCEL))();
    expect(works).toHaveLength(1);
  });

  it('but it throws, the handler resolves after the flush', async () => {
    logLines();
    const { wrap, end } = flushing();
    const waitUntil = (): never => {
      throw new Error('outside of a request');
    };
    const answer = wrap(async (..._: unknown[]) => 'answer')({}, { waitUntil });
    expect(await isSettled(answer)).toBe(false);
    end();
    expect(await answer).toBe('answer');
  });
});

describe('a Response with a body', () => {
  it('is returned immediately, and its reader receives the end after the flush', async () => {
    const { wrap, limits, end } = flushing();
    const response = streamed('a');
    const given = await wrap(async () => response)();
    expect(given).toBe(response);
    const reader = (given.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('a');
    expect(limits).toEqual([]);
    const last = reader.read();
    expect(await isSettled(last)).toBe(false);
    expect(limits).toEqual([2_000]);
    end();
    expect(await last).toEqual({ done: true, value: undefined });
  });

  it.each<[string, (response: Response) => Promise<string>]>([
    ['text()', (response) => response.text()],
    ['a loop', async ({ body }) => text(body as ReadableStream)],
    ['a transform', async ({ body }) => text((body as ReadableStream).pipeThrough(new TransformStream()))],
  ])('is complete for %s, and is flushed at its end', async (_, read) => {
    const { wrap, limits, end } = flushing();
    const whole = read(await wrap(async () => streamed('one ', 'two'))());
    expect(await isSettled(whole)).toBe(false);
    expect(limits).toEqual([2_000]);
    end();
    expect(await whole).toBe('one two');
  });

  it('that is read as a Node stream for longer than the limit is flushed when it ends', async () => {
    const { wrap, limits, works, waitUntil, end } = flushing();
    const slow = gate<void>();
    const body = new ReadableStream({
      async pull(controller) {
        await slow;
        controller.enqueue(Buffer.from('late'));
        controller.close();
      },
    });
    const handler = async (_request: object, _context: object): Promise<Response> => new Response(body);
    const given = await wrap(handler, { timeoutMs: 1 })({}, { waitUntil });
    const whole = text(Readable.fromWeb(given.body as Parameters<typeof Readable.fromWeb>[0]));
    // The limit of a later call expires after the limit of this call.
    const later = flushing();
    later.end();
    const unread = await later.wrap(respond, { timeoutMs: 1 })({}, later);
    await later.works[0];
    expect(unread.bodyUsed).toBe(false);
    expect(limits).toEqual([]);
    slow.open();
    expect(await whole).toBe('late');
    await isSettled(works[0]);
    expect(limits).toEqual([1]);
    end();
  });

  it('that fails rejects the read with the same error after the flush', async () => {
    const { wrap, limits, end } = flushing();
    const error = new Error('the model failed');
    const body = new ReadableStream({ pull: (controller) => controller.error(error) });
    const reading = (await wrap(async () => new Response(body))()).body?.getReader().read();
    expect(await isSettled(reading)).toBe(false);
    expect(limits).toHaveLength(1);
    end();
    await expect(reading).rejects.toBe(error);
  });

  it.each([
    ['is missing', new Response(null, { status: 204 })],
    ['is locked', streamed('a')],
  ])('that %s is returned after the flush', async (kind, response) => {
    if (kind === 'is locked') response.body?.getReader();
    const { wrap, end } = flushing();
    const answer = wrap(async () => response)();
    expect(await isSettled(answer)).toBe(false);
    end();
    expect(await answer).toBe(response);
  });

  it('is flushed by the platform at its end, and its reader does not wait', async () => {
    const { wrap, limits, works, waitUntil, end } = flushing();
    const given = await wrap(respond)({}, { waitUntil });
    const reader = (given.body as ReadableStream).getReader();
    await reader.read();
    expect([limits, works.length]).toEqual([[], 1]);
    expect((await reader.read()).done).toBe(true);
    expect(await isSettled(works[0])).toBe(false);
    expect(limits).toEqual([2_000]);
    end();
    expect(await works[0]).toBeUndefined();
  });
});
