import { types } from 'node:util';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { flushLimitMs } from '../run/flush-limit.ts';
import type { FlushLimit, FlushResult } from '../run/sink.ts';
import { followIterator } from './iterator.ts';
import { abandonment, isObject, type Method, type StreamObserver, type Watched } from './observer.ts';
import { thenOf } from './promise.ts';
import { followReadableStream, isReadableStream } from './stream.ts';
import { disguised, isClass } from './traceable.ts';

type Callable = (...args: unknown[]) => unknown;
type Flush = (limit: FlushLimit) => Promise<FlushResult>;

const FLUSH_TIMEOUT_MS = 2_000;

/** Returns the handler with a flush after each of its calls. */
export function flushedAfter<Handler extends CallableFunction>(
  handler: Handler,
  options: FlushLimit | undefined,
  flush: Flush,
): Handler {
  const isFunction = typeof handler === 'function';
  if (!isFunction || isClass(handler)) {
    const got = isFunction ? 'a class' : handler === null ? 'null' : typeof handler;
    diagnostics.warnOnce(
      `withFlush ${got}`,
      `withFlush(handler): expected a function, got ${got}; nothing is flushed.`,
    );
    return handler;
  }
  const fn = handler as unknown as Callable;
  const limitMs = flushLimitMs('withFlush', options, FLUSH_TIMEOUT_MS);
  const wrapper = {
    flushing(this: unknown, ...args: unknown[]): unknown {
      const call = new HandlerCall(args, limitMs, flush);
      let result: unknown;
      try {
        result = Reflect.apply(fn, this, args);
      } catch (thrown) {
        void call.flushed();
        throw thrown;
      }
      const then = isObject(result) ? thenOf(result) : undefined;
      if (then !== undefined) return call.settled(result as object, then);
      // A result that is not a promise cannot be delayed. The flush continues after it.
      if (!call.followsBody(result)) void call.flushed();
      return result;
    },
  };
  return disguised(wrapper.flushing, fn) as unknown as Handler;
}

/** One call of a handler, from its arguments to the flush. */
class HandlerCall {
  readonly #args: readonly unknown[];
  readonly #limitMs: number;
  readonly #flush: Flush;
  /** Looked up when the handler is called, because the context of a request ends with the request. */
  #waitUntil: WaitUntil | undefined;
  #flushing: Promise<void> | undefined;

  constructor(args: readonly unknown[], limitMs: number, flush: Flush) {
    this.#args = args;
    this.#limitMs = limitMs;
    this.#flush = flush;
    this.#waitUntil = waitUntilOf(args);
  }

  /** Settles like the thenable, after the flush. */
  async settled(thenable: object, then: Method): Promise<unknown> {
    try {
      const value = await new Promise((resolve, reject) => Reflect.apply(then, thenable, [resolve, reject]));
      if (!this.followsBody(value)) await this.flushed();
      return value;
    } catch (error) {
      await this.flushed();
      throw error;
    }
  }

  /** Flushes once. Returns the flush if the response must wait for it, or undefined if the platform waits. */
  flushed(): Promise<void> | undefined {
    this.#flushing ??= this.#flushNow();
    return this.#waitUntil?.(this.#flushing) === true ? undefined : this.#flushing;
  }

  /** Whether the value is a generator or a response with an unread body, so that the flush follows its end. */
  followsBody(value: unknown): boolean {
    const body = new BodyObserver(() => this.flushed());
    if (guard('withFlush', () => followBody(value, body)) !== true) return false;
    if (this.#waitUntil !== undefined && !this.#waitUntil(this.#flushAfter(body))) {
      this.#waitUntil = undefined;
      body.onEnd = () => this.flushed();
    }
    return true;
  }

  async #flushAfter(body: BodyObserver): Promise<void> {
    await new Promise<void>((resolve) => {
      // Nobody may ever read the body, for example that of a response to HEAD. The timer keeps the process alive, because
      // the platform waits for this promise.
      const timer = setTimer(() => body.hasBegun || resolve(), this.#limitMs);
      body.onEnd = () => {
        clearTimer(timer);
        resolve();
        return undefined;
      };
    });
    await this.#flushNow();
  }

  async #flushNow(): Promise<void> {
    const timeoutMs = Math.min(this.#limitMs, remainingMs(this.#args));
    await guard('withFlush', () => this.#flush({ timeoutMs }));
  }
}

function followBody(value: unknown, observer: BodyObserver): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const isGenerator = types.isGeneratorObject(value);
  const source: unknown = isGenerator ? value : (value as { body?: unknown }).body;
  if (!isObject(source) || !Object.isExtensible(source)) return false;
  const isUnread = isGenerator || (isReadableStream(source) && !source.locked);
  if (!isUnread || !(isGenerator ? followIterator : followReadableStream)(source, observer)) return false;
  observer.watch(source);
  return true;
}

/** Observes a body or generator. Its reader receives the end when `onEnd` has resolved. */
class BodyObserver implements StreamObserver, Watched {
  wasTouched = true;
  isStepping = false;
  hasBegun = false;
  readonly idleMaxMs: number = defaultLimits.streamIdleMs;
  onEnd: () => Promise<void> | undefined;
  #isOver = false;
  #ending: Promise<void> | undefined;

  constructor(onEnd: () => Promise<void> | undefined) {
    this.onEnd = onEnd;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.wasTouched = true;
    this.hasBegun = true;
    this.isStepping = true;
    try {
      const result = Reflect.apply(method, self, args);
      return types.isPromise(result) ? this.#delayed(result) : result;
    } finally {
      this.isStepping = false;
    }
  }

  async #delayed(step: Promise<unknown>): Promise<unknown> {
    try {
      const result = await step;
      if (guard('withFlush', () => (result as { done?: unknown }).done) === true) await this.#close();
      return result;
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  chunk(): void {
    this.wasTouched = true;
  }

  end(): void {
    void this.#close();
  }

  fail(): void {
    void this.#close();
  }

  cancel(): void {
    void this.#close();
  }

  abandon(): void {
    void this.#close();
  }

  watch(object: object): void {
    if (!this.#isOver) abandonment.watch(object, this);
  }

  detach(): void {
    this.hasBegun = true;
    abandonment.unwatch(this);
  }

  #close(): Promise<void> | undefined {
    if (!this.#isOver) {
      this.#isOver = true;
      abandonment.unwatch(this);
      this.#ending = this.onEnd();
    }
    return this.#ending;
  }
}

/** Makes the platform keep the instance running until the work is done. Returns false if the platform refuses. */
type WaitUntil = (work: Promise<unknown>) => boolean;

interface Platform {
  readonly waitUntil?: unknown;
  readonly getRemainingTimeInMillis?: unknown;
}

/**
 * Where platforms keep the context of a request: for Next.js and its hosts
 * (https://nextjs.org/docs/app/guides/self-hosting#after), and for `@vercel/functions`.
 */
const CONTEXTS = [Symbol.for('@next/request-context'), Symbol.for('@vercel/request-context')];

/** Returns the `waitUntil` of an argument of the handler (`(request, env, context)`), or of the context of the request. */
function waitUntilOf(args: readonly unknown[]): WaitUntil | undefined {
  const contexts = CONTEXTS.map((key) =>
    guard('withFlush', () => (globalThis as Record<symbol, { get?: () => unknown } | undefined>)[key]?.get?.()),
  );
  for (const platform of [args[2], args[1], ...contexts].filter(isPlatform)) {
    const waitUntil = guard('withFlush', () => platform.waitUntil);
    if (typeof waitUntil !== 'function') continue;
    return (work) => guard('withFlush', () => [Reflect.apply(waitUntil, platform, [work])]) !== undefined;
  }
  return undefined;
}

/** Time that a handler needs for its response after the flush. */
const RESPONSE_MARGIN_MS = 250;

/** Returns the time that AWS Lambda leaves to the call, less a margin; infinite on other platforms. */
function remainingMs(args: readonly unknown[]): number {
  for (const platform of [args[2], args[1]].filter(isPlatform)) {
    const leftMs = guard('withFlush', () => {
      const { getRemainingTimeInMillis: read } = platform;
      return typeof read === 'function' ? Number(Reflect.apply(read, platform, [])) : Number.NaN;
    });
    if (leftMs !== undefined && !Number.isNaN(leftMs)) return Math.max(0, leftMs - RESPONSE_MARGIN_MS);
  }
  return Number.POSITIVE_INFINITY;
}

function isPlatform(value: unknown): value is Platform {
  return typeof value === 'object' && value !== null;
}
