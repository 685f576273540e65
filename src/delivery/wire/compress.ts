import type * as zlib from 'node:zlib';
import { nodeModule } from '../../platform/node.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';

/** The values of `Content-Encoding` that the exporter can send. */
export type Encoding = 'zstd' | 'gzip';

/** Node's zlib, with the names that exist since Node 22.15. */
type Zlib = typeof zlib & {
  readonly createZstdCompress?: (options: object) => zlib.Gzip;
  readonly zstdDecompressSync?: (bytes: Uint8Array) => Buffer;
  readonly constants: { readonly ZSTD_c_compressionLevel: number; readonly ZSTD_c_windowLog: number };
};

/** Minimum size of the JSON in a body that is compressed, in bytes. Compressing smaller bodies costs more than it saves. */
export const COMPRESSED_BYTES_MIN: number = 256 * 1024;

/** Size of the buffers for compressed data, in bytes. Each full buffer is passed to the event loop. */
const CHUNK_BYTES = 64 * 1024;

/** The fastest gzip level. Compresses JSON to about a fifth of its size. */
const GZIP_LEVEL = 1;

/** The default level. Costs a fifth more CPU time than level 1, and makes English text a seventh to a quarter smaller. */
const ZSTD_LEVEL = 3;

/** Maximum time to compress a body, in milliseconds. The threads of libuv's pool may wait for a disk or a name server. */
const COMPRESS_MS_MAX = 10_000;

/**
 * The largest window that RFC 9659 allows over HTTP: 8 MiB. The model calls of a conversation repeat its messages, and a
 * repetition is only found within the window. The default for level 3 is 2 MiB.
 */
const ZSTD_WINDOW_LOG = 23;

/** Returns the first encoding that this version of Node can write. */
export function firstSupported(encodings: readonly Encoding[]): Encoding | undefined {
  return encodings.find((encoding) => encoding === 'gzip' || zlibOf().createZstdCompress !== undefined);
}

/** Compresses chunks to one buffer, in a thread of libuv's pool. Rejects if the signal aborts, or after 10 s. */
export async function compress(
  chunks: readonly Uint8Array[],
  encoding: Encoding,
  signal?: AbortSignal,
): Promise<Buffer> {
  const stream = compressor(encoding);
  const compressed: Buffer[] = [];
  const abort = (): void => void stream.destroy(new Error('the compression was aborted'));
  signal?.addEventListener('abort', abort);
  const timer = setTimer(abort, COMPRESS_MS_MAX).unref();
  try {
    await new Promise<void>((resolve, reject) => {
      stream.on('data', (chunk: Buffer) => compressed.push(chunk));
      stream.once('end', resolve).once('error', reject);
      for (const chunk of chunks.slice(0, -1)) stream.write(chunk);
      stream.end(chunks.at(-1));
    });
  } finally {
    clearTimer(timer);
    signal?.removeEventListener('abort', abort);
  }
  return Buffer.concat(compressed);
}

export function decompress(bytes: Uint8Array, encoding: Encoding): Buffer {
  const { gunzipSync, zstdDecompressSync } = zlibOf();
  return encoding === 'gzip' || zstdDecompressSync === undefined ? gunzipSync(bytes) : zstdDecompressSync(bytes);
}

function compressor(encoding: Encoding): zlib.Gzip {
  const { createGzip, createZstdCompress, constants } = zlibOf();
  if (encoding === 'gzip' || createZstdCompress === undefined) {
    return createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES });
  }
  const { ZSTD_c_compressionLevel: level, ZSTD_c_windowLog: windowLog } = constants;
  const params = { [level]: ZSTD_LEVEL, [windowLog]: ZSTD_WINDOW_LOG };
  return createZstdCompress({ params, chunkSize: CHUNK_BYTES });
}

function zlibOf(): Zlib {
  return nodeModule('node:zlib') as Zlib;
}
