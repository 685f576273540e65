import { ignoreErrors } from '../../base/guard.ts';
import type { ClaimedSegment, OwnerFolder } from './directory.ts';
import { appendWhole, createFile, isDeleted, reopenFile } from './fs.ts';
import type { RunName, SpooledRecord } from './segment.ts';

/** A file with undelivered runs on disk. */
export interface Segment {
  readonly path: string;
  readonly isForeign: boolean;
}

export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Runs that cannot be read. If the run id cannot be read, the id is empty. */
  readonly damagedRuns: readonly RunName[];
  /** Age of the file in milliseconds. For files from other processes, the time since the last modification. */
  readonly ageMs: number;
  /** Whether the file is older than the age limit. Files from other processes do not expire. */
  readonly isExpired: boolean;
}

/** A segment file in this process's folder. */
export interface StoredSegment extends Segment {
  /** Monotonic time at which the file was created. For files from other processes, the modification time. */
  readonly writtenAtMs: number;
  /** File descriptor, or `CLOSED`. */
  fd: number;
  bytes: number;
  appended: number;
  /** Number of records in the file that are still needed. `Spool.release` decreases this number. */
  needed: number;
  isDamaged: boolean;
}

const CLOSED = -1;

export interface SegmentFilesOptions {
  readonly folder: OwnerFolder;
  readonly monotonicMs: () => number;
}

/** Creates, writes, counts and deletes the segment files of this process. */
export class SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #all = new Set<StoredSegment>();
  #sequence = 0;
  bytes = 0;
  /** Segment files waiting to be read, oldest first. */
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
    // Creates the folder again if another program has deleted it.
    folder.make();
    const path = folder.segmentPath(++this.#sequence);
    return this.#add({ path, isForeign: false, writtenAtMs: monotonicMs(), fd: createFile(folder.fs, path) }, 0);
  }

  addForeign({ path, bytes, modifiedAtMs }: ClaimedSegment): void {
    this.unread.add(this.#add({ path, isForeign: true, writtenAtMs: modifiedAtMs, fd: CLOSED }, bytes));
  }

  #add(file: Pick<StoredSegment, 'path' | 'isForeign' | 'writtenAtMs' | 'fd'>, bytes: number): StoredSegment {
    const segment = { ...file, bytes, appended: 0, needed: 0, isDamaged: false };
    this.#all.add(segment);
    this.bytes += bytes;
    return segment;
  }

  /** Appends all bytes, or throws a file-system error and appends nothing. A closed file is opened for this write. */
  append(segment: StoredSegment, bytes: Uint8Array): void {
    const { fs } = this.#options.folder;
    const isClosed = segment.fd === CLOSED;
    if (isClosed) segment.fd = reopenFile(fs, segment.path);
    try {
      appendWhole(fs, segment.fd, segment.bytes, bytes);
      segment.bytes += bytes.byteLength;
      this.bytes += bytes.byteLength;
    } finally {
      if (isClosed) this.close(segment);
    }
  }

  /** Closes the file. Errors are ignored, because the operating system has already received all data. */
  close(segment: StoredSegment): void {
    ignoreErrors(() => this.#options.folder.fs.closeSync(segment.fd));
    segment.fd = CLOSED;
  }

  /** Deletes a segment file. If the file cannot be deleted, the next process delivers its runs again. */
  delete(segment: StoredSegment): void {
    ignoreErrors(() => this.#options.folder.fs.unlinkSync(segment.path));
    this.forget(segment);
  }

  /** Whether files no longer exist whose runs are in memory. A file that no longer exists takes up no space. */
  noteGone(): boolean {
    let areSome = false;
    for (const segment of this.#all) {
      if (!isDeleted(this.#options.folder.fs, segment.path)) continue;
      this.bytes -= segment.bytes;
      segment.bytes = 0;
      areSome ||= !this.unread.has(segment);
    }
    return areSome;
  }

  forget(segment: StoredSegment): void {
    if (this.#all.delete(segment)) this.bytes -= segment.bytes;
    this.unread.delete(segment);
  }
}
