import { setTimer } from '../../base/timers.ts';
import type { ClaimedSegment, OwnerFolder } from './directory.ts';
import { appendWhole, createFile, ignoreErrors } from './fs.ts';
import type { RunName, SpooledRecord } from './segment.ts';

/** A file of records on disk. */
export interface Segment {
  readonly path: string;
  /** Whether another owner wrote the segment. */
  readonly isForeign: boolean;
}

/** The content of a segment that waits for delivery. */
export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Runs whose records are damaged. If no part of a record can be read, its run has an empty id. */
  readonly damagedRuns: readonly RunName[];
  /**
   * Milliseconds since the segment was written. If another process wrote the segment, the age depends on the
   * modification time of the file, and the records are sent once at any age.
   */
  readonly ageMs: number;
  /** Whether this process wrote the segment longer ago than the age limit allows. */
  readonly isExpired: boolean;
}

/** A segment of this owner, with its state. */
export interface StoredSegment extends Segment {
  /** Monotonic time if this process wrote the segment, otherwise the modification time of the file. */
  readonly writtenAtMs: number;
  /** Descriptor while this process writes the segment. */
  readonly fd: number;
  bytes: number;
  /** Number of appended records, and number of records that are still needed. */
  appended: number;
  needed: number;
  isDamaged: boolean;
}

export interface SegmentFilesOptions {
  readonly folder: OwnerFolder;
  readonly monotonicMs: () => number;
  /** Interval at which written data is synced to the device. If undefined, written data is not synced. */
  readonly syncEveryMs: number | undefined;
  readonly syncFailed: (problem: Error) => void;
}

/** Creates, writes, counts and deletes the segments of an owner. */
export class SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #all = new Set<StoredSegment>();
  #sequence = 0;
  readonly #unsynced = new Set<StoredSegment>();
  #syncTimer: NodeJS.Timeout | undefined;
  bytes = 0;
  /** Segments of other owners are read first, then segments that this process has spilled. */
  readonly foreign: Set<StoredSegment> = new Set();
  readonly spilled: Set<StoredSegment> = new Set();

  constructor(options: SegmentFilesOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The segment to read next. */
  get next(): StoredSegment | undefined {
    return (this.foreign.size > 0 ? this.foreign : this.spilled).values().next().value;
  }

  has(segment: Segment): segment is StoredSegment {
    return this.#all.has(segment as StoredSegment);
  }

  /** Creates a segment. Throws an `UnsafeFolder` or a file-system error. */
  create(): StoredSegment {
    const { folder, monotonicMs } = this.#options;
    // The folder may have been deleted since the last segment was created.
    folder.make();
    const path = folder.segmentPath(++this.#sequence);
    return this.#add({ path, isForeign: false, writtenAtMs: monotonicMs(), fd: createFile(folder.fs, path) }, 0);
  }

  /** Adds a segment that was taken over from another owner. */
  addForeign({ path, bytes, modifiedAtMs }: ClaimedSegment): void {
    this.foreign.add(this.#add({ path, isForeign: true, writtenAtMs: modifiedAtMs, fd: -1 }, bytes));
  }

  #add(file: Pick<StoredSegment, 'path' | 'isForeign' | 'writtenAtMs' | 'fd'>, bytes: number): StoredSegment {
    const segment = { ...file, bytes, appended: 0, needed: 0, isDamaged: false };
    this.#all.add(segment);
    this.bytes += bytes;
    return segment;
  }

  /** Appends all of the bytes, or throws a file-system error and appends nothing. */
  append(segment: StoredSegment, bytes: Uint8Array): void {
    const { folder, syncEveryMs } = this.#options;
    appendWhole(folder.fs, segment.fd, segment.bytes, bytes);
    segment.bytes += bytes.byteLength;
    this.bytes += bytes.byteLength;
    if (syncEveryMs === undefined) return;
    this.#unsynced.add(segment);
    this.#syncTimer ??= setTimer(() => {
      this.#syncTimer = undefined;
      for (const written of this.#unsynced) this.#sync(written, () => {});
    }, syncEveryMs).unref();
  }

  /** Closes the file. Ignores errors, because the operating system already has all records. */
  close(segment: StoredSegment): void {
    const close = (): void => void ignoreErrors(() => this.#options.folder.fs.closeSync(segment.fd));
    if (this.#unsynced.has(segment)) this.#sync(segment, close);
    else close();
  }

  /** Deletes the file. If that fails, the file stays, and the next process delivers its records again. */
  delete(segment: StoredSegment): void {
    ignoreErrors(() => this.#options.folder.fs.unlinkSync(segment.path));
    this.forget(segment);
  }

  /** Called if the file does not exist or must not be changed. */
  forget(segment: StoredSegment): void {
    if (this.#all.delete(segment)) this.bytes -= segment.bytes;
    this.stopWaiting(segment);
  }

  stopWaiting(segment: StoredSegment): void {
    this.foreign.delete(segment);
    this.spilled.delete(segment);
  }

  #sync(segment: StoredSegment, done: () => void): void {
    this.#unsynced.delete(segment);
    this.#options.folder.fs.fdatasync(segment.fd, (problem) => {
      if (problem !== null) this.#options.syncFailed(problem);
      done();
    });
  }
}
