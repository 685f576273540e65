import { monotonicNowMs, wallNowMs } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import { type Destination, destinationHash, HEARTBEAT_MS, OwnerFolder } from './directory.ts';
import { type ReadSegment, type Segment, SegmentFiles, type StoredSegment } from './files.ts';
import { errorCodeOf, isDeleted, type SpoolFs, systemFs, UnsafeFolder } from './fs.ts';
import { FrameBuffer, type RunName, readSegment, SEGMENT_BYTES_MAX, type SpooledRecord } from './segment.ts';
import { expireLeftovers } from './survey.ts';

export type { ReadSegment, Segment } from './files.ts';
export type { RunName, SpooledRecord } from './segment.ts';

const RETRY_MS = 60_000;

/** If the open segment file reaches this size in bytes, the next record starts a new file. */
const SEAL_BYTES = 4 * 1024 * 1024;

/** Size of a closed segment file up to which the ends of its runs are appended, in bytes. */
const ENDS_BYTES_MAX = SEGMENT_BYTES_MAX / 4;

const CHUNK_BYTES = 1024 * 1024;

export interface SpoolOptions extends Destination {
  readonly spoolDir: string;
  /** Hash of the service and tenant whose runs are stored. Computed from these options by default. */
  readonly spoolDestination?: string | undefined;
  /** Maximum size of all segment files, in bytes. Includes files taken over from other processes. */
  readonly bytesMax: number;
  readonly ageMaxMs: number;
  readonly fs?: SpoolFs;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
}

/**
 * Stores undelivered runs in segment files on disk. Each file is read and deleted as a whole. The folder is created for
 * the first file. Methods never throw. A disk error is logged once, and the disk is tried again after a minute.
 */
export class Spool {
  readonly #options: SpoolOptions & Required<Pick<SpoolOptions, 'wallMs' | 'monotonicMs'>>;
  readonly #folder: OwnerFolder;
  readonly #segments: SegmentFiles;
  /** Writes the runs in memory again whose files are gone. Returns their number. */
  writeAgain: () => number = () => 0;
  #open: StoredSegment | undefined;
  #isClosed = false;
  #writesFromMs = Number.NEGATIVE_INFINITY;
  #readsFromMs = Number.NEGATIVE_INFINITY;
  #heartbeatTimer: NodeJS.Timeout | undefined;

  constructor(options: SpoolOptions) {
    const { fs = systemFs, wallMs = wallNowMs, monotonicMs = monotonicNowMs, spoolDir, spoolDestination } = options;
    this.#options = { ...options, wallMs, monotonicMs };
    this.#folder = new OwnerFolder(fs, spoolDir, spoolDestination ?? destinationHash(options), wallMs);
    this.#segments = new SegmentFiles({ folder: this.#folder, monotonicMs });
  }

  get bytes(): number {
    return this.#segments.bytes;
  }

  /** Whether all segment files have been read. */
  get isDrained(): boolean {
    return this.#segments.next === undefined;
  }

  /** Whether a segment file can be read now. False for a minute after a read error. */
  get hasNext(): boolean {
    return !this.#isClosed && !this.isDrained && this.#options.monotonicMs() >= this.#readsFromMs;
  }

  /**
   * Appends a record to the open segment file. If `start` still exists, the file with the run's start, appends the run's
   * end there. Otherwise the start could outlast the end, and the next process would send it after the end. If that file
   * cannot be opened, the open file is used. Returns `undefined` if the write fails or the size limit is reached.
   */
  append(record: SpooledRecord, start?: Segment): Segment | undefined {
    return this.#write(() => this.#append(record, start));
  }

  /** Called when an appended record is no longer needed. Deletes the segment file when none of its records are. */
  release(segment: Segment): void {
    if (!this.#segments.has(segment) || segment.needed === 0 || --segment.needed > 0) return;
    if (this.#open === segment) this.#seal();
    else this.#delete(segment);
  }

  /** Writes records to a new segment file, which `next` returns later. Writes all of them, or returns `undefined`. */
  spill(records: readonly SpooledRecord[]): Segment | undefined {
    const segment = records.length === 0 ? undefined : this.#write(() => this.#writeSegment(records));
    if (segment !== undefined) this.#segments.unread.add(segment);
    return segment;
  }

  /** Writes all records or none for the next process, even after a recent disk error. Returns whether it did. */
  keep(records: readonly SpooledRecord[]): boolean {
    this.#writesFromMs = Number.NEGATIVE_INFINITY;
    return this.#write(() => this.#writeSegment(records)) !== undefined;
  }

  holds({ path }: Segment): boolean {
    return !isDeleted(this.#folder.fs, path);
  }

  takeOver(): number {
    if (this.#isClosed) return 0;
    try {
      const claimed = this.#folder.takeOver();
      for (const segment of claimed) this.#segments.addForeign(segment);
      return claimed.length;
    } catch (thrown) {
      // The folder does not exist until a process has written a run for this service and tenant.
      if (errorCodeOf(thrown) !== 'ENOENT') this.#pauseWriting(thrown);
      return 0;
    } finally {
      this.#startHeartbeats();
    }
  }

  expireOthers(): Iterator<readonly RunName[]> {
    const { endpoint, ageMaxMs, wallMs } = this.#options;
    return expireLeftovers(this.#folder, endpoint, wallMs(), ageMaxMs);
  }

  /** Reads the next segment file, oldest first. An unreadable file has no records. */
  next(): ReadSegment | undefined {
    while (this.hasNext) {
      const segment = this.#segments.next as StoredSegment;
      try {
        const read = this.#read(segment);
        this.#segments.unread.delete(segment);
        if (read !== undefined) return read;
      } catch (thrown) {
        if (errorCodeOf(thrown) !== 'ENOENT') {
          this.#readsFromMs = this.#options.monotonicMs() + RETRY_MS;
          this.#warn('read', thrown, 'the files are kept, and reading is retried every minute');
          return undefined;
        }
        this.#segments.forget(segment);
      }
      // Returns an unreadable file too, because the exporter has already counted its runs as spooled.
      if (!segment.isForeign) return { ...UNREADABLE, segment, ageMs: 0, isExpired: false };
    }
    return undefined;
  }

  /** Called when all runs in a segment file are delivered or dropped. */
  done(segment: Segment): void {
    if (!this.#segments.has(segment)) return;
    this.#segments.unread.delete(segment);
    try {
      if (segment.isDamaged) this.#folder.setAside(segment.path);
    } catch (thrown) {
      this.#warn('write', thrown, WRITE_CONSEQUENCE);
    }
    this.#delete(segment);
  }

  /** Stops reading and writing. The next process takes over the remaining segment files. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimer(this.#heartbeatTimer);
    this.#seal();
    this.#folder.leave();
  }

  #append(record: SpooledRecord, start: Segment | undefined): StoredSegment | undefined {
    const { token } = this.#folder;
    const known = start !== undefined && this.#takesEnd(start) ? start : this.#open;
    const place = { token, ordinal: known?.appended ?? 0, fileBytes: known?.bytes ?? 0 };
    frames.clear();
    if (!frames.add(record, place) || !this.#hasRoom(frames.length)) return undefined;
    const segment = known ?? this.#segments.create();
    if (known === undefined) this.#open = segment;
    try {
      this.#segments.append(segment, frames.bytes);
    } catch (thrown) {
      if (segment !== this.#open) return this.#append(record, undefined);
      this.#seal();
      throw thrown;
    }
    segment.appended++;
    segment.needed++;
    if (segment === this.#open && segment.bytes >= SEAL_BYTES) this.#seal();
    return segment;
  }

  #takesEnd(start: Segment): start is StoredSegment {
    return start !== this.#open && this.#segments.has(start) && start.bytes < ENDS_BYTES_MAX && this.holds(start);
  }

  #writeSegment(records: readonly SpooledRecord[]): StoredSegment | undefined {
    const segment = this.#segments.create();
    let isWhole = false;
    try {
      isWhole = this.#writeAll(records, segment);
    } finally {
      this.#segments.close(segment);
      if (!isWhole) this.#delete(segment);
    }
    return isWhole ? segment : undefined;
  }

  #writeAll(records: readonly SpooledRecord[], segment: StoredSegment): boolean {
    const { token } = this.#folder;
    frames.clear();
    for (const [ordinal, record] of records.entries()) {
      const place = { token, ordinal, fileBytes: segment.bytes };
      if (!frames.add(record, place) || !this.#hasRoom(frames.length)) return false;
      if (segment.bytes + frames.length > SEGMENT_BYTES_MAX) return false;
      if (frames.length < CHUNK_BYTES && ordinal < records.length - 1) continue;
      this.#segments.append(segment, frames.bytes);
      frames.clear();
    }
    return true;
  }

  #seal(): void {
    const segment = this.#open;
    if (segment === undefined) return;
    this.#open = undefined;
    this.#segments.close(segment);
    if (segment.needed === 0) this.#segments.delete(segment);
  }

  #read(segment: StoredSegment): ReadSegment | undefined {
    const { records, damagedRuns, isLaterVersion } = readSegment(this.#folder.fs, segment.path) ?? UNREADABLE;
    if (isLaterVersion) {
      warnOf(segment, 'was written by a later version of runspan and is not read; upgrade runspan, or delete the file');
      this.#segments.forget(segment);
      return undefined;
    }
    segment.isDamaged = damagedRuns.length > 0;
    if (segment.isDamaged) {
      warnOf(segment, 'is damaged; its readable runs are delivered, and the file is moved to the folder "bad"');
    } else if (records.length === 0) {
      this.#delete(segment);
      return undefined;
    }
    const ageMs = Math.max(
      0,
      (segment.isForeign ? this.#options.wallMs() : this.#options.monotonicMs()) - segment.writtenAtMs,
    );
    return { segment, records, damagedRuns, ageMs, isExpired: !segment.isForeign && ageMs > this.#options.ageMaxMs };
  }

  #delete(segment: StoredSegment): void {
    this.#segments.delete(segment);
    if (this.#isClosed) this.#folder.leave();
  }

  #hasRoom(bytes: number): boolean {
    const { bytesMax } = this.#options;
    if (this.bytes + bytes <= bytesMax) return true;
    const { spoolDir, path } = this.#folder;
    diagnostics.warnOnce(
      `spool full ${path}`,
      `spool: ${spoolDir} has reached its limit of ${bytesMax} bytes; new runs are kept only in memory until files in this folder are delivered.`,
    );
    return false;
  }

  #write(write: () => StoredSegment | undefined): StoredSegment | undefined {
    if (this.#isClosed || this.#options.monotonicMs() < this.#writesFromMs) return undefined;
    try {
      return write();
    } catch (thrown) {
      this.#pauseWriting(thrown);
      return undefined;
    } finally {
      this.#startHeartbeats();
    }
  }

  #pauseWriting(thrown: unknown): void {
    this.#writesFromMs = this.#options.monotonicMs() + RETRY_MS;
    this.#warn('write', thrown, WRITE_CONSEQUENCE);
  }

  #warn(verb: 'read' | 'write', thrown: unknown, consequence: string): void {
    const { spoolDir, destinationPath } = this.#folder;
    const problem =
      thrown instanceof UnsafeFolder
        ? `${thrown.message} and is not used; set spoolDir to a folder that you own`
        : `cannot ${verb} in ${spoolDir} (${errorCodeOf(thrown)})`;
    diagnostics.warnOnce(`spool ${destinationPath} ${problem}`, `spool: ${problem}; ${consequence}.`);
  }

  #startHeartbeats(): void {
    if (this.#heartbeatTimer !== undefined || this.#isClosed || this.#segments.isEmpty) return;
    this.#heartbeatTimer = setTimer(() => {
      this.#heartbeatTimer = undefined;
      this.#folder.heartbeat();
      // The open file may have been deleted. Another process may also have taken over the file while this process was
      // suspended.
      if (this.#open !== undefined && !this.holds(this.#open)) this.#seal();
      const runs = this.#segments.noteGone() ? this.writeAgain() : 0;
      const gone = `spool: files in ${this.#folder.spoolDir} are gone`;
      if (runs > 0) diagnostics.warnOnce(gone, `${gone}; the undelivered runs in memory (${runs}) are written again.`);
      this.#startHeartbeats();
    }, HEARTBEAT_MS).unref();
  }
}

const WRITE_CONSEQUENCE = 'runs are kept in memory only, and writing is retried every minute';

/** The result for a file that is missing, too large or not a regular file. */
const UNREADABLE = { records: [], damagedRuns: [{ id: '', traceId: '', name: '' }], isLaterVersion: false };

/** All spools share this buffer, because records are encoded and written synchronously. */
const frames = new FrameBuffer();

function warnOf({ path }: Segment, problem: string): void {
  diagnostics.warnOnce(`spool ${path} ${problem}`, `spool: ${path} ${problem}.`);
}
