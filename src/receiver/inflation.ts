import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';

/**
 * How many times larger than on the wire a body may be decompressed, once it is larger than so many bytes. Text comes to
 * 2 to 5 times, zeros to 1000. A batch of runs that are all alike may come to more than 100: it is refused with 413 and,
 * split by its sender, arrives below the free bytes.
 */
const RATIO_MAX = 100;
const RATIO_FREE_BYTES = 1024 * 1024;

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

/** Where decompressed bytes go. */
export interface Inflated {
  write(bytes: Buffer): void;
  end(): void;
  refuse(error: unknown): void;
}

/**
 * A body as it is decompressed, within bounds. Where it has come to more than its part of the wire allows, what is left
 * waits for more of the wire: only at its end is it known whether the whole is out of proportion.
 */
export class Inflation {
  readonly #decoder: Transform;
  readonly #bytesMax: number;
  readonly #to: Inflated;
  #wireBytes = 0;
  #isWireWhole = false;
  #bytes = 0;

  constructor({ encoding, decoder }: Compressed, bytesMax: number, to: Inflated) {
    this.#decoder = decoder;
    this.#bytesMax = bytesMax;
    this.#to = to;
    decoder.on('data', (chunk: Buffer) => this.#attempt(() => this.#take(chunk)));
    decoder.on('end', () => to.end());
    decoder.on('error', (error) => {
      to.refuse(new Refusal(400, `The body is no whole ${encoding}: ${messageOf(error)}`));
    });
  }

  write(wire: Buffer): void {
    this.#wireBytes += wire.length;
    this.#decoder.write(wire);
    this.#goOn();
  }

  end(): void {
    this.#isWireWhole = true;
    this.#decoder.end();
    this.#attempt(() => this.#goOn());
  }

  destroy(): void {
    this.#decoder.destroy();
  }

  #take(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) {
      throw new Refusal(413, `The body is larger than ${this.#bytesMax} bytes when decompressed`);
    }
    this.#goOn();
    this.#to.write(chunk);
  }

  #goOn(): void {
    if (this.#bytes <= Math.max(RATIO_FREE_BYTES, this.#wireBytes * RATIO_MAX)) this.#decoder.resume();
    else if (!this.#isWireWhole) this.#decoder.pause();
    else throw new Refusal(413, `The body is more than ${RATIO_MAX} times larger when decompressed`);
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#to.refuse(error);
    }
  }
}
