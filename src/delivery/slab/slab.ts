import { ignoreErrors } from '../../base/guard.ts';
import { type EncodedRun, parseMainJson } from '../../run/encoded-run.ts';
import type { FlushGroup } from '../ledger.ts';
import { decompress, type Encoding } from '../wire/compress.ts';
import { contentTypeOf, type Part, partsIn } from '../wire/part-buffer.ts';

/** The runs that were written into one body. */
export interface WrittenRuns {
  readonly boundary: string;
  /** When each run was written, by the clock that stops during pauses. */
  readonly activeAtMs: readonly number[];
  /** Monotonic time at which the first run was written, in milliseconds. */
  readonly firstAtMs: number;
  readonly group: FlushGroup;
  /** The ids of runs for which `isIdGiven` is true. A slab that is split off has those of all. */
  readonly givenIds: Set<string>;
}

/**
 * A request body with whole runs, of which nothing was sent before. Each run was written once, at its end. The body never
 * changes, so a retry sends the same one. While the endpoint is closed, it is kept compressed.
 */
export class Slab {
  readonly written: WrittenRuns;
  /** The buffer of the body. Undefined if it must not be used again. */
  buffer: Buffer | undefined;
  /** Size of the body without compression, in bytes. */
  readonly plainBytes: number;
  /** The body as it is kept. Without an encoding, it is not compressed. */
  kept: { readonly bytes: Buffer; readonly encoding: Encoding | undefined };
  /** Whether compression was tried. */
  isTried = false;
  detail: string | undefined;

  constructor(written: WrittenRuns, bytes: Buffer, buffer?: Buffer) {
    this.written = written;
    this.buffer = buffer;
    this.plainBytes = bytes.length;
    this.kept = { bytes, encoding: undefined };
  }

  get contentType(): string {
    return contentTypeOf(this.written.boundary);
  }

  get runs(): number {
    return this.written.activeAtMs.length;
  }

  keepCompressed(bytes: Buffer, encoding: Encoding): void {
    this.kept = { bytes, encoding };
    this.isTried = true;
    this.buffer = undefined;
  }

  plain(): Buffer {
    const { bytes, encoding } = this.kept;
    return encoding === undefined ? bytes : decompress(bytes, encoding);
  }

  /** Returns the runs as they were before they were written. A run is undefined if its text cannot be parsed. */
  read(): { readonly run: EncodedRun | undefined; readonly activeAtMs: number }[] {
    const bytes = this.plain();
    const { boundary, activeAtMs, givenIds } = this.written;
    return runsIn(bytes, boundary).map((parts, at) => ({
      run: ignoreErrors(() => runOf(bytes, parts, givenIds)),
      activeAtMs: activeAtMs[at] as number,
    }));
  }

  /** Returns a slab with the runs for whose index `isFirst` returns true, and one with the others. */
  split(isFirst: (at: number) => boolean): [Slab, Slab] {
    const bytes = this.plain();
    const runs = runsIn(bytes, this.written.boundary);
    const end = bytes.subarray(runs.at(-1)?.at(-1)?.nextAt);
    const withRuns = (isFirstPart: boolean): Slab => {
      const isIn = (_: unknown, at: number): boolean => isFirst(at) === isFirstPart;
      const parts = runs
        .filter(isIn)
        .flatMap((own) => own.map(({ startAt, nextAt }) => bytes.subarray(startAt, nextAt)));
      const written = { ...this.written, activeAtMs: this.written.activeAtMs.filter(isIn) };
      const slab = new Slab(written, Buffer.concat([...parts, end]));
      slab.detail = this.detail;
      return slab;
    };
    return [withRuns(true), withRuns(false)];
  }
}

/** Returns the parts of each run. The main part, whose name has no suffix, comes first. */
function runsIn(bytes: Buffer, boundary: string): Part[][] {
  const runs: Part[][] = [];
  for (const part of partsIn(bytes, boundary)) {
    if (part.payload === '') runs.push([]);
    runs.at(-1)?.push(part);
  }
  return runs;
}

function runOf(bytes: Buffer, parts: readonly Part[], givenIds: ReadonlySet<string>): EncodedRun | undefined {
  const texts = parts.map(({ payload, textAt, endAt }) => [payload, bytes.toString('utf8', textAt, endAt)] as const);
  const { '': main = '', ...payloads } = Object.fromEntries(texts);
  const run = parseMainJson(main);
  return run && Object.assign(run, payloads, { isIdGiven: givenIds.has(run.id) });
}

/** Maximum number of buffers that are kept, and the size above which none is kept, in bytes. */
const POOLED_MAX = 4;
const POOLED_BYTES_MAX = 8 * 1024 * 1024;

/** Size of a full body of usual runs. Memory that is not written to costs nothing, and growing a buffer copies it. */
const START_BYTES = 2 * 1024 * 1024;

/** Buffers for request bodies. The memory of a new buffer is slow at first, so those of delivered bodies are used again. */
export class BufferPool {
  readonly #free: Buffer[] = [];
  readonly #isRead: () => boolean;
  /** Size of the largest buffer so far. */
  #usualBytes = START_BYTES;

  /** `isRead` returns whether a connection may still read a buffer of an answered request. */
  constructor(isRead: () => boolean) {
    this.#isRead = isRead;
  }

  take(): Buffer {
    const free = this.#free.length === 0 || this.#isRead() ? undefined : this.#free.pop();
    return free ?? Buffer.allocUnsafeSlow(this.#usualBytes);
  }

  give(buffer: Buffer): void {
    if (buffer.length > POOLED_BYTES_MAX) return;
    this.#usualBytes = Math.max(this.#usualBytes, buffer.length);
    if (this.#free.length < POOLED_MAX) this.#free.push(buffer);
  }
}
