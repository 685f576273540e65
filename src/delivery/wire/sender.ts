import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { isBreak } from '../../http/failure.ts';
import { probeDelayMs } from '../../http/retry.ts';
import { bodyBytes, isKeyRefused } from '../../http/transport.ts';
import { isPerRequest } from '../../platform/node.ts';
import type { Batch, RequestBody } from '../batch.ts';
import { isRefusal } from '../retry-policy.ts';
import type { Slab } from '../slab/slab.ts';
import { COMPRESSED_BYTES_MIN, compress, type Encoding, firstSupported } from './compress.ts';
import type { RunEncoder } from './encoder.ts';
import { type Ingest, type IngestResult, type Outcome, UNSENT, unencodable } from './outcome.ts';
import type { ServiceInfo } from './service-info.ts';
import type { SimpleIngestion } from './simple.ts';

/** If an upload of at least this many bytes fails midway, the batch may be too large for the service. */
const LARGE_UPLOAD_BYTES = 1024 * 1024;

/** After this many broken uploads, a batch counts as too large. Some gateways send no 413, but close the connection. */
const BROKEN_UPLOADS_MAX = 2;

/** Maximum delay before `/runs/multipart` is tried again, in milliseconds. Applies if the service had no such route. */
const FALLBACK_MAX_MS = 600_000;

export interface SenderOptions {
  readonly ingest: Ingest;
  readonly info: ServiceInfo;
  readonly encoder: RunEncoder;
  /** Sends runs one by one if the service has no route for batches. Undefined if there is no such way. */
  readonly simple: SimpleIngestion | undefined;
  /** Whether large bodies are compressed, if the service accepts it. */
  readonly compresses: boolean;
  readonly monotonicMs: () => number;
  /** Called when the memory used by request bodies changes. `bytes` is the difference. */
  readonly waitingBytes: (bytes: number) => void;
}

/**
 * Sends batches in one request each. If the service has no such route, sends the runs one by one. The route is tried
 * again after 1 s, 5 s, 30 s, and then after up to 10 minutes.
 */
export class Sender {
  readonly #options: SenderOptions;
  /** Number of attempts in a row that found no multipart route. */
  #fallbacks = 0;
  #fallbackUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Returns one outcome for all items, or one per item. If the signal aborts, the outcome is `unsent`. */
  async send(batch: Batch, signal: AbortSignal): Promise<Outcome | Outcome[]> {
    const outcome = this.#isFallingBack ? undefined : await this.#sendBatch(batch, signal);
    if (outcome !== undefined && outcome.kind !== 'unsupported') return outcome;
    const { simple } = this.#options;
    if (simple === undefined)
      return noRoute(outcome as Unsupported, 'the service has no such route; check the endpoint');
    // Another concurrent request may already have started the fallback.
    if (outcome !== undefined && !this.#isFallingBack) {
      this.#fallbackUntilMs = this.#options.monotonicMs() + probeDelayMs(this.#fallbacks++, FALLBACK_MAX_MS);
    }
    return this.#sendSingly(batch, simple, signal);
  }

  get #isFallingBack(): boolean {
    return this.#options.monotonicMs() < this.#fallbackUntilMs;
  }

  async #sendBatch(batch: Batch, signal: AbortSignal, isPlain = false): Promise<Outcome> {
    const { info, encoder } = this.#options;
    const encodings = isPlain ? [] : info.encodings;
    if (info.refusesMultipart()) return { kind: 'unsupported', detail: '/info reports multipart off' };
    let { body } = batch;
    if (body === undefined) {
      try {
        body =
          batch.slab === undefined
            ? await this.#encode(batch.items, encodings, signal)
            : await this.#bodyOf(batch.slab, encodings, signal);
      } catch (thrown) {
        return signal.aborted ? UNSENT : unencodable(batch.runs, messageOf(thrown));
      }
      this.#setBody(batch, body);
    }
    const result = await this.#post(body, batch.runs, signal);
    if (body.encoding !== undefined && mayRefuseEncoding(result, batch.runs)) {
      this.#setBody(batch, undefined);
      const plain = await this.#sendBatch(batch, signal, true);
      if (result.status === 415 || plain.kind === 'accepted') info.encodings = [];
      return plain;
    }
    const outcome = result.status === undefined ? outcomeOfBreak(batch, body, result) : result.outcome;
    if (result.status !== undefined) {
      diagnostics.debug(`${batch.runs} posts and patches sent as ${encoder.kind}: ${outcome.kind}`);
    }
    // A single oversized run does not change the batch size limit.
    if (outcome.kind === 'failed' && outcome.isTooLarge && batch.runs > 1) info.tooLarge(body.plainBytes);
    if (outcome.kind === 'accepted') {
      this.#fallbacks = 0;
      info.accepted(body.plainBytes);
    }
    return outcome;
  }

  #setBody(batch: Batch, body: RequestBody | undefined): void {
    this.#options.waitingBytes((body?.waitingBytes ?? 0) - (batch.body?.waitingBytes ?? 0));
    batch.body = body;
  }

  async #encode(items: Batch['items'], encodings: readonly Encoding[], signal: AbortSignal): Promise<RequestBody> {
    const { contentType, chunks } = await this.#options.encoder.encode(items, signal);
    const plainBytes = bodyBytes(chunks);
    const compressed = await this.#compressed(chunks, encodings, signal);
    if (compressed === undefined)
      return { contentType, chunks, plainBytes, waitingBytes: plainBytes, encoding: undefined };
    const { bytes, encoding } = compressed;
    return { contentType, chunks: [bytes], plainBytes, waitingBytes: bytes.length, encoding };
  }

  /** Returns the body of a slab. Compresses the slab itself if the service accepts that. */
  async #bodyOf(slab: Slab, encodings: readonly Encoding[], signal: AbortSignal): Promise<RequestBody> {
    const { contentType, plainBytes, kept } = slab;
    const { compresses, waitingBytes } = this.#options;
    const isAccepted = compresses && kept.encoding !== undefined && encodings.includes(kept.encoding);
    const plain = isAccepted ? kept.bytes : slab.plain();
    const compressed = isAccepted ? undefined : await this.#compressed([plain], encodings, signal);
    if (compressed !== undefined) {
      waitingBytes(compressed.bytes.length - kept.bytes.length);
      slab.keepCompressed(compressed.bytes, compressed.encoding);
    }
    const isOfSlab = plain === kept.bytes || compressed !== undefined;
    const { bytes, encoding } = isOfSlab ? slab.kept : { bytes: plain, encoding: undefined };
    return { contentType, chunks: [bytes], plainBytes, waitingBytes: isOfSlab ? 0 : bytes.length, encoding };
  }

  /** Compresses a body if the service accepts that. Returns undefined if the body is sent as it is. */
  async #compressed(chunks: readonly Uint8Array[], encodings: readonly Encoding[], signal: AbortSignal) {
    const { compresses } = this.#options;
    // The first chunk contains the JSON. Attachments are often compressed already. Requests are not compressed on edge
    // runtimes: Cloudflare Workers limit CPU time, and Vercel's edge runtime has no `CompressionStream`.
    const isSmall = (chunks[0]?.length ?? 0) < COMPRESSED_BYTES_MIN;
    const encoding = isPerRequest || !compresses || isSmall ? undefined : firstSupported(encodings);
    // Compression fails, for example, if memory is short or every thread is busy.
    const bytes = encoding && (await compress(chunks, encoding, signal).catch(() => undefined));
    return encoding && bytes && { bytes, encoding };
  }

  #post({ contentType, chunks, encoding }: RequestBody, runs: number, signal: AbortSignal): Promise<IngestResult> {
    const { ingest, encoder } = this.#options;
    return ingest(encoder.kind, runs, {
      method: 'POST',
      path: encoder.path,
      headers: { 'content-type': contentType, ...(encoding !== undefined && { 'content-encoding': encoding }) },
      body: chunks,
      signal,
      isBodyOptional: true,
    });
  }

  async #sendSingly(batch: Batch, simple: SimpleIngestion, signal: AbortSignal): Promise<Outcome[]> {
    // Discards the multipart body, because sending runs one by one may change posts to patches.
    this.#setBody(batch, undefined);
    const outcomes = await simple.send(batch, signal, () => !this.#isFallingBack);
    return outcomes.map((outcome) => {
      if (outcome.kind !== 'unsupported') return outcome;
      this.#fallbackUntilMs = Number.NEGATIVE_INFINITY;
      return noRoute(outcome, 'the service has neither /runs/multipart nor /runs; check the endpoint');
    });
  }
}

type Unsupported = Extract<Outcome, { kind: 'unsupported' }>;

function noRoute({ detail }: Unsupported, why: string): Outcome {
  return { kind: 'failed', failure: 'refused', detail: `${detail}: ${why}` };
}

/** Whether the encoding may be the cause. Gateways also refuse it with statuses other than 415 and those of a key. */
function mayRefuseEncoding({ status, outcome }: IngestResult, runs: number): boolean {
  if (status === 415) return true;
  if (runs > 1 || outcome.kind !== 'failed' || outcome.isTooLarge === true) return false;
  return isRefusal(outcome.failure) && !isKeyRefused(outcome.status ?? 0);
}

/** Returns the outcome of a broken connection. A run that was sent alone never counts as too large. */
function outcomeOfBreak(batch: Batch, { chunks }: RequestBody, { outcome, error }: IngestResult): Outcome {
  const sizeBytes = bodyBytes(chunks);
  if (batch.runs === 1 || sizeBytes < LARGE_UPLOAD_BYTES || !isBreak(error)) return outcome;
  if (++batch.brokenUploads < BROKEN_UPLOADS_MAX) return outcome;
  batch.brokenUploads = 0;
  const detail = `the connection broke ${BROKEN_UPLOADS_MAX} times during an upload of ${sizeBytes} bytes`;
  return { kind: 'failed', failure: 'invalid', detail, isTooLarge: true };
}
