import { monotonicNowMs } from '../base/clock.ts';
import { defaultLimits, type Limits } from '../base/limits.ts';
import { isObject } from '../base/options.ts';
import type { HttpClient } from '../http/client.ts';
import { backoffMs, isTransient, probeDelayMs } from '../http/retry.ts';
import type { BatchSize } from './queue.ts';

/** Bounds of the limits that a service can set. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/** Runs per batch if neither the response nor the application sets a limit. Larger batches cost less per run. */
const UNLIMITED_RUNS = 500;

/** Growth of a lowered limit. Of seventy full batches, about one is then too large for a gateway with a lower limit. */
const GROWTH = 1.01;

/** Time limit of the request. Batches do not wait for the response. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed request is repeated. */
const RETRY_MS = 60_000;

/**
 * The capabilities of the service according to `GET /info`. The request is made in the background and repeated if it fails.
 * Until the response arrives, and if it is unusable, the defaults apply.
 */
export class ServiceInfo {
  readonly #client: HttpClient;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  /** The limit according to `/info`, or the default. */
  #reported: BatchSize;
  /** The limit that follows from batches that were too large. */
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

  /** Called when a batch of this size was too large. Limits later batches to half of it. */
  tooLarge(bytes: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, Math.max(BYTES.min, Math.floor(bytes / 2)));
    this.#limit();
  }

  /** Called when a batch of this size was accepted. A full batch raises a lowered limit by a hundredth. */
  accepted(bytes: number): void {
    if (this.#bytesMax > this.#reported.bytes || bytes < this.#bytesMax / 2) return;
    this.#bytesMax = Math.ceil(this.#bytesMax * GROWTH);
    this.#limit();
  }

  /**
   * Whether the service reports that multipart ingestion is off. Returns true only once, because the sender tries multipart
   * again when the fallback ends.
   */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  /** Requests `/info` if that has not been done, or if it is time to retry. Never rejects. */
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
      // No response, or no JSON.
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

/** Maximum share by which a pause is prolonged at random, so that processes do not all resume at once. */
const JITTER = 0.1;

const NEVER = Number.NEGATIVE_INFINITY;
const NONE = Number.POSITIVE_INFINITY;

type GateOptions = Pick<Limits, 'retryDelayMs' | 'retryDelayMaxMs'> & { readonly random: () => number };

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
  readonly #options: GateOptions;
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
