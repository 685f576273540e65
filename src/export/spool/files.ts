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

export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Runs whose records are damaged. If a record's head is damaged, its run id is empty. */
  readonly damagedRuns: readonly RunName[];
  /** Milliseconds since the segment was created or, if another owner wrote it, since the file was last modified. */
  readonly ageMs: number;
  /** Whether a segment that this process wrote is older than the age limit. Other owners' segments do not expire. */
  readonly isExpired: boolean;
}

/** A segment in this process's folder. */
export interface StoredSegment extends Segment {
  /** Monotonic time of creation. For another owner's segment, the file's modification time. */
  readonly writtenAtMs: number;
  /** File descriptor. -1 if another owner wrote the segment. */
  readonly fd: number;
  bytes: number;
  appended: number;
  /** Number of appended records that have not been released with `Spool.release`. */
  needed: number;
  isDamaged: boolean;
}

export interface SegmentFilesOptions {
  readonly folder: OwnerFolder;
  readonly monotonicMs: () => number;
  /** How often written data is synced to the device, in milliseconds. Undefined if it is not synced. */
  readonly syncEveryMs: number | undefined;
  readonly syncFailed: (problem: Error) => void;
}

/** Creates, writes, counts and deletes an owner's segments. */
export class SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #all = new Set<StoredSegment>();
  #sequence = 0;
  readonly #unsynced = new Set<StoredSegment>();
  #syncTimer: NodeJS.Timeout | undefined;
  bytes = 0;
  /** Segments waiting to be read, in the order in which they were spilled or taken over. */
  readonly unread: Set<StoredSegment> = new Set();

  constructor(options: SegmentFilesOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  get next(): StoredSegment | undefined {
    return this.unread.values().next().value;
  }

  has(segment: Segment): segment is StoredSegment {
    return this.#all.has(segment as StoredSegment);
  }

  create(): StoredSegment {
    const { folder, monotonicMs } = this.#options;
    // The folder may have been deleted in the meantime.
    folder.make();
    const path = folder.segmentPath(++this.#sequence);
    return this.#add({ path, isForeign: false, writtenAtMs: monotonicMs(), fd: createFile(folder.fs, path) }, 0);
  }

  addForeign({ path, bytes, modifiedAtMs }: ClaimedSegment): void {
    this.unread.add(this.#add({ path, isForeign: true, writtenAtMs: modifiedAtMs, fd: -1 }, bytes));
  }

  #add(file: Pick<StoredSegment, 'path' | 'isForeign' | 'writtenAtMs' | 'fd'>, bytes: number): StoredSegment {
    const segment = { ...file, bytes, appended: 0, needed: 0, isDamaged: false };
    this.#all.add(segment);
    this.bytes += bytes;
    return segment;
  }

  /** Appends all bytes, or throws a file-system error and appends nothing. */
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

  /** Ignores errors, because the operating system has already received all records. */
  close(segment: StoredSegment): void {
    const close = (): void => void ignoreErrors(() => this.#options.folder.fs.closeSync(segment.fd));
    if (this.#unsynced.has(segment)) this.#sync(segment, close);
    else close();
  }

  /** Deletes a segment. If the file cannot be deleted, the next process delivers its records again. */
  delete(segment: StoredSegment): void {
    ignoreErrors(() => this.#options.folder.fs.unlinkSync(segment.path));
    this.forget(segment);
  }

  forget(segment: StoredSegment): void {
    if (this.#all.delete(segment)) this.bytes -= segment.bytes;
    this.unread.delete(segment);
  }

  #sync(segment: StoredSegment, done: () => void): void {
    this.#unsynced.delete(segment);
    this.#options.folder.fs.fdatasync(segment.fd, (problem) => {
      if (problem !== null) this.#options.syncFailed(problem);
      done();
    });
  }
}
