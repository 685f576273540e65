import { monotonicNowMs } from '../base/clock.ts';
import { defaultLimits } from '../base/limits.ts';
import { isObject } from '../base/options.ts';
import type { HttpClient } from '../http/client.ts';
import { isTransient } from '../http/retry.ts';
import type { BatchSize } from './queue.ts';

/** Bounds of the limits that a service can set. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/**
 * Runs per batch if the response sets no limit and neither does the application. Larger batches cost less per run.
 */
const UNLIMITED_RUNS = 500;

/** Growth of the limit with each full batch that is accepted after a 413. */
const GROWTH = 1.01;

/** The response is useful only if it arrives early. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed request is repeated. It doubles with each failure. */
const RETRY_MS = 30_000;
const RETRY_MAX_MS = 600_000;

/**
 * The capabilities of the service according to `GET /info`: the maximum size of a batch, and whether the service accepts gzip
 * and multipart ingestion. The request is made in the background and repeated if it fails. Until the response arrives, and if
 * it is unusable, the defaults apply.
 */
export class ServiceInfo {
  readonly #client: HttpClient;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  /** The limit according to `/info`, or the default, and the limit that results from it and from 413s. */
  #reported: BatchSize;
  #batch: BatchSize;
  #request: Promise<void> = Promise.resolve();
  #requestAtMs = Number.NEGATIVE_INFINITY;
  #retryMs = RETRY_MS;
  #refusesMultipart = false;
  #takesGzip = false;

  constructor(client: HttpClient, defaults: BatchSize, monotonicMs: () => number = monotonicNowMs) {
    this.#client = client;
    this.#defaults = defaults;
    this.#monotonicMs = monotonicMs;
    this.#reported = defaults;
    this.#batch = defaults;
  }

  /** Maximum size of a batch. */
  get batch(): BatchSize {
    return this.#batch;
  }

  /**
   * Called when a batch of this size was too large: half of it is the limit now. The limit grows by a hundredth with each
   * accepted batch of at least half its size, so that about one batch in seventy is refused if a gateway accepts less than
   * `/info` reports.
   */
  tooLarge(bytes: number): void {
    const half = Math.max(BYTES.min, Math.floor(bytes / 2));
    if (half < this.#batch.bytes) this.#batch = { runs: this.#batch.runs, bytes: half };
  }

  /** Called when a batch of this size was accepted. */
  accepted(sizeBytes: number): void {
    const { runs, bytes } = this.#batch;
    if (bytes >= this.#reported.bytes || sizeBytes < bytes / 2) return;
    this.#batch = { runs, bytes: Math.min(this.#reported.bytes, Math.ceil(bytes * GROWTH)) };
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

  get takesGzip(): boolean {
    return this.#takesGzip;
  }

  /** Called when the service has answered a gzipped body with 415. */
  refuseGzip(): void {
    this.#takesGzip = false;
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
      else if (isTransient(answer.status)) this.#retryLater();
    } catch {
      // No response, or no JSON.
      this.#retryLater();
    }
  }

  #retryLater(): void {
    this.#requestAtMs = this.#monotonicMs() + this.#retryMs;
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2);
  }

  #apply(info: unknown): void {
    const ingest = field(info, 'batch_ingest_config');
    const { runs, bytes } = this.#defaults;
    const runsMax = field(ingest, 'size_limit');
    const isUnlimited = isObject(info) && runsMax === undefined && runs === defaultLimits.batchRuns;
    // A lower limit that results from a 413 stays.
    const loweredBytes = this.#batch.bytes < this.#reported.bytes ? this.#batch.bytes : Number.POSITIVE_INFINITY;
    this.#reported = {
      runs: clamped(runsMax, RUNS) ?? (isUnlimited ? UNLIMITED_RUNS : runs),
      bytes: clamped(field(ingest, 'size_limit_bytes'), BYTES) ?? bytes,
    };
    this.#batch = { runs: this.#reported.runs, bytes: Math.min(loweredBytes, this.#reported.bytes) };
    this.#refusesMultipart = field(ingest, 'use_multipart_endpoint') === false;
    this.#takesGzip = field(field(info, 'instance_flags'), 'gzip_body_enabled') === true;
  }
}

function field(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function clamped(value: unknown, { min, max }: { min: number; max: number }): number | undefined {
  return typeof value === 'number' && Number.isFinite(value)
    ? Math.min(max, Math.max(min, Math.floor(value)))
    : undefined;
}
