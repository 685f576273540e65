import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';

/** As they come over the wire, compressed or not. */
const WIRE_BYTES_MAX = 64 * 1024 * 1024;
/** After decompression; zlib stops there, so a small body that unfolds without end costs no more. */
const DECODED_BYTES_MAX = 128 * 1024 * 1024;

/** The limits of a body, in bytes. */
export interface BodyLimits {
  readonly wireBytesMax: number;
  readonly decodedBytesMax: number;
}

const unzip = promisify(gunzip);

/**
 * The whole body of a request, decompressed. 413 beyond a limit, 415 for an encoding other than gzip, 400 for broken
 * gzip and for a body that ends early.
 */
export async function readBody(
  request: IncomingMessage,
  limits: BodyLimits = { wireBytesMax: WIRE_BYTES_MAX, decodedBytesMax: DECODED_BYTES_MAX },
): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw new Refusal(415, `Expected content-encoding to be gzip or absent, got ${JSON.stringify(encoding)}`);
  }
  const wire = await readWire(request, limits.wireBytesMax);
  if (encoding === 'identity') return wire;
  try {
    return await unzip(wire, { maxOutputLength: limits.decodedBytesMax });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new Refusal(413, `The body is larger than ${limits.decodedBytesMax} bytes when decompressed`);
    }
    throw new Refusal(400, `The body is no whole gzip: ${messageOf(error)}`);
  }
}

function readWire(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const tooLarge = new Refusal(413, `The body is larger than ${bytesMax} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.reject(tooLarge);
  // Not `for await`: leaving that early destroys the socket, and with it the answer that says why.
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let sizeBytes = 0;
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes <= bytesMax) {
        chunks.push(chunk);
      } else {
        // What still comes is read and thrown away, so that the client gets to the answer.
        chunks = [];
        reject(tooLarge);
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', () => reject(new Refusal(400, 'The connection ended before the body was complete')));
  });
}
