import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { isPerRequest, types } from '../platform/node.ts';
import { delay } from '../platform/timers.ts';
import { flushLimitMs } from '../run/run-options.ts';
import type { FlushLimit, FlushResult } from '../run/sink.ts';
import { observedStream } from './results/observed-stream.ts';
import { abandonment, isObjectOrFunction, type Method, type StreamObserver, type Watched } from './results/observer.ts';
import { thenOf } from './results/promise.ts';
import { followReadableStream, isReadableStream } from './results/stream.ts';
import { type Callable, shapedLike, uncallableKind } from './traceable.ts';

type Flush = (limit: FlushLimit) => Promise<FlushResult>;

const FLUSH_TIMEOUT_MS = 2_000;

/**
 * Time between the end of the flush and the handler's timeout, in milliseconds. The response is sent during this time.
 */
const RESPONSE_MARGIN_MS = 250;

export function flushedAfter<Handler extends CallableFunction>(
  handler: Handler,
  options: FlushLimit | undefined,
  flush: Flush,
  hasOpenRuns: () => boolean = () => false,
): Handler {
  const kind = uncallableKind(handler);
  if (kind !== undefined) {
    diagnostics.warnOnce(
      `withFlush ${kind}`,
      `withFlush(handler): expected a function, got ${kind}; nothing is flushed.`,
    );
    return handler;
  }
  const fn = handler as unknown as Callable;
  const limitMs = flushLimitMs('withFlush', options, FLUSH_TIMEOUT_MS);
  const wrapper = {
    flushing(this: unknown, ...args: unknown[]): unknown {
      const call = new HandlerCall(args, limitMs, flush, hasOpenRuns);
      let result: unknown;
      try {
        result = Reflect.apply(fn, this, args);
      } catch (thrown) {
        void call.flushed();
        throw thrown;
      }
      const then = isObjectOrFunction(result) ? thenOf(result) : undefined;
      if (then !== undefined) return call.settled(result as object, then);
      // Only a promise can wait for the flush. Any other result is returned immediately.
      void call.ended(result);
      return call.result(result);
    },
  };
  return shapedLike(wrapper.flushing, fn) as unknown as Handler;
}

class HandlerCall {
  readonly #args: readonly unknown[];
  readonly #limitMs: number;
  readonly #flush: Flush;
  readonly #hasOpenRuns: () => boolean;
  /**
   * `waitUntil` is looked up when the handler is called, because the platform's request context ends with the request.
   */
  readonly #waitUntil: PlatformMethod | undefined;
  #flushing: Promise<void> | undefined;
  #body: BodyObserver | undefined;

  constructor(args: readonly unknown[], limitMs: number, flush: Flush, hasOpenRuns: () => boolean) {
    this.#args = args;
    this.#limitMs = limitMs;
    this.#flush = flush;
    this.#hasOpenRuns = hasOpenRuns;
    this.#waitUntil = platformMethod('waitUntil', [args[2], args[1], ...requestContexts()]);
  }

  async settled(thenable: object, then: Method): Promise<unknown> {
    let value: unknown;
    try {
      value = await new Promise((resolve, reject) => Reflect.apply(then, thenable, [resolve, reject]));
    } catch (error) {
      await this.flushed();
      throw error;
    }
    await this.ended(value);
    return this.result(value);
  }

  /**
   * Flushes when the response body has ended. If `result` is not a response with an unread body, flushes immediately.
   * Returns a promise if the result must wait for the flush.
   */
  ended(result: unknown): Promise<void> | undefined {
    // If no run is open, no run can end while the body is read.
    if (isPerRequest && !this.#hasOpenRuns()) return this.flushed();
    const body = new BodyObserver(() => (isHandedOver ? undefined : this.flushed()));
    if (guard('withFlush', () => followBody(result, body)) !== true) return this.flushed();
    this.#body = body;
    const isHandedOver = this.#waitUntil?.(this.#flushAfter(body)) !== undefined;
    return undefined;
  }

  /** Returns the result to pass to the caller. On runtimes that bypass replaced methods, responses are copied. */
  result(value: unknown): unknown {
    if (!isPerRequest || this.#body === undefined) return value;
    const response = value as Response;
    return new Response(observedStream(response.body as ReadableStream<Uint8Array>, this.#body), response);
  }

  /** Flushes. Returns a promise for the result to wait for, or undefined if the platform waits for the flush. */
  flushed(): Promise<void> | undefined {
    this.#flushing ??= this.#flushNow();
    return this.#waitUntil?.(this.#flushing) === undefined ? this.#flushing : undefined;
  }

  async #flushAfter(body: BodyObserver): Promise<void> {
    // The body may never be read, for example in the response to a HEAD request.
    const late = delay(this.#limitMs, undefined, true).then(() => (body.hasBegun ? body.over : undefined));
    await Promise.race([body.over, late]);
    await this.#flushNow();
  }

  async #flushNow(): Promise<void> {
    // AWS Lambda reports the remaining time in milliseconds.
    const read = platformMethod('getRemainingTimeInMillis', [this.#args[2], this.#args[1]]);
    const leftMs = Number(read?.()?.[0]);
    const timeoutMs = Number.isNaN(leftMs) ? this.#limitMs : Math.max(0, leftMs - RESPONSE_MARGIN_MS);
    await guard('withFlush', () => this.#flush({ timeoutMs: Math.min(this.#limitMs, timeoutMs) }));
  }
}

function followBody(response: unknown, observer: BodyObserver): boolean {
  const body: unknown = (response as { body?: unknown } | null | undefined)?.body;
  if (!isObjectOrFunction(body) || !isReadableStream(body) || body.locked || !Object.isExtensible(body)) return false;
  if (!followReadableStream(body, observer)) return false;
  observer.watch(body);
  return true;
}

/** Observes a response body. Delays the end of the body until the promise from `onEnd` resolves. */
class BodyObserver implements StreamObserver, Watched {
  isStepping = false;
  hasBegun = false;
  readonly over: Promise<void>;
  readonly #onEnd: () => Promise<void> | undefined;
  #resolveOver = (): void => {};
  #ending: { readonly flushed: Promise<void> | undefined } | undefined;

  constructor(onEnd: () => Promise<void> | undefined) {
    this.#onEnd = onEnd;
    this.over = new Promise((resolve) => {
      this.#resolveOver = resolve;
    });
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
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

  chunk(): void {}
  readonly end = (): void => void this.#close();
  readonly fail: () => void = this.end;
  readonly cancel: () => void = this.end;
  readonly abandon: () => void = this.end;

  watch(object: object): void {
    if (this.#ending === undefined) abandonment.watch(object, this);
  }

  detach(): void {
    this.hasBegun = true;
    abandonment.unwatch(this);
  }

  #close(): Promise<void> | undefined {
    if (this.#ending === undefined) {
      abandonment.unwatch(this);
      this.#resolveOver();
      this.#ending = { flushed: this.#onEnd() };
    }
    return this.#ending.flushed;
  }
}

/**
 * Global symbols for the request contexts of Next.js (https://nextjs.org/docs/app/guides/self-hosting#after) and
 * Vercel.
 */
const CONTEXTS = [Symbol.for('@next/request-context'), Symbol.for('@vercel/request-context')];

function requestContexts(): unknown[] {
  const holders = globalThis as Record<symbol, { get?: () => unknown } | undefined>;
  return CONTEXTS.map((key) => guard('withFlush', () => holders[key]?.get?.()));
}

/**
 * Calls a method of the hosting platform, for example `waitUntil`. Returns an array with the result, or undefined if
 * the method throws.
 */
type PlatformMethod = (...args: unknown[]) => [unknown] | undefined;

function platformMethod(key: string, platforms: readonly unknown[]): PlatformMethod | undefined {
  for (const platform of platforms) {
    const method = guard('withFlush', () => (platform as Record<string, unknown> | null | undefined)?.[key]);
    if (typeof method !== 'function') continue;
    return (...args) => guard('withFlush', () => [Reflect.apply(method, platform, args)]);
  }
  return undefined;
}
