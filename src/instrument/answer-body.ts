import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { abandonment, type Watched } from './abandonment.ts';
import { followIterator } from './iterator.ts';
import type { Method } from './own-method.ts';
import { followReadableStream, isReadableStream } from './readable-stream.ts';
import type { Reading } from './reading.ts';

/**
 * What of an answer is still to be read, followed to its end: a generator, or the body of a web answer; undefined when the
 * value is neither. `atEnd` is called then, once, and what it answers with is waited for before the reader is told of the
 * end, unless the reader reads synchronously.
 */
export function followAnswer(value: unknown, atEnd: () => Promise<unknown> | undefined): AnswerBody | undefined {
  return guard('withFlush', () => {
    if (typeof value !== 'object' || value === null) return undefined;
    const isGenerator = types.isGeneratorObject(value);
    const source: unknown = isGenerator ? value : (value as { body?: unknown }).body;
    if (typeof source !== 'object' || source === null || !Object.isExtensible(source)) return undefined;
    const body = new AnswerBody(atEnd);
    if (!(isGenerator ? followIterator(source, body) : followUnread(source, body))) return undefined;
    body.watch(source);
    return body;
  });
}

function followUnread(stream: object, body: AnswerBody): boolean {
  return isReadableStream(stream) && !stream.locked && followReadableStream(stream, body);
}

/** The reading of a body, or of a generator. */
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
