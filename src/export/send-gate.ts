import { backoffMs, probeDelayMs } from '../http/retry.ts';

const REFUSED_PAUSE_MAX_MS = 300_000;

/** Minimum interval between probes triggered by a flush. */
const HURRIED_PROBE_MS = 1_000;

/** Share of a pause by which it is longer for some processes than for others, so that not all resume at once. */
const JITTER = 0.1;

const NEVER = Number.NEGATIVE_INFINITY;
const NONE = Number.POSITIVE_INFINITY;

export interface SendGateOptions {
  /** First back-off. It doubles with each further failure. */
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  readonly random: () => number;
}

/**
 * Tracks when the next request may be sent to a service. One response applies to all requests. Callers pass the current
 * monotonic time.
 *
 * - A pause lasts as long as the service asks (`Retry-After`), or until the next probe of a service that refuses every
 *   request. The time of pauses does not count against age limits.
 * - An outage lasts from a failed request until a request succeeds. Between its waves of requests is a back-off, which
 *   grows with each wave.
 */
export class SendGate {
  readonly #options: SendGateOptions;
  /** Ends of the `Retry-After` pause, of the wait for the next probe, and of the back-off of an outage. */
  #resumeAtMs = NEVER;
  #probeAtMs = NEVER;
  #backOffUntilMs = NEVER;
  #failures = 0;
  #hurriedProbeAtMs = NEVER;
  #pausedMs = 0;
  /** Number of the last requests that were refused. While there are any, a single request probes the service. */
  refusals = 0;
  /** End of the pause, not counting a back-off. */
  pausedUntilMs: number = NEVER;
  /** Begin of the outage; infinite if there is none. */
  outageSinceMs: number = NONE;

  constructor(options: SendGateOptions) {
    this.#options = options;
  }

  /** When a request may be sent. */
  get openAtMs(): number {
    return Math.max(this.pausedUntilMs, this.#backOffUntilMs);
  }

  /** Whether the next probe of a service that refuses every request is yet to be sent. */
  isProbeAhead(nowMs: number): boolean {
    return nowMs < this.#probeAtMs;
  }

  get isOutage(): boolean {
    return this.outageSinceMs !== NONE;
  }

  /** Time that does not advance during pauses. */
  activeAt(nowMs: number): number {
    return nowMs - this.#pausedMs + Math.max(0, this.pausedUntilMs - nowMs);
  }

  /** Returns the back-off in milliseconds after a number of failed attempts, with full jitter. */
  backOffMs(failures: number): number {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    return backoffMs(failures - 1, random(), retryDelayMs, retryDelayMaxMs);
  }

  /** Records that the service asks for a pause. The pause is up to a tenth longer. */
  defer(nowMs: number, ms: number): void {
    const untilMs = nowMs + ms * (1 + JITTER * this.#options.random());
    this.#changePause(nowMs, Math.max(this.#resumeAtMs, untilMs), this.#probeAtMs);
  }

  /**
   * Records that the service refuses every request, for example because of a wrong key. The next probe follows after
   * 1 s, 5 s, 30 s and so on, up to 5 minutes, or after 1 s if `isHurried`. Refusals of requests that were sent before
   * the present wait began are ignored.
   */
  refused(nowMs: number, isHurried: boolean): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (this.isProbeAhead(nowMs)) return;
    const delayMs = probeDelayMs(this.refusals++, REFUSED_PAUSE_MAX_MS);
    this.#changePause(nowMs, this.#resumeAtMs, nowMs + (isHurried ? Math.min(delayMs, HURRIED_PROBE_MS) : delayMs));
  }

  /** Records a failed request. Further failures of the same wave do not prolong the back-off. A pause replaces it. */
  failed(nowMs: number): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (nowMs < this.openAtMs) return;
    this.#failures++;
    this.#backOffUntilMs = nowMs + this.backOffMs(this.#failures);
  }

  /** Records an accepted request. Ends the outage and the wait for a probe, but no pause that the service asked for. */
  accepted(nowMs: number): void {
    this.outageSinceMs = NONE;
    this.#failures = 0;
    this.#backOffUntilMs = NEVER;
    if (this.refusals === 0) return;
    this.refusals = 0;
    this.unblock(nowMs);
  }

  /** Ends the wait for the next probe, because the cause of the refusals may be gone. */
  unblock(nowMs: number): void {
    this.#changePause(nowMs, this.#resumeAtMs, NEVER);
  }

  /** Ends the back-off of an outage, for a flush. */
  endBackOff(): void {
    this.#backOffUntilMs = NEVER;
  }

  /** Brings the next probe forward for a flush, to at most one per second. */
  hurryProbe(nowMs: number): void {
    const atMs = Math.max(nowMs, this.#hurriedProbeAtMs + HURRIED_PROBE_MS);
    if (atMs >= this.#probeAtMs) return;
    this.#hurriedProbeAtMs = atMs;
    this.#changePause(nowMs, this.#resumeAtMs, atMs);
  }

  #changePause(nowMs: number, resumeAtMs: number, probeAtMs: number): void {
    const beforeMs = Math.max(nowMs, this.pausedUntilMs);
    this.#resumeAtMs = resumeAtMs;
    this.#probeAtMs = probeAtMs;
    this.pausedUntilMs = Math.max(resumeAtMs, probeAtMs);
    this.#pausedMs += Math.max(nowMs, this.pausedUntilMs) - beforeMs;
  }
}
