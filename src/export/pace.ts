import { setMaxListeners } from 'node:events';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { clearTimer, setTimer } from '../base/timers.ts';

/** Between two times that back-offs are ended early. */
const HURRY_EVERY_MS = 500;

/** When a service may be sent to next: what one request is told holds for all of that service. */
export class Pace {
  readonly #monotonicMs: () => number;
  readonly #listeners = new Set<() => void>();
  #patience = impatient();
  #hurriedAtMs = Number.NEGATIVE_INFINITY;
  #hurryTimer: NodeJS.Timeout | undefined;
  #resumeAtMs = Number.NEGATIVE_INFINITY;
  #pausedMs = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Milliseconds until sending may go on; 0 when it may. */
  get remainingMs(): number {
    return Math.max(0, this.#resumeAtMs - this.#monotonicMs());
  }

  /** Time spent in pauses so far. */
  get pausedMs(): number {
    return this.#pausedBy(this.#monotonicMs());
  }

  pause(ms: number): void {
    const nowMs = this.#monotonicMs();
    const longer = nowMs + ms - Math.max(this.#resumeAtMs, nowMs);
    if (longer <= 0) return;
    this.#pausedMs += longer;
    this.#resumeAtMs = nowMs + ms;
    for (const listener of this.#listeners) listener();
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
    while (this.remainingMs > 0) await delay(this.remainingMs, signal);
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
   * Whether a promise resolves within the limit. The answer comes early when a pause outlasts it. The timer is the one of
   * ours that may hold the process: somebody waits for a flush.
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

  #pausedBy(nowMs: number): number {
    return this.#pausedMs - Math.max(0, this.#resumeAtMs - nowMs);
  }

  #endBackOffs(): void {
    this.#hurryTimer = undefined;
    this.#hurriedAtMs = this.#monotonicMs();
    this.#patience.abort();
    this.#patience = impatient();
  }
}

function impatient(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** Waits without keeping the process alive; rejects with the signal's reason when it is aborted. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimer(timer);
      reject(signal.reason);
    };
    const timer = setTimer(
      () => {
        signal.removeEventListener('abort', abort);
        resolve();
      },
      Math.min(ms, DELAY_MAX_MS),
    ).unref();
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
