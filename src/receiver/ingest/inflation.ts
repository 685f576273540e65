import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { HttpError } from '../http-error.ts';

/** Available from Node 22.15. A truncated zstd frame is not an error; the parser of the body detects it. */
const { createZstdDecompress, constants } = zlib as typeof zlib & {
  createZstdDecompress?: (options: { chunkSize: number; params: Record<number, number> }) => Transform;
  constants: { ZSTD_d_windowLogMax: number };
};

/** 8 MiB, the maximum window of zstd over HTTP (RFC 9659). A small frame could demand a much larger one. */
const ZSTD_WINDOW_LOG_MAX = 23;

const OPTIONS = { chunkSize: 64 * 1024 };

export interface Compressed {
  readonly encoding: string;
  readonly decoder: Transform;
}

/** Returns a decoder for a `Content-Encoding`, or undefined for `identity`. Throws 415 for an unknown encoding. */
export function decoderOf(header = 'identity'): Compressed | undefined {
  const encoding = header.trim().toLowerCase();
  if (encoding === 'identity') return undefined;
  if (encoding === 'gzip') return { encoding, decoder: zlib.createGunzip(OPTIONS) };
  if (encoding === 'zstd' && createZstdDecompress !== undefined) {
    const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };
    return { encoding, decoder: createZstdDecompress({ ...OPTIONS, params }) };
  }
  const accepted = createZstdDecompress === undefined ? 'gzip' : 'gzip, zstd';
  const detail = `Expected content-encoding to be ${accepted} or absent, got ${JSON.stringify(encoding)}`;
  throw new HttpError(415, encoding === 'zstd' ? `${detail}; zstd requires Node 22.15` : detail, {
    'accept-encoding': accepted,
  });
}
