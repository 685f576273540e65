import { diagnostics } from '../../../base/diagnostics.ts';

const DAY_MS = 86_400_000;
/** How much faster than the clock the retention time may run, so that it gains a day per hour. */
const GAIN = 24;
/** Longest time between two checks that counts as running, in milliseconds. Between later checks, the machine slept. */
const RUNNING_MS_MAX = 300_000;
/** Interval at which a retention time that is not late is stored, in milliseconds. A crash sets it back by up to this time. */
const STORED_MS = 600_000;

/**
 * The time by which a store decides what is old. It is never later than the wall clock, and gains on it at most a day per
 * hour of running. A clock that is wrong for some hours therefore deletes nothing that is younger than its maximum age by
 * more than as many days.
 */
export class RetentionTime {
  readonly #monotonicMs: () => number;
  #checkedAtMs = 0;
  #storedMs: number | undefined;
  #timeMs = Number.NEGATIVE_INFINITY;

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** The retention time at the last check. Before the first check, everything is young. */
  get timeMs(): number {
    return this.#timeMs;
  }

  /**
   * Checks the clocks. `storedMs` is the retention time in the store, if there is one. If another process has stored it, it
   * replaces this one. Returns the time that the caller must store, if any.
   */
  check(wallMs: number, storedMs: number | undefined): number | undefined {
    const nowMs = this.#monotonicMs();
    // A time that is gone is no time of another process.
    const isOwn = this.#storedMs !== undefined && (storedMs ?? this.#storedMs) === this.#storedMs;
    const passedMs = isOwn ? nowMs - this.#checkedAtMs : 0;
    const baseMs = isOwn ? this.#timeMs : (storedMs ?? wallMs);
    const latestMs = baseMs + passedMs + GAIN * Math.min(passedMs, RUNNING_MS_MAX);
    this.#timeMs = Math.floor(Math.min(wallMs, latestMs));
    this.#checkedAtMs = nowMs;
    const newMs = this.#timeMs - (storedMs ?? Number.NEGATIVE_INFINITY);
    const isStored = newMs >= 0 && newMs < (this.#timeMs < wallMs ? 1 : STORED_MS);
    this.#storedMs = isStored ? storedMs : this.#timeMs;
    return isStored ? undefined : this.#timeMs;
  }
}

/** Returns a report if the retention time is more than a day late. Logs it if the `earlier` call returned none. */
export function lagReport(lagMs: number, earlier: string | undefined): string | undefined {
  if (lagMs <= DAY_MS) return undefined;
  const days = (lagMs / DAY_MS).toFixed(1);
  const report = `The retention time is ${days} days behind the clock, and gains a day per hour. If the clock is right, run npx runspan store prune --yes with the file or URL of the store.`;
  if (earlier === undefined) diagnostics.warn(`old runs are deleted later: ${report}`);
  return report;
}
