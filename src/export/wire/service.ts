import { monotonicNowMs } from '../../base/clock.ts';
import { defaultLimits, type Limits } from '../../base/limits.ts';
import { isObject } from '../../base/options.ts';
import { backoffMs, isTransient, probeDelayMs } from '../../http/retry.ts';
import type { Transport } from '../../http/transport.ts';
import type { BatchSize } from '../queue.ts';

/** If the service reports a limit outside these bounds, the nearest bound is used. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/** Runs per batch if neither the service nor the application sets a limit. Larger batches cost less per run. */
const UNLIMITED_RUNS = 500;

/**
 * After a refused batch has lowered the size limit, each accepted full batch raises it by this factor. A gateway that
 * limits the size then refuses one in 70 full batches.
 */
const GROWTH = 1.01;

/** Time limit for the `/info` request. Batches are sent without waiting for its response. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed `/info` request is repeated. */
const RETRY_MS = 60_000;

/** The limits and capabilities that the service reports at `GET /info`. Until a response arrives, defaults apply. */
export class ServiceInfo {
  readonly #client: Transport;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  #reported: BatchSize;
  /** Maximum bytes per batch. Infinity until the service refuses a batch as too large. */
  #bytesMax = Number.POSITIVE_INFINITY;
  #request: Promise<void> = Promise.resolve();
  #requestAtMs = Number.NEGATIVE_INFINITY;
  #refusesMultipart = false;
  /** The maximum size of the next batch. */
  batch: BatchSize;
  takesGzip = false;

  constructor(client: Transport, defaults: BatchSize, monotonicMs: () => number = monotonicNowMs) {
    this.#client = client;
    this.#defaults = defaults;
    this.#monotonicMs = monotonicMs;
    this.#reported = defaults;
    this.batch = defaults;
  }

  /** Limits later batches to half the refused batch's size. */
  tooLarge(bytes: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, Math.max(BYTES.min, Math.floor(bytes / 2)));
    this.#limit();
  }

  /** If the size limit was lowered, raises it by 1 % for each accepted batch of at least half the limit. */
  accepted(bytes: number): void {
    if (this.#bytesMax > this.#reported.bytes || bytes < this.#bytesMax / 2) return;
    this.#bytesMax = Math.ceil(this.#bytesMax * GROWTH);
    this.#limit();
  }

  /** Returns true at most once per `/info` response, so that the sender tries multipart again after a delay. */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  /**
   * Requests `/info` at the first call. A failed request is repeated at the first call after one minute. Never rejects.
   */
  ask(): Promise<void> {
    if (this.#monotonicMs() < this.#requestAtMs) return this.#request;
    this.#requestAtMs = Number.POSITIVE_INFINITY;
    this.#request = this.#read();
    return this.#request;
  }

  async #read(): Promise<void> {
    try {
      const headers = { accept: 'application/json' };
      const answer = await this.#client.send({ method: 'GET', path: '/info', headers, timeoutMs: TIMEOUT_MS });
      if (answer.status === 200) this.#apply(JSON.parse(answer.text));
      else if (isTransient(answer.status)) this.#requestAtMs = this.#monotonicMs() + RETRY_MS;
    } catch {
      // The request failed, or the response is not JSON.
      this.#requestAtMs = this.#monotonicMs() + RETRY_MS;
    }
  }

  #apply(info: unknown): void {
    const ingest = field(info, 'batch_ingest_config');
    const { runs, bytes } = this.#defaults;
    const runsMax = field(ingest, 'size_limit');
    const isUnlimited = isObject(info) && runsMax === undefined && runs === defaultLimits.batchRuns;
    this.#reported = {
      runs: clamped(runsMax, RUNS) ?? (isUnlimited ? UNLIMITED_RUNS : runs),
      bytes: clamped(field(ingest, 'size_limit_bytes'), BYTES) ?? bytes,
    };
    this.#limit();
    this.#refusesMultipart = field(ingest, 'use_multipart_endpoint') === false;
    this.takesGzip = field(field(info, 'instance_flags'), 'gzip_body_enabled') === true;
  }

  #limit(): void {
    const { runs, bytes } = this.#reported;
    this.batch = { runs, bytes: Math.min(bytes, this.#bytesMax) };
  }
}

function field(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function clamped(value: unknown, { min, max }: { min: number; max: number }): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Math.min(max, Math.max(min, Math.floor(value)));
}

// ── When requests may be sent ──

const REFUSED_PAUSE_MAX_MS = 300_000;

const FLUSH_PROBE_MS = 1_000;

/** Maximum share by which a pause is randomly extended, so that processes resume at different times. */
const JITTER = 0.1;

const PAST = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

type GateOptions = Pick<Limits, 'retryDelayMs' | 'retryDelayMaxMs'> & { readonly random: () => number };

/**
 * Decides when the next request may be sent to a service. Callers pass the current monotonic time.
 *
 * - A pause lasts until the time in `Retry-After` or, if the service refuses every request, until the next probe. Runs
 *   do not age during a pause.
 * - An outage lasts from a failed request until a request succeeds. During an outage, each failed request that was sent
 *   after the last back-off starts a longer back-off.
 */
export class SendGate {
  readonly #options: GateOptions;
  /** Time at which the pause from the last `Retry-After` ends. */
  #resumeAtMs = PAST;
  #probeAtMs = PAST;
  #backOffUntilMs = PAST;
  #failures = 0;
  #requestedProbeAtMs = PAST;
  /** Total time of all pauses, including the rest of the current pause. */
  #pausedMs = 0;
  /** Number of consecutive refused probes. While `refusals` is above 0, at most one request is in flight. */
  refusals = 0;
  /** Time at which the current pause ends. A back-off after a failed request is not a pause. */
  pausedUntilMs: number = PAST;
  /** Time at which the current outage started. Infinity if there is no outage. */
  outageSinceMs: number = NEVER;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  get openAtMs(): number {
    return Math.max(this.pausedUntilMs, this.#backOffUntilMs);
  }

  isProbeAhead(nowMs: number): boolean {
    return nowMs < this.#probeAtMs;
  }

  get isOutage(): boolean {
    return this.outageSinceMs !== NEVER;
  }

  /** Converts monotonic time to active time, which does not advance during pauses. */
  activeAt(nowMs: number): number {
    return nowMs - this.#pausedMs + Math.max(0, this.pausedUntilMs - nowMs);
  }

  backOffMs(failures: number): number {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    return backoffMs(failures - 1, random(), retryDelayMs, retryDelayMaxMs);
  }

  /** Called when the service asks for a pause with `Retry-After`. */
  defer(nowMs: number, ms: number): void {
    const untilMs = nowMs + ms * (1 + JITTER * this.#options.random());
    this.#changePause(nowMs, Math.max(this.#resumeAtMs, untilMs), this.#probeAtMs);
  }

  /**
   * Called when the service refuses every request, for example because of a wrong key. The next probe is sent after 1
   * s, later probes after 5 s, 30 s and up to 5 minutes. If `isFlushWaiting` is true, the delay is at most 1 s. A
   * refusal during a pause is ignored, because the refused request was sent before the pause.
   */
  refused(nowMs: number, isFlushWaiting: boolean): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (this.isProbeAhead(nowMs)) return;
    const delayMs = probeDelayMs(this.refusals++, REFUSED_PAUSE_MAX_MS);
    this.#changePause(nowMs, this.#resumeAtMs, nowMs + (isFlushWaiting ? Math.min(delayMs, FLUSH_PROBE_MS) : delayMs));
  }

  /** Called when a request fails. Starts a back-off unless a back-off or a pause is in progress. */
  failed(nowMs: number): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (nowMs < this.openAtMs) return;
    this.#failures++;
    this.#backOffUntilMs = nowMs + this.backOffMs(this.#failures);
  }

  /** Called when a request is accepted. Ends the outage and the wait for a probe, but not a `Retry-After` pause. */
  accepted(nowMs: number): void {
    this.outageSinceMs = NEVER;
    this.#failures = 0;
    this.#backOffUntilMs = PAST;
    if (this.refusals === 0) return;
    this.refusals = 0;
    this.unblock(nowMs);
  }

  /** Called when the service may accept requests again. Ends the wait for a probe, but not a `Retry-After` pause. */
  unblock(nowMs: number): void {
    this.#changePause(nowMs, this.#resumeAtMs, PAST);
  }

  endBackOff(): void {
    this.#backOffUntilMs = PAST;
  }

  /**
   * Called by a flush. Allows a probe immediately, but no earlier than 1 s after the last probe that a flush requested.
   */
  requestProbe(nowMs: number): void {
    const atMs = Math.max(nowMs, this.#requestedProbeAtMs + FLUSH_PROBE_MS);
    if (atMs >= this.#probeAtMs) return;
    this.#requestedProbeAtMs = atMs;
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
