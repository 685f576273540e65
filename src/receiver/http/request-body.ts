import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { messageOf } from '../../base/text.ts';
import { SharedLimit } from '../domain/shared-limit.ts';
import { HttpError } from './http-error.ts';

export interface BodyLimits {
  /** Maximum size of a received body in bytes, compressed or not. */
  readonly wireBytesMax: number;
  /**
   * Maximum size of a decompressed body in bytes. Decompression stops at the maximum size. The compression ratio is not
   * limited, because spans that repeat a long prompt compress by more than 1000 : 1.
   */
  readonly decodedBytesMax: number;
  /** Maximum size of all bodies in memory, in bytes, shared by the tenants. A request above it gets status 429. */
  readonly inFlightBytesMax: number;
}

const MIB = 1024 * 1024;
export const LIMITS: BodyLimits = { wireBytesMax: 64 * MIB, decodedBytesMax: 128 * MIB, inFlightBytesMax: 256 * MIB };
/** For feedback with a token, so that its holders leave the memory for bodies to clients with a key. */
export const LIMITS_OF_ANYONE: BodyLimits = { ...LIMITS, inFlightBytesMax: 16 * MIB };

const CHUNK_OVERHEAD_BYTES = 256;
/** Number of small chunks that are joined. A body in tiny chunks would use a hundred times its size in memory. */
const JOINED_CHUNKS = 64;

const RETRY_AFTER_S = 1;

/** Reads request bodies and limits their total size in memory. */
export class RequestBodies {
  readonly #limits: BodyLimits;
  readonly #onRead: (bytes: number) => void;
  readonly #inFlight: SharedLimit;

  /** `onRead` is called with the size of each decompressed chunk. */
  constructor(limits: BodyLimits = LIMITS, onRead: (bytes: number) => void = () => {}) {
    this.#onRead = onRead;
    this.#limits = limits;
    this.#inFlight = new SharedLimit(limits.inFlightBytesMax);
  }

  /**
   * Passes the decompressed body of a tenant's request to `use`. The body counts towards `inFlightBytesMax` until `use` ends.
   * `bytesMax` can lower the maximum decompressed size. Throws an HTTP 413 error if the body exceeds a limit. Throws a
   * 429 error if all bodies together are too large. Throws a 415 error if the encoding is unknown, or a 400 error if
   * the body is invalid or incomplete.
   */
  async read<Result>(
    request: IncomingMessage,
    tenant: string,
    use: (body: Buffer) => Result | Promise<Result>,
    bytesMax: number = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    const { wireBytesMax, decodedBytesMax } = this.#limits;
    if (Number(request.headers['content-length'] ?? 0) > wireBytesMax) throw tooLarge(wireBytesMax);
    const { source, failureOf, close } = openBody(request, wireBytesMax);
    const isCompressed = source !== request;
    const sizeBytesMax = Math.min(isCompressed ? decodedBytesMax : wireBytesMax, bytesMax);
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    let reservedBytes = 0;
    let smallChunks = 0;
    const add = (chunk: Buffer): void => {
      sizeBytes += chunk.length;
      this.#onRead(chunk.length);
      if (sizeBytes > sizeBytesMax) throw tooLarge(sizeBytesMax, isCompressed ? ' when decompressed' : '');
      const reservation = chunk.length + CHUNK_OVERHEAD_BYTES;
      if (!this.#inFlight.take(tenant, reservation, reservedBytes)) {
        const detail = 'The receiver is processing too many request bodies; send this request again';
        throw new HttpError(429, detail, { 'retry-after': `${RETRY_AFTER_S}` });
      }
      reservedBytes += reservation;
      chunks.push(chunk);
      if (chunk.length < CHUNK_OVERHEAD_BYTES) smallChunks += 1;
      if (smallChunks < JOINED_CHUNKS) return;
      chunks.push(Buffer.concat(chunks.splice(-JOINED_CHUNKS)));
      const freedBytes = (JOINED_CHUNKS - 1) * CHUNK_OVERHEAD_BYTES;
      this.#inFlight.add(tenant, -freedBytes);
      reservedBytes -= freedBytes;
      smallChunks = 0;
    };
    try {
      // Uses events, because an async iterator would add about 10 µs per request.
      await new Promise<void>((resolve, reject) => {
        source.on('data', (chunk: Buffer) => {
          try {
            add(chunk);
          } catch (error) {
            reject(error);
          }
        });
        source.on('end', resolve).on('error', (error) => reject(failureOf(error)));
      });
      const [first] = chunks;
      const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
      // Lets the garbage collector free the chunks while the body is in use.
      chunks.length = 0;
      return await use(body);
    } finally {
      this.#inFlight.add(tenant, -reservedBytes);
      close();
    }
  }
}

/** Decompresses a body of any size. Throws HTTP errors: 400 if it is invalid, 415 if the encoding is unknown. */
export async function* decompressed(request: IncomingMessage): AsyncGenerator<Buffer> {
  const { source, failureOf, close } = openBody(request, Number.POSITIVE_INFINITY);
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false })) yield chunk;
  } catch (error) {
    throw failureOf(error);
  } finally {
    close();
  }
}

function tooLarge(bytesMax: number, when = ''): HttpError {
  return new HttpError(413, `The body is larger than ${bytesMax} bytes${when}`);
}

/** Returns the decompressed body as `source`, which is the request itself if the body is not compressed. */
function openBody(request: IncomingMessage, wireBytesMax: number) {
  const { encoding, decoder } = decoderOf(request.headers['content-encoding']) ?? {};
  if (decoder !== undefined) {
    let wireBytes = 0;
    request.on('data', ({ length }: Buffer) => {
      wireBytes += length;
      if (wireBytes > wireBytesMax) decoder.destroy(tooLarge(wireBytesMax));
    });
    request.once('close', () => {
      if (!request.complete) decoder.destroy(new Error('the connection ended before the body was complete'));
    });
    request.pipe(decoder);
  }
  const problem = encoding === undefined ? 'complete' : `valid ${encoding}`;
  return {
    source: decoder ?? request,
    failureOf: (error: unknown) =>
      error instanceof HttpError ? error : new HttpError(400, `The body is not ${problem}: ${messageOf(error)}`),
    /** Discards the rest of the body, because clients send the whole body before they read the response. */
    close: () => {
      request.removeAllListeners('data').unpipe().resume();
      decoder?.destroy();
    },
  };
}

/** Available since Node 22.15. The decoder accepts truncated frames, but the body's parser detects them. */
const { createZstdDecompress, constants } = zlib as typeof zlib & {
  createZstdDecompress?: (options: { chunkSize: number; params: Record<number, number> }) => Transform;
  constants: { ZSTD_d_windowLogMax: number };
};

export const hasZstd: boolean = createZstdDecompress !== undefined;

/** 8 MiB (RFC 9659). Without a limit, a small frame could make the decoder allocate a much larger window. */
const ZSTD_WINDOW_LOG_MAX = 23;

const OPTIONS = { chunkSize: 64 * 1024 };

/** Returns undefined for `identity` and an empty header. Throws an HTTP 415 error if the encoding is unknown. */
function decoderOf(header = ''): { encoding: string; decoder: Transform } | undefined {
  // Recipients treat `x-gzip` as `gzip`: https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.3
  const encoding = header
    .trim()
    .toLowerCase()
    .replace(/^x-gzip$/, 'gzip');
  if (encoding === '' || encoding === 'identity') return undefined;
  if (encoding === 'gzip') return { encoding, decoder: zlib.createGunzip(OPTIONS) };
  if (encoding === 'zstd' && createZstdDecompress !== undefined) {
    const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };
    return { encoding, decoder: createZstdDecompress({ ...OPTIONS, params }) };
  }
  const accepted = hasZstd ? 'gzip, zstd' : 'gzip';
  const detail = `Expected content-encoding to be ${accepted} or absent, got ${JSON.stringify(encoding)}`;
  throw new HttpError(415, encoding === 'zstd' ? `${detail}; zstd requires Node 22.15` : detail, {
    'accept-encoding': accepted,
  });
}
