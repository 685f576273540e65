import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { Refusal } from '../refusal.ts';

const OPTIONS = { chunkSize: 64 * 1024 };

/**
 * What Node has from 22.15 on, and our types do not know yet. It says nothing of a frame that is cut short: what reads the
 * bytes has to find out.
 */
const { createZstdDecompress, constants } = zlib as typeof zlib & {
  createZstdDecompress?: (options: { chunkSize: number; params: Record<number, number> }) => Transform;
  constants: { ZSTD_d_windowLogMax: number };
};

/**
 * The logarithm of the window that is decompressed with: 8 MiB, as much as HTTP has (RFC 9659). A frame of a few bytes
 * that asks for more would be given it.
 */
const ZSTD_WINDOW_LOG_MAX = 23;

type Encoding = 'gzip' | 'zstd';

const DECODERS: Readonly<Record<Encoding, (() => Transform) | undefined>> = {
  gzip: () => zlib.createGunzip(OPTIONS),
  zstd:
    createZstdDecompress &&
    (() => createZstdDecompress({ ...OPTIONS, params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } })),
};

/** Encodings that are taken, best known first. */
const TAKEN: readonly string[] = Object.entries(DECODERS).flatMap(([name, decoder]) => (decoder ? [name] : []));

/** A body that is compressed, as its `Content-Encoding` says. */
export interface Compressed {
  readonly encoding: string;
  readonly decoder: Transform;
}

/** What decompresses a body of this `Content-Encoding`; undefined when there is nothing to do, 415 for any other. */
export function decoderOf(header: string | undefined): Compressed | undefined {
  const encoding = (header ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity') return undefined;
  const create = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding as Encoding] : undefined;
  if (create !== undefined) return { encoding, decoder: create() };
  const detail = `Expected content-encoding to be ${TAKEN.join(', ')} or absent, got ${JSON.stringify(encoding)}`;
  throw new Refusal(415, encoding === 'zstd' ? `${detail}; zstd needs Node 22.15` : detail, {
    'accept-encoding': TAKEN.join(', '),
  });
}
