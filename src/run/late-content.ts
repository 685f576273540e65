import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { clearTimer, setTimer } from '../platform/timers.ts';
import { type DelayedEnd, delayEnd, stopDelay } from './delayed-ends.ts';
import type { EncodedRun } from './encoded-run.ts';

/** Time that an ended run waits for late content, in milliseconds. */
const WAIT_MS = 1_000;

/** A payload that a function of the application returns as a promise. `place` names the function in log lines. */
export class LateValue {
  readonly place: string;
  readonly promise: PromiseLike<unknown>;
  readonly #isLate = true;

  constructor(place: string, promise: PromiseLike<unknown>) {
    this.place = place;
    this.promise = promise;
  }

  /** Unlike `instanceof`, does not throw for a revoked proxy. */
  static is(value: unknown): value is LateValue {
    return typeof value === 'object' && value !== null && #isLate in value;
  }
}

/**
 * The content of one run that the application's functions have not returned yet. The record does not contain such
 * content, so a run that is released early never shows it.
 */
export class LateContent implements DelayedEnd {
  readonly run: EncodedRun;
  /** The values that have not settled. Empty after the release. */
  readonly #values = new Set<LateValue>();
  #end: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #released: (() => void) | undefined;
  readonly released: Promise<void> = new Promise((resolve) => {
    this.#released = resolve;
  });

  constructor(run: EncodedRun) {
    this.run = run;
  }

  /** Calls `keep` with the value, unless the run is released before. */
  add(value: LateValue, keep: (content: unknown) => void): void {
    this.#values.add(value);
    const settle = (use: () => void): void => {
      if (!this.#values.delete(value)) return;
      guard(value.place, use);
      if (this.#values.size === 0 && this.#end !== undefined) this.release();
    };
    Promise.resolve(value.promise).then(
      (content) => settle(() => keep(content)),
      () => settle(() => reportHidden(value.place, 'rejected')),
    );
  }

  /** Calls `end` when all values have settled, after 1 s, or when the process ends, whichever is first. */
  whenSettled(end: () => void): void {
    this.#end = end;
    if (this.#values.size === 0) {
      this.release();
      return;
    }
    this.#timer = setTimer(() => this.release(), WAIT_MS).unref();
    delayEnd(this);
  }

  release(): void {
    stopDelay(this);
    clearTimer(this.#timer);
    for (const { place } of this.#values) reportHidden(place, 'has not settled in time');
    this.#values.clear();
    this.#end?.();
    this.#released?.();
  }
}

/** Logs once per function that its content is hidden. The line contains no message, because errors may contain payloads. */
export function reportHidden(place: string, reason: string): void {
  diagnostics.warnOnce(`late ${place}`, `${place} ${reason}, so the content is hidden.`);
}
