import { join } from 'node:path';
import { type SegmentName, segmentName } from './spool-folder.ts';
import { removeFile, type SpoolFs } from './spool-fs.ts';

/** A file of records. What is in it is for the spool alone. */
export interface Segment {
  readonly path: string;
  /** Whether another owner has written it. */
  readonly isForeign: boolean;
}

/** A segment as the spool knows it. */
export class StoredSegment implements Segment {
  readonly isForeign: boolean;
  readonly #folder: string;
  name: SegmentName;
  bytes = 0;
  /** Appended ones that still have to be kept. */
  records = 0;
  isDamaged = false;
  writtenAtMs = 0;
  handedOutAtMs = 0;

  constructor(folder: string, name: SegmentName, isForeign: boolean) {
    this.#folder = folder;
    this.name = name;
    this.isForeign = isForeign;
  }

  get path(): string {
    return join(this.#folder, segmentName(this.name));
  }

  /** Says in the name how many processes it was handed out in that died of it; throws what the file system throws. */
  rename(fs: SpoolFs, attempts: number): void {
    const name = { ...this.name, attempts };
    fs.renameSync(this.path, join(this.#folder, segmentName(name)));
    this.name = name;
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
