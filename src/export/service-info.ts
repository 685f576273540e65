import { monotonicNowMs } from '../base/clock.ts';
import type { HttpClient } from '../http/client.ts';
import { isTransient } from '../http/retry.ts';
import { BatchLimit } from './batch-limit.ts';
import type { BatchSize } from './queue.ts';

/** What a service may ask for; anything outside is brought back within. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/** It is of use only while it comes early. */
const TIMEOUT_MS = 2_000;

/** When it has failed, it is asked again after this, and after twice as long each time. */
const AGAIN_MS = 30_000;
const AGAIN_MAX_MS = 600_000;

/**
 * What the service says of itself at `GET /info`: how large a batch may be, whether it takes gzip, and whether it takes
 * multipart ingestion at all. It is asked in the background, and again later when that failed; until it has answered, and
 * when it answers with something else, the defaults hold.
 */
export class ServiceInfo {
  /** What it has said of the size of a batch, and shown since. */
  readonly limit: BatchLimit;
  readonly #client: HttpClient;
  readonly #defaults: BatchSize;
  readonly #monotonicMs: () => number;
  #asked: Promise<void> = Promise.resolve();
  #askAtMs = Number.NEGATIVE_INFINITY;
  #againMs = AGAIN_MS;
  #refusesMultipart = false;
  #takesGzip = false;

  constructor(client: HttpClient, defaults: BatchSize, monotonicMs: () => number = monotonicNowMs) {
    this.#client = client;
    this.#defaults = defaults;
    this.#monotonicMs = monotonicMs;
    this.limit = new BatchLimit(defaults);
  }

  get batch(): BatchSize {
    return this.limit.size;
  }

  /**
   * Whether the service says that it does not take multipart ingestion. Says so once: it is tried again when the fallback
   * has lasted for its time.
   */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  get takesGzip(): boolean {
    return this.#takesGzip;
  }

  /** The service has answered a gzipped body with 415. */
  refuseGzip(): void {
    this.#takesGzip = false;
  }

  /** Asks the service, the first time that it is called and when it is time to ask again. Never rejects. */
  ask(): Promise<void> {
    if (this.#monotonicMs() < this.#askAtMs) return this.#asked;
    this.#askAtMs = Number.POSITIVE_INFINITY;
    this.#asked = this.#read();
    return this.#asked;
  }

  async #read(): Promise<void> {
    try {
      const headers = { accept: 'application/json' };
      const answer = await this.#client.send({ method: 'GET', path: '/info', headers, timeoutMs: TIMEOUT_MS });
      if (answer.status === 200) this.#take(JSON.parse(answer.text));
      else if (isTransient(answer.status)) this.#askLater();
    } catch {
      // No answer, or no JSON.
      this.#askLater();
    }
  }

  #askLater(): void {
    this.#askAtMs = this.#monotonicMs() + this.#againMs;
    this.#againMs = Math.min(AGAIN_MAX_MS, this.#againMs * 2);
  }

  #take(info: unknown): void {
    const ingest = field(info, 'batch_ingest_config');
    this.limit.say({
      runs: clamped(field(ingest, 'size_limit'), RUNS) ?? this.#defaults.runs,
      bytes: clamped(field(ingest, 'size_limit_bytes'), BYTES) ?? this.#defaults.bytes,
    });
    this.#refusesMultipart = field(ingest, 'use_multipart_endpoint') === false;
    this.#takesGzip = field(field(info, 'instance_flags'), 'gzip_body_enabled') === true;
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function clamped(value: unknown, { min, max }: { min: number; max: number }): number | undefined {
  return typeof value === 'number' && Number.isFinite(value)
    ? Math.min(max, Math.max(min, Math.floor(value)))
    : undefined;
}
