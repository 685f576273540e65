import { monotonicNowMs, wallNowMs } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { clearTimer, setTimer } from '../../base/timers.ts';
import { type Destination, destinationHash, HEARTBEAT_MS, OwnerFolder } from './directory.ts';
import {
  appendWhole,
  codeOf,
  createFile,
  ignoreErrors,
  readWhole,
  type SpoolFs,
  systemFs,
  UnsafeFolder,
} from './fs.ts';
import { encodeRecord, type RunName, readRecords, type SegmentRecords, type SpooledRecord } from './record.ts';
import { FrameBuffer, SEGMENT_BYTES_MAX, type Segment, StoredSegment } from './segment.ts';
import { expireLeftovers } from './survey.ts';

export type { RunName, SpooledRecord } from './record.ts';
export type { Segment } from './segment.ts';

/** Pause after an error of the disk. */
const RETRY_MS = 60_000;

/** Minimum time between two looks at the other destinations of a folder, for all spools of this process. */
const SCAN_MS = 50_000;

/** Size at which a segment is closed and the next record begins another. */
const SEAL_BYTES = 4 * 1024 * 1024;

/** Bytes that are written in one call. */
const CHUNK_BYTES = 1024 * 1024;

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

export interface SpoolOptions extends Destination {
  readonly spoolDir: string;
  /** Hash of the destination whose folder is used, if it is not the folder of this destination. */
  readonly spoolDestination?: string | undefined;
  /** Maximum bytes of all segments of this owner, including those that were taken over. Beyond it, nothing is written. */
  readonly bytesMax: number;
  readonly ageMaxMs: number;
  /** Interval at which written data is synced to the device; never if undefined. */
  readonly syncEveryMs?: number | undefined;
  readonly fs?: SpoolFs;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
}

/** Returns the spool of one exporter. Creates nothing on disk before something is written or taken over. */
export function openSpool(options: SpoolOptions): Spool {
  return new Spool(options);
}

/**
 * Stores records on disk, in segments that are appended to, read whole and deleted whole. Methods never throw: an error of the
 * disk is logged once, and the disk is tried again after a minute.
 */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #fs: SpoolFs;
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  readonly #folder: OwnerFolder;
  readonly #segments = new Set<StoredSegment>();
  /** Segments to read, the next one first: those of other owners, and those that this process has spilled. */
  readonly #foreign = new Set<StoredSegment>();
  readonly #spilled = new Set<StoredSegment>();
  /** The segment that `append` writes to. */
  #open: StoredSegment | undefined;
  #sequence = 0;
  #bytes = 0;
  #isClosed = false;
  #writesFromMs = Number.NEGATIVE_INFINITY;
  #readsFromMs = Number.NEGATIVE_INFINITY;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;

  constructor(options: SpoolOptions) {
    const { fs = systemFs, wallMs = wallNowMs, monotonicMs = monotonicNowMs, spoolDir, spoolDestination } = options;
    this.#options = options;
    this.#fs = fs;
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    this.#folder = new OwnerFolder(fs, spoolDir, spoolDestination ?? destinationHash(options), wallMs);
  }

  /** Bytes on disk of this owner. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether no segment waits to be read, now or after an error of the disk. */
  get isDrained(): boolean {
    return this.#foreign.size + this.#spilled.size === 0;
  }

  /** Whether `next` has a segment to read now. */
  get hasNext(): boolean {
    return !this.#isClosed && !this.isDrained && this.#monotonicMs() >= this.#readsFromMs;
  }

  /**
   * Writes a record before its delivery. It outlives the process as soon as this returns. Returns `undefined` if the disk
   * fails or the spool is full.
   */
  append(record: SpooledRecord): Segment | undefined {
    return this.#write(() => this.#append(record));
  }

  /** Called when an appended record is no longer needed. A segment without needed records is deleted. */
  release(segment: Segment): void {
    if (!this.#has(segment) || segment.needed === 0 || --segment.needed > 0) return;
    if (this.#open === segment) this.#seal();
    else this.#delete(segment);
  }

  /**
   * Writes records that leave memory, to be read again by `next`: all of them in one new segment, or none. Returns `undefined`
   * as `append` does, and for more than 128 MiB.
   */
  spill(records: readonly SpooledRecord[]): Segment | undefined {
    const segment = records.length === 0 ? undefined : this.#write(() => this.#writeSegment(records));
    if (segment !== undefined) this.#spilled.add(segment);
    return segment;
  }

  /**
   * Writes records for the next process, as `spill` does. Also tries if the disk failed recently, because this process
   * ends. Returns whether they were written.
   */
  keep(records: readonly SpooledRecord[]): boolean {
    this.#writesFromMs = Number.NEGATIVE_INFINITY;
    return this.#write(() => this.#writeSegment(records)) !== undefined;
  }

  /** Takes over the segments of dead owners. Returns their number. */
  takeOver(): number {
    if (this.#isClosed) return 0;
    try {
      const claimed = this.#folder.takeOver();
      for (const { path, bytes, modifiedAtMs } of claimed) {
        const segment = new StoredSegment(path, true, modifiedAtMs);
        this.#add(segment, bytes);
        this.#foreign.add(segment);
      }
      return claimed.length;
    } catch (thrown) {
      // Usually nothing was ever written for this destination.
      if (codeOf(thrown) !== 'ENOENT') this.#pauseWriting(thrown);
      return 0;
    } finally {
      this.#watch();
    }
  }

  /**
   * Finds runs that were left for other destinations and that no running process delivers. Deletes files that are too old, one
   * per step, and yields their runs. Logs the remaining destinations once.
   */
  *expireOthers(): Generator<readonly RunName[]> {
    const { spoolDir } = this.#folder;
    const nowMs = this.#monotonicMs();
    if (this.#isClosed || nowMs - (scannedAtMs.get(spoolDir) ?? Number.NEGATIVE_INFINITY) < SCAN_MS) return;
    scannedAtMs.set(spoolDir, nowMs);
    yield* expireLeftovers(this.#folder, this.#options.endpoint, this.#wallMs(), this.#options.ageMaxMs);
  }

  /**
   * Reads the next segment: those of other owners first, then those that this process has spilled, each once and in the order in
   * which they were written. A segment that cannot be read is returned without records.
   */
  next(): ReadSegment | undefined {
    while (this.hasNext) {
      const waiting = this.#foreign.size > 0 ? this.#foreign : this.#spilled;
      const [segment] = waiting as Iterable<StoredSegment> as [StoredSegment];
      try {
        const read = this.#read(segment);
        waiting.delete(segment);
        if (read !== undefined) return read;
      } catch (thrown) {
        if (codeOf(thrown) !== 'ENOENT') {
          this.#readsFromMs = this.#monotonicMs() + RETRY_MS;
          this.#warn('read', thrown, 'what is there is kept, and it is tried again every minute');
          return undefined;
        }
        this.#forget(segment);
      }
      // The exporter counts the runs of its own segments. Nobody has counted those of others.
      if (!segment.isForeign) return { segment, ...UNREADABLE, ageMs: 0, isExpired: false };
    }
    return undefined;
  }

  /** Called when all records of a segment are delivered or given up. Deletes the segment, or sets it aside if it is damaged. */
  done(segment: Segment): void {
    if (!this.#has(segment)) return;
    this.#foreign.delete(segment);
    this.#spilled.delete(segment);
    try {
      if (segment.isDamaged) this.#folder.setAside(segment.path);
    } catch (thrown) {
      this.#warn('write', thrown, WRITE_CONSEQUENCE);
    }
    this.#delete(segment);
  }

  /** Leaves the segments to the next process. Deletes the folder if it is empty. Nothing is written or read any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimer(this.#heartbeatTimer);
    clearTimer(this.#syncTimer);
    if (this.#options.syncEveryMs !== undefined && this.#open !== undefined) this.#syncNow(this.#open.fd);
    this.#seal();
    this.#folder.leave();
  }

  #append(record: SpooledRecord): StoredSegment | undefined {
    frames.clear();
    if (!addFrame(record, this.#open?.appended ?? 0) || !this.#hasRoom(frames.length)) return undefined;
    this.#open ??= this.#create();
    const segment = this.#open;
    try {
      appendWhole(this.#fs, segment.fd, segment.bytes, frames.bytes);
    } catch (thrown) {
      this.#seal();
      throw thrown;
    }
    segment.appended++;
    segment.needed++;
    this.#grow(segment, frames.length);
    this.#syncSoon();
    if (segment.bytes >= SEAL_BYTES) this.#seal();
    return segment;
  }

  /** Writes all records to one new segment. Returns `undefined` if there is no room, or if a record cannot be written at all. */
  #writeSegment(records: readonly SpooledRecord[]): StoredSegment | undefined {
    const segment = this.#create();
    let isWhole = false;
    try {
      isWhole = this.#writeAll(records, segment);
      if (isWhole && this.#options.syncEveryMs !== undefined) this.#syncNow(segment.fd);
    } finally {
      ignoreErrors(() => this.#fs.closeSync(segment.fd));
      if (!isWhole) this.#delete(segment);
    }
    return isWhole ? segment : undefined;
  }

  #writeAll(records: readonly SpooledRecord[], segment: StoredSegment): boolean {
    frames.clear();
    for (const [ordinal, record] of records.entries()) {
      if (!addFrame(record, ordinal) || !this.#hasRoom(frames.length)) return false;
      if (segment.bytes + frames.length > SEGMENT_BYTES_MAX) return false;
      if (frames.length < CHUNK_BYTES && ordinal < records.length - 1) continue;
      appendWhole(this.#fs, segment.fd, segment.bytes, frames.bytes);
      this.#grow(segment, frames.length);
      frames.clear();
    }
    return true;
  }

  #create(): StoredSegment {
    // Somebody may have deleted the folder since the last segment.
    this.#folder.make();
    const path = this.#folder.segmentPath(++this.#sequence);
    const segment = new StoredSegment(path, false, this.#monotonicMs(), createFile(this.#fs, path));
    this.#add(segment, 0);
    return segment;
  }

  /** Closes the segment that is appended to, and deletes it if no record in it is needed. */
  #seal(): void {
    const segment = this.#open;
    if (segment === undefined) return;
    this.#open = undefined;
    // The system has had each record since it was appended, so an error of `close` loses nothing.
    const close = (): void => void ignoreErrors(() => this.#fs.closeSync(segment.fd));
    if (segment.needed === 0) this.#delete(segment);
    if (this.#options.syncEveryMs === undefined || segment.needed === 0 || this.#isClosed) close();
    else this.#sync(segment.fd, close);
  }

  #syncSoon(): void {
    const { syncEveryMs } = this.#options;
    if (syncEveryMs === undefined || this.#syncTimer !== undefined) return;
    this.#syncTimer = setTimer(() => {
      this.#syncTimer = undefined;
      if (this.#open !== undefined) this.#sync(this.#open.fd, () => {});
    }, syncEveryMs).unref();
  }

  #sync(fd: number, done: () => void): void {
    this.#fs.fdatasync(fd, (problem) => {
      if (problem !== null) this.#warn('sync', problem, SYNC_CONSEQUENCE);
      done();
    });
  }

  #syncNow(fd: number): void {
    try {
      this.#fs.fdatasyncSync(fd);
    } catch (thrown) {
      this.#warn('sync', thrown, SYNC_CONSEQUENCE);
    }
  }

  /** Returns `undefined` if the segment has nothing to deliver. Throws file-system errors. */
  #read(segment: StoredSegment): ReadSegment | undefined {
    const content = readWhole(this.#fs, segment.path, SEGMENT_BYTES_MAX);
    const read = content === undefined ? UNREADABLE : readRecords(content.bytes);
    if (read.isLaterVersion) {
      warnOf(segment, 'was written by a later version of runspan and is left as it is; upgrade, or delete it');
      this.#forget(segment);
      return undefined;
    }
    segment.isDamaged = read.damagedRuns.length > 0;
    if (segment.isDamaged) {
      warnOf(segment, 'is damaged; what could be read of it is delivered, and the file is set aside');
    } else if (read.records.length === 0) {
      this.#delete(segment);
      return undefined;
    }
    const ageMs = Math.max(0, (segment.isForeign ? this.#wallMs() : this.#monotonicMs()) - segment.writtenAtMs);
    return { segment, ...read, ageMs, isExpired: !segment.isForeign && ageMs > this.#options.ageMaxMs };
  }

  #has(segment: Segment): segment is StoredSegment {
    return this.#segments.has(segment as StoredSegment);
  }

  #add(segment: StoredSegment, bytes: number): void {
    this.#segments.add(segment);
    this.#grow(segment, bytes);
  }

  #grow(segment: StoredSegment, bytes: number): void {
    segment.bytes += bytes;
    this.#bytes += bytes;
  }

  /** If the deletion fails, the file stays, and the next process delivers its records again. */
  #delete(segment: StoredSegment): void {
    ignoreErrors(() => this.#fs.unlinkSync(segment.path));
    this.#forget(segment);
    if (this.#isClosed) this.#folder.leave();
  }

  /** Called if the file does not exist, or if it no longer belongs to this owner. */
  #forget(segment: StoredSegment): void {
    if (this.#segments.delete(segment)) this.#bytes -= segment.bytes;
    this.#foreign.delete(segment);
    this.#spilled.delete(segment);
  }

  #hasRoom(bytes: number): boolean {
    const { bytesMax } = this.#options;
    if (this.#bytes + bytes <= bytesMax) return true;
    const { spoolDir, path } = this.#folder;
    diagnostics.warnOnce(
      `spool full ${path}`,
      `spool: ${spoolDir} is at its limit of ${bytesMax} bytes; runs are kept in memory only until some of it is delivered.`,
    );
    return false;
  }

  #write(write: () => StoredSegment | undefined): StoredSegment | undefined {
    if (this.#isClosed || this.#monotonicMs() < this.#writesFromMs) return undefined;
    try {
      return write();
    } catch (thrown) {
      this.#pauseWriting(thrown);
      return undefined;
    } finally {
      this.#watch();
    }
  }

  #pauseWriting(thrown: unknown): void {
    this.#writesFromMs = this.#monotonicMs() + RETRY_MS;
    this.#warn('write', thrown, WRITE_CONSEQUENCE);
  }

  #warn(verb: 'read' | 'write' | 'sync', thrown: unknown, consequence: string): void {
    const { spoolDir, destinationPath } = this.#folder;
    const problem =
      thrown instanceof UnsafeFolder
        ? `${thrown.message} and is not used; set spoolDir to a folder of your own`
        : `cannot ${verb} in ${spoolDir} (${codeOf(thrown)})`;
    diagnostics.warnOnce(`spool ${destinationPath} ${problem}`, `spool: ${problem}; ${consequence}.`);
  }

  /** Sends heartbeats while this owner has segments that no other process may take over. */
  #watch(): void {
    if (this.#heartbeatTimer !== undefined || this.#isClosed || this.#segments.size === 0) return;
    this.#heartbeatTimer = setTimer(() => {
      this.#heartbeatTimer = undefined;
      // Somebody has deleted the folder, or this process was suspended and another has taken over its segments.
      if (!this.#folder.heartbeat()) this.#seal();
      this.#watch();
    }, HEARTBEAT_MS).unref();
  }
}

const WRITE_CONSEQUENCE = 'runs are kept in memory only, and it is tried again every minute';

const SYNC_CONSEQUENCE = 'what was written may be lost if the machine loses power';

/** The content of a file that is not a readable segment: something else, too large, or deleted by another program. */
const UNREADABLE: SegmentRecords = {
  records: [],
  damagedRuns: [{ id: '', traceId: '', name: '' }],
  isLaterVersion: false,
};

/** When the other destinations in a folder were last looked at, by any spool of this process. */
const scannedAtMs = new Map<string, number>();

/** Shared by all spools, because a record is encoded and written in one step. */
const frames = new FrameBuffer();

/** Adds a record to the shared buffer. Returns `false` if it cannot be written to any disk. */
function addFrame(record: SpooledRecord, ordinal: number): boolean {
  try {
    return frames.add(record.run.id, ordinal, encodeRecord(record));
  } catch {
    return false;
  }
}

function warnOf({ path }: Segment, problem: string): void {
  diagnostics.warnOnce(`spool ${path} ${problem}`, `spool: ${path} ${problem}.`);
}
