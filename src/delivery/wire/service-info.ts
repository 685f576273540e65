import { monotonicNowMs } from '../../base/clock.ts';
import { isObject } from '../../config/checker.ts';
import type { Transport } from '../../http/transport.ts';
import type { BatchSize } from '../queue.ts';
import type { Encoding } from './compress.ts';
import { NO_ROUTE } from './outcome.ts';

/** Allowed range for limits that the service reports. Values outside the range are set to the nearest bound. */
const RUNS = { min: 1, max: 1_000 };
const BYTES = { min: 64 * 1024, max: 64 * 1024 * 1024 };

/**
 * After a refused batch has lowered the size limit, each accepted full batch raises the limit by this factor. A gateway
 * that limits the body size then refuses about one in 70 full batches.
 */
const GROWTH = 1.01;

/** Timeout of the `/info` request, in milliseconds. Batches do not wait for the `/info` response. */
const TIMEOUT_MS = 2_000;

/** Delay before a failed `/info` request is retried, in milliseconds. */
const RETRY_MS = 60_000;

/** Encodings of request bodies, best first. */
const ENCODINGS: readonly Encoding[] = ['zstd', 'gzip'];

/** The flags for encodings in `instance_flags`, as LangSmith's clients read them (`src/client.ts` of `langsmith` 0.12). */
const FLAGS: Readonly<Record<Encoding, string>> = { zstd: 'zstd_compression_enabled', gzip: 'gzip_body_enabled' };

/** The limits and features that the service reports at `GET /info`. Defaults apply until the response arrives. */
export class ServiceInfo {
  readonly #client: Transport | undefined;
  readonly #defaults: BatchSize;
  /** Maximum size of a batch, in bytes, whatever the service reports. */
  readonly #ownBytesMax: number;
  readonly #monotonicMs: () => number;
  #reported: BatchSize;
  /** Maximum size of a batch, in bytes. Infinity until the service refuses a batch as too large. */
  #bytesMax = Number.POSITIVE_INFINITY;
  #request: Promise<void> = Promise.resolve();
  #requestAtMs = Number.NEGATIVE_INFINITY;
  #refusesMultipart = false;
  #hasAccepted = false;
  batch: BatchSize;
  /** The compressed bodies that the service accepts, best first. */
  encodings: readonly Encoding[];

  /** Without a client, the service has no `/info`. It then takes the encoding that OTLP requires. */
  constructor(
    client: Transport | undefined,
    defaults: BatchSize,
    ownBytesMax: number = Number.POSITIVE_INFINITY,
    monotonicMs: () => number = monotonicNowMs,
  ) {
    this.#client = client;
    this.encodings = client === undefined ? ['gzip'] : [];
    this.#defaults = defaults;
    this.#ownBytesMax = ownBytesMax;
    this.#monotonicMs = monotonicMs;
    this.#reported = defaults;
    this.batch = this.#limit();
  }

  /** Limits further batches to half the size of the refused batch. */
  tooLarge(bytes: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, Math.max(BYTES.min, Math.floor(bytes / 2)));
    this.#limit();
  }

  /** Raises a lowered size limit by 1 % if the accepted batch has at least half the limit's size. */
  accepted(bytes: number): void {
    // An earlier request for the limits may have failed, for example because of an invalid key.
    if (!this.#hasAccepted) void this.ask(true);
    this.#hasAccepted = true;
    if (this.#bytesMax > this.#reported.bytes || bytes < this.#bytesMax / 2) return;
    this.#bytesMax = Math.ceil(this.#bytesMax * GROWTH);
    this.#limit();
  }

  /** Whether `/info` reports that multipart is off. True once per response, so that multipart is tried again later. */
  refusesMultipart(): boolean {
    const refuses = this.#refusesMultipart;
    this.#refusesMultipart = false;
    return refuses;
  }

  /**
   * Requests `/info` at the first call. Unless the service has no such route, a failed request is retried at the earliest
   * after one minute, or at once. Never rejects.
   */
  ask(isAtOnce = false): Promise<void> {
    const nowMs = isAtOnce ? Number.MAX_VALUE : this.#monotonicMs();
    if (this.#client === undefined || nowMs < this.#requestAtMs) return this.#request;
    this.#requestAtMs = Number.POSITIVE_INFINITY;
    this.#request = this.#read(this.#client);
    return this.#request;
  }

  async #read(client: Transport): Promise<void> {
    try {
      const headers = { accept: 'application/json' };
      const response = await client.send({ method: 'GET', path: '/info', headers, timeoutMs: TIMEOUT_MS });
      if (NO_ROUTE.has(response.status)) return;
      if (response.status === 200) return this.#apply(JSON.parse(response.text));
    } catch {
      // The request failed, or the response is not JSON.
    }
    this.#requestAtMs = this.#monotonicMs() + RETRY_MS;
  }

  #apply(info: unknown): void {
    const ingest = field(info, 'batch_ingest_config');
    const { runs, bytes } = this.#defaults;
    this.#reported = {
      runs: clamped(field(ingest, 'size_limit'), RUNS) ?? runs,
      bytes: clamped(field(ingest, 'size_limit_bytes'), BYTES) ?? bytes,
    };
    this.#limit();
    this.#refusesMultipart = field(ingest, 'use_multipart_endpoint') === false;
    const flags = field(info, 'instance_flags');
    this.encodings = ENCODINGS.filter((encoding) => field(flags, FLAGS[encoding]) === true);
  }

  #limit(): BatchSize {
    const { runs, bytes } = this.#reported;
    this.batch = { runs, bytes: Math.min(bytes, this.#bytesMax, this.#ownBytesMax) };
    return this.batch;
  }
}

function field(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function clamped(value: unknown, { min, max }: { min: number; max: number }): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return Math.min(max, Math.max(min, Math.floor(value)));
}
