import { removeFile, type SpoolFs } from './spool-fs.ts';

/** A file of records. What is in it is for the spool alone. */
export interface Segment {
  readonly path: string;
  /** Whether another owner has written it. */
  readonly isForeign: boolean;
}

/** A segment as the spool knows it. */
export class StoredSegment implements Segment {
  readonly path: string;
  readonly isForeign: boolean;
  /** Sequence number of the segment, assigned by its writer. */
  readonly sequence: number;
  bytes = 0;
  /** Number of appended records that must still be kept. */
  records = 0;
  isDamaged = false;
  writtenAtMs = 0;

  constructor(path: string, sequence: number, isForeign: boolean) {
    this.path = path;
    this.sequence = sequence;
    this.isForeign = isForeign;
  }
}

/** The segments of an owner, and the bytes of them. */
export class SpoolStock {
  readonly #fs: SpoolFs;
  readonly #segments = new Set<StoredSegment>();
  /** Those that could not be deleted yet. */
  readonly #doomed = new Set<StoredSegment>();
  #bytes = 0;

  constructor(fs: SpoolFs) {
    this.#fs = fs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#segments.size === 0;
  }

  has(segment: Segment): segment is StoredSegment {
    return segment instanceof StoredSegment && this.#segments.has(segment);
  }

  add(segment: StoredSegment): void {
    this.#segments.add(segment);
    this.#bytes += segment.bytes;
  }

  grow(segment: StoredSegment, bytes: number): void {
    segment.bytes += bytes;
    this.#bytes += bytes;
  }

  /** Deletes its file; what cannot be deleted stays counted, and is tried again. */
  delete(segment: StoredSegment): void {
    if (!this.#segments.has(segment)) return;
    try {
      removeFile(this.#fs, segment.path);
      this.forget(segment);
    } catch {
      this.#doomed.add(segment);
    }
  }

  deleteDoomed(): void {
    for (const segment of this.#doomed) this.delete(segment);
  }

  /** Its file is no longer there, or no longer ours. */
  forget(segment: StoredSegment): void {
    if (!this.#segments.delete(segment)) return;
    this.#doomed.delete(segment);
    this.#bytes -= segment.bytes;
    segment.records = 0;
  }
}
