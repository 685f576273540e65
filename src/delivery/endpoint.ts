import type { Batch } from './batch.ts';
import {
  againMs,
  type BackOff,
  type Decision,
  delayMs,
  type Evidence,
  type Failure,
  FLUSH_DELAY_MS,
  isRefusal,
} from './retry-policy.ts';

/** Maximum random extension of a `Retry-After` pause, as a share of its length, so that processes resume apart. */
const JITTER = 0.1;

const PAST = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * What the exporter knows about its endpoint. Events are ordered by moments: a number that grows with each event,
 * because several events may happen in one millisecond.
 */
export class Endpoint {
  readonly #backOff: BackOff;
  #moment = 0;
  /** Moment at which the newest accepted request was sent. */
  #acceptedAt = 0;
  /** Moment at which the endpoint closed. 0 while it is open. */
  #closedAt = 0;
  /** Time at which the endpoint closed. Infinity while it is open. */
  outageSinceMs: number = NEVER;
  /** Failures of lone runs since the last accepted request. */
  loneFailures = 0;
  /** Failed probes since the last accepted request. */
  probes = 0;
  #failure: Failure = 'later';
  #failedAtMs = PAST;
  #probeAtMs = PAST;
  /** Time at which the `Retry-After` pause ends. */
  pausedUntilMs: number = PAST;
  /** The runs' age stands still from `#stillFromMs` to `#stillToMs`. `#stoodStillMs` is the sum of the earlier periods. */
  #stillFromMs = 0;
  #stillToMs = 0;
  #stoodStillMs = 0;

  constructor(backOff: BackOff) {
    this.#backOff = backOff;
  }

  get isClosed(): boolean {
    return this.#closedAt > 0;
  }

  /** Whether requests fail, and not only a run beside accepted requests. */
  get isFailing(): boolean {
    return this.isClosed || this.loneFailures > 1 || (this.loneFailures > 0 && this.#acceptedAt === 0);
  }

  opensAtMs(isFlushing: boolean): number {
    return this.isClosed ? this.probeAtMs(isFlushing) : this.pausedUntilMs;
  }

  /** Time at which a run that waits may be sent as a probe. */
  probeAtMs(isFlushing: boolean): number {
    const flushAtMs = isFlushing ? this.#failedAtMs + FLUSH_DELAY_MS[this.#failure] : NEVER;
    return Math.max(this.pausedUntilMs, Math.min(this.#probeAtMs, flushAtMs));
  }

  /** Returns the monotonic time without the periods in which runs do not age. */
  activeAt(nowMs: number): number {
    return nowMs - this.#stoodStillMs - Math.max(0, Math.min(nowMs, this.#stillToMs) - this.#stillFromMs);
  }

  evidenceFor({ firstFailedAt, lastFailedAt }: Batch): Evidence {
    if (lastFailedAt > 0 && this.#acceptedAt > lastFailedAt) return 'since last';
    return firstFailedAt > 0 && this.#acceptedAt > firstFailedAt ? 'since first' : 'none';
  }

  /** Whether a batch may be sent before those that wait. */
  isReady({ isNew, lastFailedAt }: Batch): boolean {
    return isNew || this.#acceptedAt > lastFailedAt;
  }

  /** Time from which a batch may be sent before those that wait. */
  readyAtMs(batch: Batch, isFlushing: boolean): number {
    if (this.isReady(batch)) return PAST;
    const { failure, failedAtMs, firstFailedAt, strikes } = batch;
    const isAtFault = failure === 'invalid' && this.#acceptedAt > firstFailedAt;
    return isAtFault && isFlushing && !this.isClosed ? failedAtMs + againMs(strikes) : NEVER;
  }

  sending(batch: Batch): void {
    batch.sentAt = ++this.#moment;
  }

  /** Opens the endpoint, unless the request was sent before the endpoint closed. */
  accepted({ sentAt }: Batch, nowMs: number): void {
    this.#acceptedAt = Math.max(this.#acceptedAt, sentAt);
    if (sentAt < this.#closedAt) return;
    this.#closedAt = 0;
    this.outageSinceMs = NEVER;
    this.loneFailures = 0;
    this.probes = 0;
    this.#standStill(nowMs);
  }

  /** Requests that were sent before the endpoint closed change nothing, except that `Retry-After` holds. */
  failed(batch: Batch, failure: Failure, effect: Decision['endpoint'], nowMs: number, afterMs = 0): void {
    batch.lastFailedAt = ++this.#moment;
    batch.firstFailedAt ||= batch.lastFailedAt;
    batch.failure = failure;
    batch.failedAtMs = nowMs;
    if (afterMs > 0) {
      const untilMs = nowMs + afterMs * (1 + JITTER * this.#backOff.random());
      this.pausedUntilMs = Math.max(this.pausedUntilMs, untilMs);
    }
    if (batch.sentAt >= this.#closedAt) {
      if (batch.isProbe) this.probes++;
      // In simple ingestion, runs of the same batch may have been accepted.
      if (effect === 'counted' && batch.sentAt > this.#acceptedAt) this.loneFailures++;
      if (effect === 'closed' && !this.isClosed) {
        this.#closedAt = this.#moment;
        this.outageSinceMs = nowMs;
      }
      this.#failure = failure;
      this.#failedAtMs = nowMs;
      this.#probeAtMs = nowMs + (afterMs > 0 ? 0 : delayMs(failure, this.probes, this.#backOff));
    }
    this.#standStill(nowMs);
  }

  /** Called when the application sets another API key. The next request is sent at once. */
  keyChanged(): void {
    this.#probeAtMs = PAST;
  }

  /** Runs do not age while refusals or `Retry-After` keep the endpoint closed. */
  #standStill(nowMs: number): void {
    this.#stoodStillMs = nowMs - this.activeAt(nowMs);
    this.#stillFromMs = nowMs;
    this.#stillToMs = this.isClosed && isRefusal(this.#failure) ? NEVER : this.pausedUntilMs;
  }
}
