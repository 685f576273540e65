import type { IncomingMessage } from 'node:http';
import { messageOf } from '../../base/text.ts';
import { HttpError } from '../http-error.ts';
import { decoderOf } from './inflation.ts';

/** The limits of request bodies in bytes. */
export interface BodyLimits {
  /** Maximum size of a body as sent, compressed or not. */
  readonly wireBytesMax: number;
  /**
   * Maximum size of a decompressed body. Decompression stops there. The compression ratio itself is not limited, because
   * batches of spans that repeat a long prompt compress by more than 1000 : 1.
   */
  readonly decodedBytesMax: number;
  /**
   * Maximum total size of all bodies in memory, compressed and decompressed. Requests beyond it get 429 and can be
   * retried.
   */
  readonly inFlightBytesMax: number;
}

const MIB = 1024 * 1024;
const LIMITS: BodyLimits = { wireBytesMax: 64 * MIB, decodedBytesMax: 128 * MIB, inFlightBytesMax: 256 * MIB };

const RETRY_AFTER_S = 1;

/** Reads the bodies of all requests of a server, and limits their total size. */
export class RequestBodies {
  readonly #limits: BodyLimits;
  #inFlightBytes = 0;

  constructor(limits: BodyLimits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * Passes the decompressed body of a request to `use`. The body counts as in flight until `use` ends. `bytesMax` limits
   * the decompressed size further. Throws 413 for a body over a limit, 429 if too many bytes are in flight, 415 for an
   * unknown encoding, and 400 for an invalid or incomplete body.
   */
  async read<Result>(
    request: IncomingMessage,
    use: (body: Buffer) => Result | Promise<Result>,
    bytesMax: number = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    let ownBytes = 0;
    const reserve = (sizeBytes: number): void => {
      if (this.#inFlightBytes + sizeBytes > this.#limits.inFlightBytesMax) {
        const detail = 'The receiver is busy with the bodies of other requests; send this request again';
        throw new HttpError(429, detail, { 'retry-after': `${RETRY_AFTER_S}` });
      }
      ownBytes += sizeBytes;
      this.#inFlightBytes += sizeBytes;
    };
    try {
      return await use(await readBody(request, this.#limits, bytesMax, reserve));
    } finally {
      this.#inFlightBytes -= ownBytes;
    }
  }
}

function readBody(
  request: IncomingMessage,
  { wireBytesMax, decodedBytesMax }: BodyLimits,
  bytesMax: number,
  reserve: (sizeBytes: number) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { 'content-encoding': header, 'content-length': length = 0 } = request.headers;
    const { encoding, decoder } = decoderOf(header) ?? {};
    if (Number(length) > wireBytesMax) throw tooLarge(wireBytesMax);
    const body = new GrowingBuffer();
    let isRefused = false;
    const refuse = (error: unknown): void => {
      isRefused = true;
      decoder?.destroy();
      reject(error);
    };
    /** After an error, the rest of the body is read and discarded, because clients send it before they read the response. */
    const limited = (limitBytes: number, when: string, use: (chunk: Buffer) => void) => {
      let sizeBytes = 0;
      return (chunk: Buffer): void => {
        if (isRefused) return;
        try {
          sizeBytes += chunk.length;
          if (sizeBytes > limitBytes) throw tooLarge(limitBytes, when);
          reserve(chunk.length);
          use(chunk);
        } catch (error) {
          refuse(error);
        }
      };
    };
    const push = (chunk: Buffer): void => body.push(chunk);
    const end = (): void => resolve(body.bytes);
    request.on('error', () => refuse(new HttpError(400, 'The connection ended before the body was complete')));
    if (decoder === undefined) {
      request.on('data', limited(Math.min(wireBytesMax, bytesMax), '', push)).on('end', end);
      return;
    }
    request
      .on(
        'data',
        limited(wireBytesMax, '', (chunk) => decoder.write(chunk)),
      )
      .on('end', () => decoder.end());
    decoder.on('data', limited(Math.min(decodedBytesMax, bytesMax), ' when decompressed', push)).on('end', end);
    decoder.on('error', (error) =>
      refuse(new HttpError(400, `The body is not valid ${encoding}: ${messageOf(error)}`)),
    );
  });
}

function tooLarge(bytesMax: number, when = ''): HttpError {
  return new HttpError(413, `The body is larger than ${bytesMax} bytes${when}`);
}

/** Copies chunks into one buffer, because a body of small chunks would take a hundred times its size as a list. */
class GrowingBuffer {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  push(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      this.#buffer = chunk;
    } else {
      if (length > this.#buffer.length) {
        const larger = Buffer.allocUnsafe(2 * length);
        this.bytes.copy(larger);
        this.#buffer = larger;
      }
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
  }
}
