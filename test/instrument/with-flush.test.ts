import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { flushedAfter } from '../../src/instrument/with-flush.ts';
import type { FlushLimit, FlushResult } from '../../src/run/sink.ts';
import { gate } from '../support/gate.ts';
import { told } from '../support/told.ts';

const NEXT = Symbol.for('@next/request-context');
const VERCEL = Symbol.for('@vercel/request-context');

/** A flush that the test ends, with the limits that it has been called with. */
function heldFlush() {
  const done = gate<FlushResult>();
  const limits: unknown[] = [];
  const began = gate();
  const flush = (limit: FlushLimit): Promise<FlushResult> => {
    limits.push(limit.timeoutMs);
    began.open();
    return done;
  };
  return { flush, limits, began, end: () => done.open({ ok: true, pending: 0 }) };
}

/** Whether a promise has settled when everything that is due has happened. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  promise.then(settle, settle);
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

/** What a platform takes over, in the order in which it was handed. */
function platform() {
  const works: Promise<unknown>[] = [];
  return { works, waitUntil: (work: Promise<unknown>): void => void works.push(work) };
}

function streamed(...chunks: string[]): Response {
  return new Response(Readable.toWeb(Readable.from(chunks.map((chunk) => Buffer.from(chunk)))) as ReadableStream);
}

afterEach(() => {
  Reflect.deleteProperty(globalThis, NEXT);
  Reflect.deleteProperty(globalThis, VERCEL);
});

describe('a handler', () => {
  it('answers when everything is flushed, with the same value', async () => {
    const { flush, limits, began, end } = heldFlush();
    const value = { statusCode: 200 };
    const answer = flushedAfter(async () => value, undefined, flush)();
    await began;
    expect(await isSettled(answer)).toBe(false);
    end();

    expect(await answer).toBe(value);
    expect(limits).toEqual([2_000]);
  });

  it('fails with the same error, when everything is flushed', async () => {
    const { flush, began, end } = heldFlush();
    const error = new Error('mine');
    const answer = flushedAfter(() => Promise.reject(error), undefined, flush)();
    await began;
    expect(await isSettled(answer)).toBe(false);
    end();

    await expect(answer).rejects.toBe(error);
  });

  it('answers and throws at once where it did before, and is flushed all the same', () => {
    const { flush, limits } = heldFlush();
    const error = new Error('mine');
    const failing = (): never => {
      throw error;
    };

    expect(flushedAfter(() => 7, undefined, flush)()).toBe(7);
    expect(flushedAfter(failing, undefined, flush)).toThrow(error);
    expect(limits).toEqual([2_000, 2_000]);
  });

  it('waits for a thenable that is no promise, and asks it once', async () => {
    const { flush, end } = heldFlush();
    end();
    const then = vi.fn((resolve: (value: string) => void) => resolve('lazy'));
    const answer = flushedAfter(() => ({ then }), undefined, flush)();

    expect(await answer).toBe('lazy');
    expect(then).toHaveBeenCalledTimes(1);
  });

  it('leaves a rejection unhandled once, as ever', async () => {
    const { flush, end } = heldFlush();
    end();
    const unhandled: unknown[] = [];
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', (reason) => unhandled.push(reason));
    const error = new Error('mine');
    void flushedAfter(() => Promise.reject(error), undefined, flush)();
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    process.removeAllListeners('unhandledRejection');
    for (const listener of listeners) process.on('unhandledRejection', listener);

    expect(unhandled).toEqual([error]);
  });

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['text', 'string'],
  ])('that is none is given back, and one line says so: %s', (handler, got) => {
    const lines = told();

    expect(flushedAfter(handler as unknown as () => void, undefined, heldFlush().flush)).toBe(handler);
    expect(lines).toEqual([`warn: withFlush(handler): expected a function, got ${got}; nothing is flushed.`]);
  });
});

describe('a class', () => {
  it('is given back as it is, and one line says so', () => {
    const lines = told();
    class Handler {}

    expect(flushedAfter(Handler as never, undefined, heldFlush().flush)).toBe(Handler);
    expect(lines).toEqual(['warn: withFlush(handler): expected a function, got a class; nothing is flushed.']);
  });
});

describe('the limit of the flush', () => {
  const limitFor = (options: unknown, ...args: unknown[]): unknown => {
    const { flush, limits } = heldFlush();
    flushedAfter((..._: unknown[]) => 1, options as FlushLimit, flush)({}, ...args);
    return limits[0];
  };
  const leaving = (ms: unknown) => ({ getRemainingTimeInMillis: () => ms });

  it.each([
    [{ timeoutMs: 500 }, 500],
    [{ timeoutMs: 0 }, 0],
    // A longer delay would make a timer fire at once.
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 2 ** 31 - 1],
    [{}, 2_000],
    [undefined, 2_000],
  ])('is that of the options: %j', (options, limit) => {
    expect(limitFor(options)).toBe(limit);
  });

  it.each<[unknown, string]>([
    [{ timeoutMs: -1 }, '`timeoutMs` the number -1'],
    [{ timeoutMs: '5' }, '`timeoutMs` "5"'],
    [{ timeoutMs: Number.NaN }, '`timeoutMs` the number NaN'],
    [null, 'null'],
    [500, 'the number 500'],
    ['x', '"x"'],
  ])('is the default where it does not hold, and one line says so, as for a flush: %j', (options, got) => {
    const lines = told();

    expect(limitFor(options)).toBe(2_000);
    expect(lines).toEqual([
      `warn: withFlush: expected { timeoutMs } with a number from 0, got ${got}; the limit is 2 seconds.`,
    ]);
  });

  it('leaves out an option that there is not, and one line says so', () => {
    const lines = told();

    expect(limitFor({ timeoutMS: 5 })).toBe(2_000);
    expect(limitFor({ timeoutMs: 7, signal: 'go' })).toBe(7);
    expect(lines).toEqual(['warn: withFlush: expected { timeoutMs }, got `timeoutMS`; left out.']);
  });

  it.each([
    [2_251, 2_000],
    [2_250, 2_000],
    [2_249, 1_999],
    [250, 0],
    [100, 0],
    [Number.NaN, 2_000],
  ])('leaves a quarter of a second of what Lambda has left: %d', (left, limit) => {
    expect(limitFor(undefined, leaving(left))).toBe(limit);
    expect(limitFor(undefined, 'a response stream', leaving(left))).toBe(limit);
  });

  it('is taken when the handler has answered, since the handler takes time too', async () => {
    const { flush, limits, end } = heldFlush();
    end();
    let left = 3_000;
    const context = { getRemainingTimeInMillis: () => left };
    const handler = async (_event: object, _context: object): Promise<void> => {
      left = 1_000;
    };
    await flushedAfter(handler, undefined, flush)({}, context);

    expect(limits).toEqual([750]);
  });
});

describe('where the platform has waitUntil', () => {
  it.each<[string, (waitUntil: (work: Promise<unknown>) => void) => unknown[]]>([
    ['of the third argument', (waitUntil) => [{}, {}, { waitUntil }]],
    ['of the second argument', (waitUntil) => [{}, { waitUntil }]],
    [
      "of Next's context",
      (waitUntil) => {
        Object.assign(globalThis, { [NEXT]: { get: () => ({ waitUntil }) } });
        return [{}];
      },
    ],
    [
      "of Vercel's context",
      (waitUntil) => {
        Object.assign(globalThis, { [VERCEL]: { get: () => ({ waitUntil }) } });
        return [{}];
      },
    ],
  ])('the answer is given at once, and the flush handed over: to that %s', async (_, argumentsFor) => {
    const { flush, limits, end } = heldFlush();
    const { works, waitUntil } = platform();
    const handler = async (..._args: unknown[]): Promise<string> => 'answer';

    expect(await flushedAfter(handler, undefined, flush)(...argumentsFor(waitUntil))).toBe('answer');
    expect(limits).toEqual([2_000]);
    expect(works).toHaveLength(1);
    expect(await isSettled(works[0] as Promise<unknown>)).toBe(false);
    end();
    expect(await works[0]).toBeUndefined();
  });

  it('it is called on its own object, and the context of the request is asked when the handler is called', async () => {
    const { flush } = heldFlush();
    const works: Promise<unknown>[] = [];
    class Context {
      readonly #works = works;
      waitUntil(work: Promise<unknown>): void {
        this.#works.push(work);
      }
    }
    Object.assign(globalThis, { [VERCEL]: { get: () => new Context() } });
    const handler = async (): Promise<void> => {
      Reflect.deleteProperty(globalThis, VERCEL);
    };
    await flushedAfter(handler, undefined, flush)();

    expect(works).toHaveLength(1);
  });

  it('and refuses the flush, the answer waits for it', async () => {
    told();
    const { flush, began, end } = heldFlush();
    const context = {
      waitUntil: () => {
        throw new Error('outside of a request');
      },
    };
    const answer = flushedAfter(async (..._: unknown[]) => 'answer', undefined, flush)({}, context);
    await began;
    expect(await isSettled(answer)).toBe(false);
    end();

    expect(await answer).toBe('answer');
  });
});

describe('a Response with a body', () => {
  it('is given at once, the same; its reader is told of the end when everything is flushed', async () => {
    const { flush, limits, end } = heldFlush();
    const response = streamed('a', 'b');
    const given = await flushedAfter(async () => response, undefined, flush)();
    expect(given).toBe(response);
    const reader = (given.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('a');
    expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('b');
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
    ['arrayBuffer()', async (response) => Buffer.from(await response.arrayBuffer()).toString()],
    ['a transform', async ({ body }) => text((body as ReadableStream).pipeThrough(new TransformStream()))],
  ])('is whole for %s, and flushed at its end', async (_, read) => {
    const { flush, limits, end } = heldFlush();
    const given = await flushedAfter(async () => streamed('one ', 'two'), undefined, flush)();
    const whole = read(given);
    expect(await isSettled(whole)).toBe(false);
    expect(limits).toEqual([2_000]);
    end();

    expect(await whole).toBe('one two');
  });

  it('that is read as a Node stream for longer than the limit is flushed when it ends', async () => {
    const { flush, limits, end } = heldFlush();
    const { works, waitUntil } = platform();
    const slow = gate<void>();
    const body = new ReadableStream({
      async pull(controller) {
        await slow;
        controller.enqueue(Buffer.from('late'));
        controller.close();
      },
    });
    const handler = async (_request: object, _context: object): Promise<Response> => new Response(body);
    const given = await flushedAfter(handler, { timeoutMs: 1 }, flush)({}, { waitUntil });
    const whole = text(Readable.fromWeb(given.body as Parameters<typeof Readable.fromWeb>[0]));
    // The limit of a later call expires after the limit of this call.
    const later = platform();
    const unread = await flushedAfter(
      async (_request: object, _context: object) => streamed('unread'),
      { timeoutMs: 1 },
      async () => ({ ok: true, pending: 0 }),
    )({}, later);
    await later.works[0];
    expect(unread.bodyUsed).toBe(false);
    expect(limits).toEqual([]);
    slow.open();
    expect(await whole).toBe('late');
    await isSettled(works[0] as Promise<unknown>);
    expect(limits).toEqual([1]);
    end();
  });

  it('that fails gives the same error to its reader, when everything is flushed', async () => {
    const { flush, limits, end } = heldFlush();
    const error = new Error('the model is gone');
    const body = new ReadableStream({ pull: (controller) => controller.error(error) });
    const given = await flushedAfter(async () => new Response(body), undefined, flush)();
    const reading = given.body?.getReader().read() as Promise<unknown>;
    expect(await isSettled(reading)).toBe(false);
    expect(limits).toHaveLength(1);
    end();

    await expect(reading).rejects.toBe(error);
  });

  it.each([
    ['none', () => new Response(null, { status: 204 })],
    [
      'one that is read already',
      () => {
        const response = streamed('a');
        response.body?.getReader();
        return response;
      },
    ],
  ])('but has %s waits for the flush', async (_, respond) => {
    const { flush, began, end } = heldFlush();
    const answer = flushedAfter(async () => respond(), undefined, flush)();
    await began;
    expect(await isSettled(answer)).toBe(false);
    end();

    expect((await answer).status).toBeGreaterThan(0);
  });

  it('is handed over until its end where the platform has waitUntil, and its reader waits for nothing', async () => {
    const { flush, limits, end } = heldFlush();
    const { works, waitUntil } = platform();
    const handler = async (_request: object, _context: object): Promise<Response> => streamed('a');
    const given = await flushedAfter(handler, undefined, flush)({}, { waitUntil });
    const reader = (given.body as ReadableStream).getReader();
    await reader.read();
    expect(works).toHaveLength(1);
    expect(limits).toEqual([]);
    expect((await reader.read()).done).toBe(true);
    expect(await isSettled(works[0] as Promise<unknown>)).toBe(false);
    expect(limits).toEqual([2_000]);
    end();

    expect(await works[0]).toBeUndefined();
  });

  it('is not waited for by the platform when nobody begins to read it', async () => {
    const { flush, limits, end } = heldFlush();
    end();
    const { works, waitUntil } = platform();
    const handler = async (_request: object, _context: object): Promise<Response> => streamed('a');
    const answer = await flushedAfter(handler, { timeoutMs: 1 }, flush)({}, { waitUntil });
    await works[0];

    expect(limits).toEqual([1]);
    // Held until here: an answer that has been collected is waited for no longer either.
    expect(answer.bodyUsed).toBe(false);
  });
});
