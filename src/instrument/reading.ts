import type { Method } from './own-method.ts';

/** What a reader of a result in pieces tells: each piece as it comes, and how it came to its end. */
export interface Reading {
  /** A step is being taken: what is called meanwhile on the same result is part of that step. */
  readonly isStepping: boolean;
  /** Takes a step in the context of the run. */
  step(method: Method, self: unknown, args: unknown[]): unknown;
  took(chunk: unknown): void;
  end(): void;
  fail(thrown: unknown): void;
  /** The reader wants no more. */
  cancel(): void;
  /** What the end depends on from now on: when this object is collected, there will be none. */
  watch(object: object): void;
  /** The rest is read where it cannot be seen; its end will be told all the same. */
  leaveUnseen(): void;
}

/** A reader that passes everything on to another, for those that leave something out. */
export class PartialReading implements Reading {
  readonly #whole: Reading;

  constructor(whole: Reading) {
    this.#whole = whole;
  }

  get isStepping(): boolean {
    return this.#whole.isStepping;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    return this.#whole.step(method, self, args);
  }

  took(chunk: unknown): void {
    this.#whole.took(chunk);
  }

  end(): void {
    this.#whole.end();
  }

  fail(thrown: unknown): void {
    this.#whole.fail(thrown);
  }

  cancel(): void {
    this.#whole.cancel();
  }

  watch(object: object): void {
    this.#whole.watch(object);
  }

  leaveUnseen(): void {
    this.#whole.leaveUnseen();
  }
}
