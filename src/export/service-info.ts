import type { HttpClient } from '../http/client.ts';
import type { BatchSize } from './queue.ts';

/** What a service may ask for; anything outside is brought back within. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/**
 * What the service says of itself at `GET /info`: how large a batch may be, whether it takes gzip, and whether it takes
 * multipart ingestion at all. It is asked once, in the background; until it has answered, and when it does not answer
 * or answers with something else, the defaults hold.
 */
export class ServiceInfo {
  readonly #client: HttpClient;
  #batch: BatchSize;
  #asked: Promise<void> | undefined;
  #refusesMultipart = false;
  #takesGzip = false;

  constructor(client: HttpClient, defaults: BatchSize) {
    this.#client = client;
    this.#batch = defaults;
  }

  get batch(): BatchSize {
    return this.#batch;
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

  /** Asks the service, the first time that it is called. Never rejects. */
  ask(): Promise<void> {
    this.#asked ??= this.#read();
    return this.#asked;
  }

  async #read(): Promise<void> {
    try {
      const answer = await this.#client.send({ method: 'GET', path: '/info', headers: { accept: 'application/json' } });
      if (answer.status === 200) this.#take(JSON.parse(answer.text));
    } catch {
      // No answer, or no JSON: the defaults hold.
    }
  }

  #take(info: unknown): void {
    const ingest = field(info, 'batch_ingest_config');
    this.#batch = {
      runs: clamped(field(ingest, 'size_limit'), RUNS) ?? this.#batch.runs,
      bytes: clamped(field(ingest, 'size_limit_bytes'), BYTES) ?? this.#batch.bytes,
    };
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
