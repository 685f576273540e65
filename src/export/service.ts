import { monotonicNowMs } from '../base/clock.ts';
import { defaultLimits, type Limits } from '../base/limits.ts';
import { isObject } from '../base/options.ts';
import type { HttpClient } from '../http/client.ts';
import { backoffMs, isTransient, probeDelayMs } from '../http/retry.ts';
import type { BatchSize } from './queue.ts';

/** Bounds for the limits that a service reports. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/** Runs per batch if neither the response nor the application sets a limit. Larger batches cost less per run. */
const UNLIMITED_RUNS = 500;

/** Factor by which a full batch raises a lowered limit. A gateway then refuses about one in 70 full batches. */
const GROWTH = 1.01;

/** Time limit of the `/info` request. Batches are sent without waiting for its response. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed `/info` request is repeated. */
const RETRY_MS = 60_000;

/**
 * The capabilities of the service according to `GET /info`. The request is made in the background and repeated if it
 * fails. The defaults apply until a valid response arrives.
 */
export class ServiceInfo {
  readonly #client: HttpClient;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  /** The limits reported by `/info`, or the defaults. */
  #reported: BatchSize;
  /** Maximum bytes of a batch, lowered when a batch was too large. */
  #bytesMax = Number.POSITIVE_INFINITY;
  #request: Promise<void> = Promise.resolve();
  #requestAtMs = Number.NEGATIVE_INFINITY;
  #refusesMultipart = false;
  /** Maximum size of a batch. */
  batch: BatchSize;
  /** Whether the service accepts gzipped bodies. */
  takesGzip = false;

  constructor(client: HttpClient, defaults: BatchSize, monotonicMs: () => number = monotonicNowMs) {
    this.#client = client;
    this.#defaults = defaults;
    this.#monotonicMs = monotonicMs;
    this.#reported = defaults;
    this.batch = defaults;
  }

  /** Called when a batch of this size was too large. Limits later batches to half the size. */
  tooLarge(bytes: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, Math.max(BYTES.min, Math.floor(bytes / 2)));
    this.#limit();
  }

  /** Called when a batch of this size was accepted. A lowered limit rises by 1 % if the batch filled half of it. */
  accepted(bytes: number): void {
    if (this.#bytesMax > this.#reported.bytes || bytes < this.#bytesMax / 2) return;
    this.#bytesMax = Math.ceil(this.#bytesMax * GROWTH);
    this.#limit();
  }

  /**
   * Whether `/info` reported that multipart ingestion is off. Returns true only once per response, because the sender
   * tries multipart again when the fallback ends.
   */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  /** Requests `/info` at the first call and when a retry is due. Never rejects. */
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

const HURRIED_PROBE_MS = 1_000;

/** Maximum share by which a pause is randomly prolonged, so that processes resume at different times. */
const JITTER = 0.1;

const NEVER = Number.NEGATIVE_INFINITY;
const NONE = Number.POSITIVE_INFINITY;

type GateOptions = Pick<Limits, 'retryDelayMs' | 'retryDelayMaxMs'> & { readonly random: () => number };

/**
 * Tracks when the next request may be sent to a service. Each response affects all later requests. Callers pass the
 * current monotonic time.
 *
 * - A pause lasts until the time in `Retry-After` has passed, or until the next probe if the service refuses every
 *   request. Age limits do not include the time of pauses.
 * - An outage lasts from a failed request until a request succeeds. During an outage, each wave of failed requests
 *   starts a back-off. Later back-offs are longer.
 */
export class SendGate {
  readonly #options: GateOptions;
  /** Times at which the `Retry-After` pause, the wait for a probe and the back-off end. */
  #resumeAtMs = NEVER;
  #probeAtMs = NEVER;
  #backOffUntilMs = NEVER;
  #failures = 0;
  #hurriedProbeAtMs = NEVER;
  #pausedMs = 0;
  /** Number of consecutive refusals. If it is above 0, only one request at a time is sent, which probes the service. */
  refusals = 0;
  /** Time at which the pause ends. A back-off is not a pause. */
  pausedUntilMs: number = NEVER;
  /** Time at which the outage began, or infinity if there is no outage. */
  outageSinceMs: number = NONE;

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
    return this.outageSinceMs !== NONE;
  }

  /** Converts a monotonic time to active time, which does not advance during pauses. */
  activeAt(nowMs: number): number {
    return nowMs - this.#pausedMs + Math.max(0, this.pausedUntilMs - nowMs);
  }

  /** Returns the back-off in milliseconds after a number of failed attempts, with full jitter. */
  backOffMs(failures: number): number {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    return backoffMs(failures - 1, random(), retryDelayMs, retryDelayMaxMs);
  }

  /** Records that the service asks for a pause, which is randomly prolonged by up to 10 %. */
  defer(nowMs: number, ms: number): void {
    const untilMs = nowMs + ms * (1 + JITTER * this.#options.random());
    this.#changePause(nowMs, Math.max(this.#resumeAtMs, untilMs), this.#probeAtMs);
  }

  /**
   * Records that the service refuses every request, for example because of a wrong key. The first probe is sent after 1
   * s, later probes after 5 s, 30 s and up to 5 minutes. If `isHurried` is true, the delay is at most 1 s. Refusals
   * during the wait for a probe are ignored, because their requests were sent earlier.
   */
  refused(nowMs: number, isHurried: boolean): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (this.isProbeAhead(nowMs)) return;
    const delayMs = probeDelayMs(this.refusals++, REFUSED_PAUSE_MAX_MS);
    this.#changePause(nowMs, this.#resumeAtMs, nowMs + (isHurried ? Math.min(delayMs, HURRIED_PROBE_MS) : delayMs));
  }

  /** Records a failed request. Starts a back-off unless a back-off or a pause is already in progress. */
  failed(nowMs: number): void {
    this.outageSinceMs = Math.min(this.outageSinceMs, nowMs);
    if (nowMs < this.openAtMs) return;
    this.#failures++;
    this.#backOffUntilMs = nowMs + this.backOffMs(this.#failures);
  }

  /** Records an accepted request. Ends the outage and the wait for a probe, but not a `Retry-After` pause. */
  accepted(nowMs: number): void {
    this.outageSinceMs = NONE;
    this.#failures = 0;
    this.#backOffUntilMs = NEVER;
    if (this.refusals === 0) return;
    this.refusals = 0;
    this.unblock(nowMs);
  }

  /** Ends the wait for the next probe. Called when the cause of the refusals may be gone. */
  unblock(nowMs: number): void {
    this.#changePause(nowMs, this.#resumeAtMs, NEVER);
  }

  /** Ends the back-off of an outage. Called while a flush waits. */
  endBackOff(): void {
    this.#backOffUntilMs = NEVER;
  }

  /** Schedules the next probe for now because of a flush, but at least 1 s after the last such probe. */
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
