import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { abandonment, type Watched } from './abandonment.ts';
import type { Method } from './own-method.ts';
import { followReadableStream, isReadableStream } from './readable-stream.ts';
import type { Reading } from './reading.ts';

/**
 * The body of a web answer that is still to be read, followed to its end; undefined when the value has none. `atEnd` is
 * called then, once, and what it answers with is waited for before the reader is told of the end.
 */
export function followBody(value: unknown, atEnd: () => Promise<unknown> | undefined): AnswerBody | undefined {
  return guard('withFlush', () => {
    const stream: unknown = typeof value === 'object' && value !== null && (value as { body?: unknown }).body;
    if (typeof stream !== 'object' || stream === null || !isReadableStream(stream)) return undefined;
    if (stream.locked || !Object.isExtensible(stream)) return undefined;
    const body = new AnswerBody(atEnd);
    if (!followReadableStream(stream, body)) return undefined;
    body.watch(stream);
    return body;
  });
}

/** The reading of a body. */
export class AnswerBody implements Reading, Watched {
  wasTouched = true;
  isStepping = false;
  hasBegun = false;
  /** Resolves when somebody begins to read, or will never do so. */
  readonly begun: Promise<void>;
  /** Resolves at the end, however it comes. */
  readonly over: Promise<void>;
  readonly idleMaxMs: number = defaultLimits.streamIdleMs;
  readonly #atEnd: () => Promise<unknown> | undefined;
  #tellBegun = (): void => {};
  #tellOver = (): void => {};
  #ended: { readonly waitedFor: Promise<unknown> | undefined } | undefined;

  constructor(atEnd: () => Promise<unknown> | undefined) {
    this.#atEnd = atEnd;
    this.begun = new Promise((resolve) => {
      this.#tellBegun = resolve;
    });
    this.over = new Promise((resolve) => {
      this.#tellOver = resolve;
    });
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.#begin();
    this.isStepping = true;
    let result: unknown;
    try {
      result = Reflect.apply(method, self, args);
    } finally {
      this.isStepping = false;
    }
    return types.isPromise(result) ? this.#held(result) : result;
  }

  took(): void {
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
    if (this.#ended === undefined) abandonment.watch(object, this);
  }

  leaveUnseen(): void {
    this.#begin();
    abandonment.unwatch(this);
  }

  #begin(): void {
    this.wasTouched = true;
    this.hasBegun = true;
    this.#tellBegun();
  }

  /** The last step is answered when what belongs to the end is done. */
  #held(step: Promise<unknown>): Promise<unknown> {
    return step.then(
      (result) => {
        const isLast = guard('withFlush', () => (result as { done?: unknown }).done) === true;
        const waitedFor = isLast ? this.#close() : undefined;
        return waitedFor === undefined ? result : waitedFor.then(() => result);
      },
      (error) => {
        const waitedFor = this.#close();
        if (waitedFor === undefined) throw error;
        return waitedFor.then(() => {
          throw error;
        });
      },
    );
  }

  #close(): Promise<unknown> | undefined {
    if (this.#ended === undefined) {
      abandonment.unwatch(this);
      this.#ended = { waitedFor: this.#atEnd() };
      this.#tellBegun();
      this.#tellOver();
    }
    return this.#ended.waitedFor;
  }
}
