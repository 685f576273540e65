import { setTimer } from '../../base/timers.ts';
import type { OwnerFolder } from './directory.ts';
import { appendWhole, createFile, ignoreErrors, type SpoolFs } from './fs.ts';
import type { RunName, SpooledRecord } from './segment.ts';

/** A file of records on disk. */
export interface Segment {
  readonly path: string;
  /** Whether another owner wrote it. */
  readonly isForeign: boolean;
}

/** The content of a segment that waits for delivery. */
export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Runs whose records are damaged. A run without a name stands for one record of which nothing can be read. */
  readonly damagedRuns: readonly RunName[];
  /**
   * Milliseconds since the segment was written: by the monotonic clock if this process wrote it, otherwise by the time of the
   * file. A segment of another process is sent once, whatever its age.
   */
  readonly ageMs: number;
  /** Whether this process wrote the segment longer ago than the age limit allows. */
  readonly isExpired: boolean;
}

/** A segment of an owner, as the spool tracks it. */
export class StoredSegment implements Segment {
  readonly path: string;
  readonly isForeign: boolean;
  /** Monotonic time if this process wrote it, otherwise the time of the file. */
  readonly writtenAtMs: number;
  /** Descriptor while this process writes the segment. */
  readonly fd: number;
  bytes = 0;
  /** Number of appended records, and of those that are still needed. */
  appended = 0;
  needed = 0;
  isDamaged = false;

  constructor(path: string, isForeign: boolean, writtenAtMs: number, fd = -1) {
    this.path = path;
    this.isForeign = isForeign;
    this.writtenAtMs = writtenAtMs;
    this.fd = fd;
  }
}

export interface SegmentFilesOptions {
  readonly folder: OwnerFolder;
  readonly monotonicMs: () => number;
  /** Interval at which written data is synced to the device; never if undefined. */
  readonly syncEveryMs: number | undefined;
  readonly syncFailed: (problem: Error) => void;
}

/** The segments of an owner: creates, writes, counts and deletes them. */
export class SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #fs: SpoolFs;
  readonly #all = new Set<StoredSegment>();
  #sequence = 0;
  #bytes = 0;
  readonly #unsynced = new Set<StoredSegment>();
  #syncTimer: NodeJS.Timeout | undefined;
  /** Segments that wait to be read, the next one first: those of other owners, and those that this process has spilled. */
  readonly foreign: Set<StoredSegment> = new Set();
  readonly spilled: Set<StoredSegment> = new Set();

  constructor(options: SegmentFilesOptions) {
    this.#options = options;
    this.#fs = options.folder.fs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The segment to read next: those of other owners come first. */
  get next(): StoredSegment | undefined {
    return (this.foreign.size > 0 ? this.foreign : this.spilled).values().next().value;
  }

  has(segment: Segment): segment is StoredSegment {
    return this.#all.has(segment as StoredSegment);
  }

  /** Creates a segment. Throws an `UnsafeFolder` or a file-system error. */
  create(): StoredSegment {
    const { folder, monotonicMs } = this.#options;
    // Somebody may have deleted the folder since the last segment.
    folder.make();
    const path = folder.segmentPath(++this.#sequence);
    const segment = new StoredSegment(path, false, monotonicMs(), createFile(this.#fs, path));
    this.#all.add(segment);
    return segment;
  }

  /** Adds a segment of another owner, which waits to be read. */
  addForeign(path: string, bytes: number, writtenAtMs: number): void {
    const segment = new StoredSegment(path, true, writtenAtMs);
    this.#all.add(segment);
    this.foreign.add(segment);
    this.#grow(segment, bytes);
  }

  /** Appends all of the bytes, or throws a file-system error and appends nothing. */
  append(segment: StoredSegment, bytes: Uint8Array): void {
    appendWhole(this.#fs, segment.fd, segment.bytes, bytes);
    this.#grow(segment, bytes.byteLength);
    const { syncEveryMs } = this.#options;
    if (syncEveryMs === undefined) return;
    this.#unsynced.add(segment);
    this.#syncTimer ??= setTimer(() => {
      this.#syncTimer = undefined;
      for (const written of this.#unsynced) this.#sync(written, () => {});
    }, syncEveryMs).unref();
  }

  /** Closes the file. The system has had each record since it was appended, so an error loses nothing. */
  close(segment: StoredSegment): void {
    const close = (): void => {
      ignoreErrors(() => this.#fs.closeSync(segment.fd));
    };
    if (this.#unsynced.has(segment)) this.#sync(segment, close);
    else close();
  }

  /** Deletes the file. If that fails, the file stays, and the next process delivers its records again. */
  delete(segment: StoredSegment): void {
    ignoreErrors(() => this.#fs.unlinkSync(segment.path));
    this.forget(segment);
  }

  /** Called if the file does not exist, or if it no longer belongs to this owner. */
  forget(segment: StoredSegment): void {
    if (this.#all.delete(segment)) this.#bytes -= segment.bytes;
    this.stopWaiting(segment);
  }

  stopWaiting(segment: StoredSegment): void {
    this.foreign.delete(segment);
    this.spilled.delete(segment);
  }

  #grow(segment: StoredSegment, bytes: number): void {
    segment.bytes += bytes;
    this.#bytes += bytes;
  }

  #sync(segment: StoredSegment, done: () => void): void {
    this.#unsynced.delete(segment);
    this.#fs.fdatasync(segment.fd, (problem) => {
      if (problem !== null) this.#options.syncFailed(problem);
      done();
    });
  }
}
