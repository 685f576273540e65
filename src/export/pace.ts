import { setMaxListeners } from 'node:events';
import { defaultLimits } from '../base/limits.ts';
import { clearTimer, delay, setTimer } from '../base/timers.ts';
import { backoffMs, probeDelayMs } from '../http/retry.ts';

/** Between two times that back-offs are ended early. */
const HURRY_EVERY_MS = 500;

const REFUSED_PAUSE_MAX_MS = 300_000;

/** Minimum interval between probes triggered by a flush. */
const HURRIED_PROBE_MS = 1_000;

/** The share of a pause by which it is longer for one process than for another, so that not all return at once. */
const JITTER = 0.1;

export interface PaceOptions {
  /** The first back-off; it doubles with each further failure. */
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A flush in progress. */
interface Waiting {
  /** Called when the pause is extended. */
  readonly paused: () => void;
  /** Called when the service refuses a probe. */
  readonly refused: (reason: string) => void;
  /** Whether the flush needs another probe one second after the last. */
  readonly wantsProbe: boolean;
}

/**
 * Tracks when requests may be sent to a service. A pause requested in one response applies to all requests to that
 * service.
 */
export class Pace {
  readonly #monotonicMs: () => number;
  readonly #options: PaceOptions;
  readonly #flushes = new Set<Waiting>();
  #patience = newController();
  #hurriedAtMs = Number.NEGATIVE_INFINITY;
  #hurryTimer: NodeJS.Timeout | undefined;
  /** Times at which the pause requested by the service ends and at which the next probe is sent. */
  #resumeAtMs = Number.NEGATIVE_INFINITY;
  #blockedUntilMs = Number.NEGATIVE_INFINITY;
  /** Number of consecutive refused probes. */
  #refusals = 0;
  /** Time at which a flush last brought a probe forward. */
  #hurriedProbeAtMs = Number.NEGATIVE_INFINITY;
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

  pause(ms: number): void {
    this.#change(() => {
      this.#resumeAtMs = Math.max(this.#resumeAtMs, this.#monotonicMs() + ms);
    });
  }

  /** Pauses for as long as the service asks, and for up to a tenth longer. */
  defer(ms: number): void {
    this.pause(ms * (1 + JITTER * this.#options.random()));
  }

  /**
   * Records that the service refuses every request, for example because of a wrong key, a wrong address or a gateway. The next
   * probe follows after 1 s, 5 s, 30 s and so on, up to 5 minutes. After the first refusal during a flush, it follows after 1 s.
   */
  refused(reason: string): void {
    const nowMs = this.#monotonicMs();
    // The request was sent before the pause began, so its refusal adds no information.
    if (nowMs < this.#blockedUntilMs) return;
    const delayMs = probeDelayMs(this.#refusals++, REFUSED_PAUSE_MAX_MS);
    for (const flush of [...this.#flushes]) flush.refused(reason);
    const isHurried = [...this.#flushes].some(({ wantsProbe }) => wantsProbe);
    this.#blockUntil(nowMs + (isHurried ? Math.min(delayMs, HURRIED_PROBE_MS) : delayMs));
  }

  /** Records that the service accepts requests. The next refusal starts with the shortest pause. */
  accepted(): void {
    if (this.#refusals === 0) return;
    this.#refusals = 0;
    this.unblock();
  }

  /** Ends a pause after refusals, because their cause may be gone. A pause that the service requested continues. */
  unblock(): void {
    this.#blockUntil(Number.NEGATIVE_INFINITY);
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
   * Whether a promise resolves within the limit. If the service refuses every request, brings the next probe forward. Returns
   * early if a pause outlasts the limit, or if two probes are refused for the same reason. The timer keeps the process alive,
   * because a caller is waiting for the flush.
   */
  async isSettledWithin(promise: Promise<void>, limitMs: number): Promise<boolean> {
    if (limitMs > 0) this.#hurryProbe();
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
      const reasons: string[] = [];
      const flush: Waiting = {
        paused: () => {
          if (isHopeless()) resolve(false);
        },
        refused: (reason) => {
          if (!reasons.includes(reason)) {
            reasons.push(reason);
            return;
          }
          undo();
          resolve(false);
        },
        get wantsProbe() {
          return reasons.length === 1;
        },
      };
      this.#flushes.add(flush);
      undo = () => {
        clearTimer(timer);
        clearTimer(nudging);
        this.#flushes.delete(flush);
      };
    });
    try {
      return await Promise.race([promise.then(() => true), late]);
    } finally {
      undo();
    }
  }

  get #untilMs(): number {
    return Math.max(this.#resumeAtMs, this.#blockedUntilMs);
  }

  #blockUntil(untilMs: number): void {
    this.#change(() => {
      this.#blockedUntilMs = untilMs;
    });
  }

  /** Schedules the next probe earlier, at most once per second. */
  #hurryProbe(): void {
    const atMs = Math.max(this.#monotonicMs(), this.#hurriedProbeAtMs + HURRIED_PROBE_MS);
    if (atMs >= this.#blockedUntilMs) return;
    this.#hurriedProbeAtMs = atMs;
    this.#blockUntil(atMs);
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
    if (longerMs > 0) for (const flush of this.#flushes) flush.paused();
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
