import { setMaxListeners } from 'node:events';
import { defaultLimits } from '../base/limits.ts';
import { clearTimer, delay, setTimer } from '../base/timers.ts';
import { backoffMs } from '../http/retry-policy.ts';

/** Between two times that back-offs are ended early. */
const HURRY_EVERY_MS = 500;

/** The share of a pause by which it is longer for one process than for another, so that not all return at once. */
const JITTER = 0.1;

export interface PaceOptions {
  /** The first back-off; it doubles with each further failure. */
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** When a service may be sent to next: what one request is told holds for all of that service. */
export class Pace {
  readonly #monotonicMs: () => number;
  readonly #options: PaceOptions;
  readonly #listeners = new Set<() => void>();
  #patience = newController();
  #hurriedAtMs = Number.NEGATIVE_INFINITY;
  #hurryTimer: NodeJS.Timeout | undefined;
  /** Until when the service has asked for a pause, and until when nothing can succeed. */
  #resumeAtMs = Number.NEGATIVE_INFINITY;
  #blockedUntilMs = Number.NEGATIVE_INFINITY;
  #pausedMs = 0;
  #shortened = newController();

  constructor(monotonicMs: () => number, options: Partial<PaceOptions> = {}) {
    this.#monotonicMs = monotonicMs;
    const { retryDelayMs, retryDelayMaxMs } = defaultLimits;
    this.#options = { retryDelayMs, retryDelayMaxMs, random: Math.random, delay, ...options };
  }

  /** Milliseconds until sending may go on; 0 when it may. */
  get remainingMs(): number {
    return Math.max(0, this.#untilMs - this.#monotonicMs());
  }

  /** Time spent in pauses so far. */
  get pausedMs(): number {
    return this.#pausedBy(this.#monotonicMs());
  }

  pause(ms: number): void {
    this.#change(() => {
      this.#resumeAtMs = Math.max(this.#resumeAtMs, this.#monotonicMs() + ms);
    });
  }

  /** Pauses for as long as the service asks, and for up to a tenth longer. */
  defer(ms: number): void {
    this.pause(ms * (1 + JITTER * this.#options.random()));
  }

  /** Pauses because of a wrong key or address: `unblock` ends it. */
  block(ms: number): void {
    this.#change(() => {
      this.#blockedUntilMs = Math.max(this.#blockedUntilMs, this.#monotonicMs() + ms);
    });
  }

  /** What was wrong has changed. A pause that the service has asked for goes on. */
  unblock(): void {
    this.#change(() => {
      this.#blockedUntilMs = Number.NEGATIVE_INFINITY;
    });
  }

  /** Milliseconds that go on only while there is no pause: the age of what waits is counted in them. */
  get activeMs(): number {
    return this.activeAt(this.#monotonicMs());
  }

  /** The same of a moment that has just been read from the clock. */
  activeAt(nowMs: number): number {
    return nowMs - this.#pausedBy(nowMs);
  }

  /** Waits out the pause, and pauses that are added meanwhile; rejects when the signal is aborted. */
  async waitOut(signal: AbortSignal): Promise<void> {
    while (this.remainingMs > 0) await this.#wait(this.remainingMs, signal, this.#shortened.signal);
  }

  /** Waits after so many failures, for longer with each, unless somebody waits for a flush. */
  async backOff(failures: number, signal: AbortSignal): Promise<void> {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    await this.#wait(backoffMs(failures - 1, random(), retryDelayMs, retryDelayMaxMs), signal, this.patience);
  }

  /** Aborted when somebody waits for a flush: a back-off ends then, a pause does not. */
  get patience(): AbortSignal {
    return this.#patience.signal;
  }

  /** Ends back-offs, twice a second at the most: flushes may come as often as requests of the application do. */
  hurry(): void {
    if (this.#hurryTimer !== undefined) return;
    const waitMs = this.#hurriedAtMs + HURRY_EVERY_MS - this.#monotonicMs();
    if (waitMs <= 0) this.#endBackOffs();
    else this.#hurryTimer = setTimer(() => this.#endBackOffs(), waitMs).unref();
  }

  /**
   * Whether a promise resolves within the limit. The answer comes early when a pause outlasts it. The timer
   * holds the process: somebody waits for a flush.
   */
  async isSettledWithin(promise: Promise<void>, limitMs: number): Promise<boolean> {
    const endMs = this.#monotonicMs() + limitMs;
    const isHopeless = (): boolean => this.remainingMs > endMs - this.#monotonicMs();
    if (isHopeless()) return false;
    let undo = (): void => {};
    const late = new Promise<false>((resolve) => {
      const timer = setTimer(() => resolve(false), limitMs);
      // Somebody waits: no back-off may outlast the service's return by much.
      const nudge = (): void => {
        this.hurry();
        nudging = setTimer(nudge, HURRY_EVERY_MS).unref();
      };
      let nudging = setTimer(nudge, HURRY_EVERY_MS).unref();
      const listener = (): void => {
        if (isHopeless()) resolve(false);
      };
      this.#listeners.add(listener);
      undo = () => {
        clearTimer(timer);
        clearTimer(nudging);
        this.#listeners.delete(listener);
      };
    });
    const isInTime = await Promise.race([promise.then(() => true), late]);
    undo();
    return isInTime;
  }

  get #untilMs(): number {
    return Math.max(this.#resumeAtMs, this.#blockedUntilMs);
  }

  #pausedBy(nowMs: number): number {
    return this.#pausedMs - Math.max(0, this.#untilMs - nowMs);
  }

  #change(change: () => void): void {
    const nowMs = this.#monotonicMs();
    const beforeMs = Math.max(nowMs, this.#untilMs);
    change();
    const longerMs = Math.max(nowMs, this.#untilMs) - beforeMs;
    this.#pausedMs += longerMs;
    if (longerMs > 0) for (const listener of this.#listeners) listener();
    if (longerMs >= 0) return;
    this.#shortened.abort();
    this.#shortened = newController();
  }

  /** Returns early at the `interruption`; rejects when the signal is aborted. */
  async #wait(ms: number, signal: AbortSignal, interruption: AbortSignal): Promise<void> {
    try {
      await this.#options.delay(ms, AbortSignal.any([signal, interruption]));
    } catch {
      signal.throwIfAborted();
    }
  }

  #endBackOffs(): void {
    this.#hurryTimer = undefined;
    this.#hurriedAtMs = this.#monotonicMs();
    this.#patience.abort();
    this.#patience = newController();
  }
}

function newController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
