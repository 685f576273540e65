import type { IncomingMessage } from 'node:http';
import { messageOf } from '../../base/text.ts';
import { Refusal } from '../refusal.ts';
import { decoderOf } from './inflation.ts';
import { Pieces } from './pieces.ts';

/** The limits of bodies, in bytes. */
export interface BodyLimits {
  /** One body as it comes over the wire, compressed or not. */
  readonly wireBytesMax: number;
  /**
   * Maximum size of one decompressed body. Decompression stops there. The compression ratio itself is not limited, because
   * batches of spans that repeat a long prompt compress by more than 1000 : 1.
   */
  readonly decodedBytesMax: number;
  /**
   * Maximum total size of all bodies being read, compressed and decompressed. Requests beyond it get 429 and can be
   * retried.
   */
  readonly inFlightBytesMax: number;
}

/** Takes a body piece by piece. What it throws ends the request at once: the rest of the body is not looked at. */
export interface BodyReader<Read> {
  write(bytes: Buffer): void;
  /** Called once all of the body has been written. */
  end(): Read;
}

const MIB = 1024 * 1024;
const LIMITS: BodyLimits = { wireBytesMax: 64 * MIB, decodedBytesMax: 128 * MIB, inFlightBytesMax: 256 * MIB };

const RETRY_AFTER_S = 1;

/** The bodies of a server's requests, which are in memory together. */
export class RequestBodies {
  readonly #limits: BodyLimits;
  #inFlightBytes = 0;

  constructor(limits: BodyLimits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * Lets `reader` read the body of a request, decompressed, and gives what it has read to `use`, until whose end the body
   * counts as in flight. 413 beyond a limit of one body, 429 beyond that of all, 415 for an encoding that is not taken,
   * 400 for a body that is broken or ends early.
   */
  async read<Read, Result>(
    request: IncomingMessage,
    reader: BodyReader<Read>,
    use: (read: Read) => Result | Promise<Result>,
  ): Promise<Result> {
    let ownBytes = 0;
    const take = (sizeBytes: number): void => {
      if (this.#inFlightBytes + sizeBytes > this.#limits.inFlightBytesMax) {
        const detail = 'The receiver is busy with the bodies of other requests; send this one again';
        throw new Refusal(429, detail, { 'retry-after': `${RETRY_AFTER_S}` });
      }
      ownBytes += sizeBytes;
      this.#inFlightBytes += sizeBytes;
    };
    try {
      await pass(request, this.#limits, take, reader);
      return await use(reader.end());
    } finally {
      this.#inFlightBytes -= ownBytes;
    }
  }
}

/** Keeps a body whole, up to so many bytes, beyond which it is refused with 413. */
export class WholeBody implements BodyReader<Buffer> {
  readonly #bytesMax: number;
  readonly #pieces = new Pieces();
  #sizeBytes = 0;

  constructor(bytesMax: number = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
  }

  write(bytes: Buffer): void {
    this.#sizeBytes += bytes.length;
    if (this.#sizeBytes > this.#bytesMax) throw tooLarge(this.#bytesMax);
    this.#pieces.push(bytes);
  }

  end(): Buffer {
    return this.#pieces.whole();
  }
}

/** Is told of bytes before they are kept, and throws when there is no room for them. */
type Take = (sizeBytes: number) => void;

/** Passes a body on to a reader, decompressed, as it comes. */
function pass(request: IncomingMessage, limits: BodyLimits, take: Take, reader: BodyReader<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limits.wireBytesMax) throw tooLarge(limits.wireBytesMax);
    let [wireBytes, decodedBytes] = [0, 0];
    let isRefused = false;
    const refuse = (error: unknown): void => {
      isRefused = true;
      compressed?.decoder.destroy();
      reject(error);
    };
    // Not `for await`: leaving that early destroys the socket, and with it the answer that says why.
    const attempt = (step: (chunk: Buffer) => void) => (chunk: Buffer) => {
      // What still comes is read and thrown away, so that the client gets to the answer.
      if (isRefused) return;
      try {
        step(chunk);
      } catch (error) {
        refuse(error);
      }
    };
    const write = (chunk: Buffer): void => {
      take(chunk.length);
      reader.write(chunk);
    };
    const compressed = decoderOf(request.headers['content-encoding']);
    compressed?.decoder
      .on(
        'data',
        attempt((chunk) => {
          decodedBytes += chunk.length;
          if (decodedBytes > limits.decodedBytesMax) throw tooLarge(limits.decodedBytesMax, ' when decompressed');
          write(chunk);
        }),
      )
      .on('end', resolve)
      .on('error', (error) =>
        refuse(new Refusal(400, `The body is not valid ${compressed.encoding}: ${messageOf(error)}`)),
      );
    request.on(
      'data',
      attempt((chunk) => {
        wireBytes += chunk.length;
        if (wireBytes > limits.wireBytesMax) throw tooLarge(limits.wireBytesMax);
        if (compressed === undefined) return write(chunk);
        take(chunk.length);
        compressed.decoder.write(chunk);
      }),
    );
    request.on('end', () => (compressed === undefined ? resolve() : compressed.decoder.end()));
    request.on('error', () => refuse(new Refusal(400, 'The connection ended before the body was complete')));
  });
}

function tooLarge(bytesMax: number, when = ''): Refusal {
  return new Refusal(413, `The body is larger than ${bytesMax} bytes${when}`);
}
