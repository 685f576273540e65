import { monotonicNowMs } from '../../base/clock.ts';
import { isObject } from '../../config/checker.ts';
import { defaultLimits, type Limits } from '../../config/limits.ts';
import { backoffMs, isTransient, probeDelayMs } from '../../http/retry.ts';
import type { Transport } from '../../http/transport.ts';
import type { BatchSize } from '../queue.ts';

/** Allowed range for limits that the service reports. Values outside the range are set to the nearest bound. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/** Maximum number of runs per batch if neither the service nor the application sets a limit. */
const UNLIMITED_RUNS = 500;

/**
 * After a refused batch has lowered the size limit, each accepted full batch raises the limit by this factor. A gateway
 * that limits the body size then refuses about one in 70 full batches.
 */
const GROWTH = 1.01;

/** Timeout of the `/info` request, in milliseconds. Batches do not wait for the `/info` response. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed `/info` request is retried, in milliseconds. */
const RETRY_MS = 60_000;

/** The limits and features that the service reports at `GET /info`. Defaults apply until the response arrives. */
export class ServiceInfo {
  readonly #client: Transport;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  #reported: BatchSize;
  /** Maximum size of a batch, in bytes. Infinity until the service refuses a batch as too large. */
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

  /** Limits further batches to half the size of the refused batch. */
  tooLarge(bytes: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, Math.max(BYTES.min, Math.floor(bytes / 2)));
    this.#limit();
  }

  /** Raises a lowered size limit by 1 % if the accepted batch has at least half the limit's size. */
  accepted(bytes: number): void {
    if (this.#bytesMax > this.#reported.bytes || bytes < this.#bytesMax / 2) return;
    this.#bytesMax = Math.ceil(this.#bytesMax * GROWTH);
    this.#limit();
  }

  /**
   * Whether `/info` reports that multipart is off. Returns true only once per `/info` response, so that multipart is
   * tried again later.
   */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  /**
   * Requests `/info` at the first call. A failed request is retried at the earliest after one minute. Never rejects.
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

/** Maximum random extension of a pause, as a share of its length. Lets processes resume at different times. */
const JITTER = 0.1;

const PAST = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

type GateOptions = Pick<Limits, 'retryDelayMs' | 'retryDelayMaxMs'> & { readonly random: () => number };

/**
 * Decides when the next request may be sent. Callers pass the current monotonic time.
 *
 * - A pause starts when the service sends `Retry-After` or refuses every request. Runs do not age during a pause.
 * - An outage lasts from a failed request until a request succeeds. During an outage, the retry delay grows with each
 *   failure.
 */
export class SendGate {
  readonly #options: GateOptions;
  /** Time at which the `Retry-After` pause ends. */
  #resumeAtMs = PAST;
  #probeAtMs = PAST;
  #backOffUntilMs = PAST;
  #failures = 0;
  #requestedProbeAtMs = PAST;
  /** Total length of all pauses, including the rest of the current pause. */
  #pausedMs = 0;
  /** Number of refused requests in a row. While `refusals` is above 0, at most one request is in flight. */
  refusals = 0;
  /** Time at which the current pause ends. The retry delay after a failed request is not a pause. */
  pausedUntilMs: number = PAST;
  /** Start of the current outage. Infinity if there is no outage. */
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

  /** Returns the monotonic time minus the total length of all pauses. */
  activeAt(nowMs: number): number {
    return nowMs - this.#pausedMs + Math.max(0, this.pausedUntilMs - nowMs);
  }

  backOffMs(failures: number): number {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    return backoffMs(failures - 1, random(), retryDelayMs, retryDelayMaxMs);
  }

  /** Called when a response contains `Retry-After`. */
  defer(nowMs: number, ms: number): void {
    const untilMs = nowMs + ms * (1 + JITTER * this.#options.random());
    this.#changePause(nowMs, Math.max(this.#resumeAtMs, untilMs), this.#probeAtMs);
  }

  /**
   * Called when the service refuses every request, for example because of a wrong API key. The next request is sent
   * after 1 s, then after 5 s, 30 s, and up to 5 minutes. If `isFlushWaiting` is true, the delay is at most 1 s.
   * Refusals during a pause are ignored, because those requests were sent before the pause.
   */
  refused(nowMs: number, isFlushWaiting: boolean): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (this.isProbeAhead(nowMs)) return;
    const delayMs = probeDelayMs(this.refusals++, REFUSED_PAUSE_MAX_MS);
    this.#changePause(nowMs, this.#resumeAtMs, nowMs + (isFlushWaiting ? Math.min(delayMs, FLUSH_PROBE_MS) : delayMs));
  }

  /** Called when a request fails. Starts a retry delay, unless a delay or a pause is in progress. */
  failed(nowMs: number): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (nowMs < this.openAtMs) return;
    this.#failures++;
    this.#backOffUntilMs = nowMs + this.backOffMs(this.#failures);
  }

  /** Called when a request succeeds. Ends the outage, but not a `Retry-After` pause. */
  accepted(nowMs: number): void {
    this.outageSinceMs = NEVER;
    this.#failures = 0;
    this.#backOffUntilMs = PAST;
    if (this.refusals === 0) return;
    this.refusals = 0;
    this.unblock(nowMs);
  }

  /**
   * Called when the service may accept requests again. Ends the pause after refused requests, but not a `Retry-After`
   * pause.
   */
  unblock(nowMs: number): void {
    this.#changePause(nowMs, this.#resumeAtMs, PAST);
  }

  endBackOff(): void {
    this.#backOffUntilMs = PAST;
  }

  /** Called by a flush. Allows a test request immediately, but not more than once per second. */
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
