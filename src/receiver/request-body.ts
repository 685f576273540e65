import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';

/** The limits of bodies, in bytes. */
export interface BodyLimits {
  /** One body as it comes over the wire, compressed or not. */
  readonly wireBytesMax: number;
  /** One body after decompression, which stops there, so that a small one that unfolds without end costs no more. */
  readonly decodedBytesMax: number;
  /** All bodies that are being read, on the wire and decompressed. Beyond it 503, to be tried again. */
  readonly inFlightBytesMax: number;
}

const MIB = 1024 * 1024;
const LIMITS: BodyLimits = { wireBytesMax: 64 * MIB, decodedBytesMax: 128 * MIB, inFlightBytesMax: 256 * MIB };

/**
 * How many times larger than on the wire a body may be decompressed, once it is larger than so many bytes. Text comes to
 * 2 to 5 times, zeros to 1000. A batch of runs that are all alike may come to more than 100: it is refused with 413 and,
 * split by its sender, arrives below the free bytes.
 */
const RATIO_MAX = 100;
const RATIO_FREE_BYTES = MIB;

const RETRY_AFTER_S = 1;

/** The bodies of a server's requests, which are in memory together. */
export class RequestBodies {
  readonly #limits: BodyLimits;
  #inFlightBytes = 0;

  constructor(limits: BodyLimits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * Gives the whole body of a request, decompressed, to `use`, until whose end it counts as in flight. 413 beyond a limit
   * of one body, 503 beyond that of all, 415 for an encoding other than gzip, 400 for broken gzip and for a body that
   * ends early.
   */
  async read<Result>(request: IncomingMessage, use: (body: Buffer) => Result | Promise<Result>): Promise<Result> {
    let ownBytes = 0;
    const take = (sizeBytes: number): void => {
      if (this.#inFlightBytes + sizeBytes > this.#limits.inFlightBytesMax) {
        const detail = 'The receiver is busy with the bodies of other requests; send this one again';
        throw new Refusal(503, detail, { 'retry-after': `${RETRY_AFTER_S}` });
      }
      ownBytes += sizeBytes;
      this.#inFlightBytes += sizeBytes;
    };
    try {
      return await use(await readBody(request, this.#limits, take));
    } finally {
      this.#inFlightBytes -= ownBytes;
    }
  }
}

/** `take` is told of bytes before they are kept, and throws when there is no room for them. */
type Take = (sizeBytes: number) => void;

async function readBody(request: IncomingMessage, limits: BodyLimits, take: Take): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw new Refusal(415, `Expected content-encoding to be gzip or absent, got ${JSON.stringify(encoding)}`);
  }
  const wire = await readWire(request, limits.wireBytesMax, take);
  return encoding === 'identity' ? wire : unzip(wire, limits.decodedBytesMax, take);
}

function readWire(request: IncomingMessage, bytesMax: number, take: Take): Promise<Buffer> {
  const tooLarge = new Refusal(413, `The body is larger than ${bytesMax} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.reject(tooLarge);
  // Not `for await`: leaving that early destroys the socket, and with it the answer that says why.
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let sizeBytes = 0;
    let isRefused = false;
    request.on('data', (chunk: Buffer) => {
      // What still comes is read and thrown away, so that the client gets to the answer.
      if (isRefused) return;
      try {
        sizeBytes += chunk.length;
        if (sizeBytes > bytesMax) throw tooLarge;
        take(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        isRefused = true;
        chunks = [];
        reject(error);
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', () => reject(new Refusal(400, 'The connection ended before the body was complete')));
  });
}

async function unzip(wire: Buffer, bytesMax: number, take: Take): Promise<Buffer> {
  const ratioBytesMax = Math.max(RATIO_FREE_BYTES, wire.length * RATIO_MAX);
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  gunzip.end(wire);
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes > bytesMax) throw new Refusal(413, `The body is larger than ${bytesMax} bytes when decompressed`);
      if (sizeBytes > ratioBytesMax) {
        throw new Refusal(413, `The body is more than ${RATIO_MAX} times larger when decompressed`);
      }
      take(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(400, `The body is no whole gzip: ${messageOf(error)}`);
  }
  return Buffer.concat(chunks, sizeBytes);
}
