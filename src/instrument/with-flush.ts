import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { type FlushLimit, type FlushResult, flushLimitMs } from '../run/sink.ts';
import { type AnswerBody, followAnswer } from './answer-body.ts';
import { thenOf } from './promise.ts';
import { type HandOver, handOverOf, remainingMs } from './request-context.ts';
import { disguised, isClass } from './traceable.ts';

type Callable = (...args: unknown[]) => unknown;
type Flush = (limit: FlushLimit) => Promise<FlushResult>;

const FLUSH_TIMEOUT_MS = 2_000;

/** The handler, and after each of its calls a flush. */
export function flushedAfter<Handler extends CallableFunction>(
  handler: Handler,
  options: FlushLimit | undefined,
  flush: Flush,
): Handler {
  const mistake =
    typeof handler !== 'function'
      ? `got ${handler === null ? 'null' : typeof handler}`
      : isClass(handler) && 'got a class';
  if (mistake) {
    diagnostics.warnOnce(
      `withFlush ${mistake}`,
      `withFlush(handler): expected a function, ${mistake}; nothing is flushed.`,
    );
    return handler;
  }
  const fn = handler as unknown as Callable;
  const limitMs = flushLimitMs('withFlush', options, FLUSH_TIMEOUT_MS);
  const wrapper = {
    flushing(this: unknown, ...args: unknown[]): unknown {
      return new Call(args, limitMs, flush).answer(() => Reflect.apply(fn, this, args));
    },
  };
  return disguised(wrapper.flushing, fn) as unknown as Handler;
}

/** One call of a handler, from its arguments to the flush. */
class Call {
  readonly #args: readonly unknown[];
  readonly #limitMs: number;
  readonly #flush: Flush;
  #handOver: HandOver | undefined;
  #flushed: Promise<unknown> | undefined;

  constructor(args: readonly unknown[], limitMs: number, flush: Flush) {
    this.#args = args;
    this.#limitMs = limitMs;
    this.#flush = flush;
    this.#handOver = handOverOf(args);
  }

  /** An answer that is there at once cannot be held back: it is given, and the flush goes on beside it. */
  answer(handle: () => unknown): unknown {
    let result: unknown;
    try {
      result = handle();
    } catch (thrown) {
      void this.#end();
      throw thrown;
    }
    const then = typeof result === 'object' && result !== null ? thenOf(result) : undefined;
    if (then !== undefined) return this.#answerLater(result as object, then);
    if (this.#followed(result) === undefined) void this.#end();
    return result;
  }

  async #answerLater(result: object, then: Callable): Promise<unknown> {
    try {
      const value = await new Promise((resolve, reject) => Reflect.apply(then, result, [resolve, reject]));
      if (this.#followed(value) === undefined) await this.#end();
      return value;
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  /** A body or generator that is still to be read: what makes it may be traced, and the flush comes after it. */
  #followed(value: unknown): AnswerBody | undefined {
    const body = followAnswer(value, () => (this.#handOver === undefined ? this.#end() : undefined));
    if (body === undefined || this.#handOver === undefined) return body;
    if (!this.#handOver(this.#afterBody(body))) this.#handOver = undefined;
    return body;
  }

  /** The body of an answer to HEAD, for one, is never asked for: nothing is kept waiting for its end. */
  async #afterBody(body: AnswerBody): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      // It holds the process: the platform waits for what it was given.
      timer = setTimer(resolve, this.#limitMs);
    });
    await Promise.race([body.begun, late]);
    clearTimer(timer);
    if (body.hasBegun) await body.over;
    await this.#flushNow();
  }

  /** What has to be waited for before the answer; nothing where the platform does the waiting. */
  #end(): Promise<unknown> | undefined {
    this.#flushed ??= this.#flushNow();
    const isHandedOver = this.#handOver?.(this.#flushed) === true;
    return isHandedOver ? undefined : this.#flushed;
  }

  async #flushNow(): Promise<void> {
    await guard('withFlush', () => this.#flush({ timeoutMs: Math.min(this.#limitMs, remainingMs(this.#args)) }));
  }
}
