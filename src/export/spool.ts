import { join, resolve } from 'node:path';
import { diagnostics } from '../base/diagnostics.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { setAside } from './spool-bad.ts';
import { claimAll, deadOwners, removeEmptied } from './spool-claim.ts';
import { SegmentFile } from './spool-file.ts';
import {
  checkPrivateFolders,
  type Destination,
  destinationHash,
  FORMAT_FOLDER,
  makePrivateFolders,
  type SegmentName,
  segmentName,
  UnsafeFolder,
} from './spool-folder.ts';
import { codeOf, readWhole, removeFile, type SpoolFs, systemFs } from './spool-fs.ts';
import {
  beat,
  HEARTBEAT_MS,
  leave,
  newOwnerName,
  type OwnerFacts,
  ownerToken,
  ownFacts,
  writeOwner,
} from './spool-owner.ts';
import { decodeRecord, encodeRecord, type SpooledRecord } from './spool-record.ts';
import { frame, SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';

/** Bytes at which a segment that is appended to makes room for the next. */
const SEAL_BYTES = 4 * 1024 * 1024;

/** Bytes that are written at once. */
const CHUNK_BYTES = 1024 * 1024;

/** After a failure of the disk. */
const RETRY_MS = 60_000;

/** Processes that a segment is tried in that die soon after. */
const ATTEMPTS_MAX = 5;

/** Without a sign of life for so long, somebody may be about to take over. */
const LATE_MS = 3 * HEARTBEAT_MS;

/** A file of records. What is in it is for the spool alone. */
export interface Segment {
  readonly path: string;
  /** Whether another process has written it. */
  readonly isForeign: boolean;
}

/** What a segment holds. */
export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Stretches of the file that were damaged; each was one record or more. */
  readonly corrupt: number;
  /** Written longer ago than the age limit allows. */
  readonly isExpired: boolean;
}

export interface SpoolOptions extends Destination {
  readonly spoolDir: string;
  /** Of all segments of this owner, those that it has taken over included; beyond it nothing is written. */
  readonly bytesMax: number;
  readonly ageMaxMs: number;
  readonly fs?: SpoolFs;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
}

/** The spool of one exporter. Nothing is on disk before something is written or taken over. */
export function openSpool(options: SpoolOptions): Spool {
  return new Spool(options);
}

// Taken once, so that fake timers installed by a test of the application do not stop the clock.
const wallNowMs = Date.now;
const monotonicNowMs = performance.now.bind(performance);

/**
 * Records on disk, in files that are appended to, handed out whole, and deleted whole; the folder is the only truth. What
 * the disk refuses is told once and kept from the caller: nothing here throws. Nothing is flushed to the device, so what
 * the operating system held at a loss of power is lost.
 */
export class Spool {
  readonly #fs: SpoolFs;
  readonly #spoolDir: string;
  readonly #bytesMax: number;
  readonly #ageMaxMs: number;
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  readonly #destination: readonly string[];
  readonly #ownName: string;
  readonly #folder: string;
  #facts: OwnerFacts | undefined;
  #state: 'open' | 'closed' = 'open';
  /** Whether the own folder was made, and is there as far as is known. */
  #isFolderMade = false;
  #sequence = 0;
  #open: { readonly segment: StoredSegment; readonly file: SegmentFile } | undefined;
  /** All that count as this owner's bytes. */
  readonly #segments = new Set<StoredSegment>();
  /** Those to be handed out, in their order. */
  #waiting = new Set<StoredSegment>();
  readonly #handedOut = new Set<StoredSegment>();
  /** Those that could not be deleted yet. */
  readonly #doomed = new Set<StoredSegment>();
  #bytes = 0;
  #writesFromMs = Number.NEGATIVE_INFINITY;
  #readsFromMs = Number.NEGATIVE_INFINITY;
  #lastSignMs = 0;
  #latestMs = 0;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: SpoolOptions) {
    this.#fs = options.fs ?? systemFs;
    this.#spoolDir = resolve(options.spoolDir);
    this.#bytesMax = options.bytesMax;
    this.#ageMaxMs = options.ageMaxMs;
    this.#wallMs = options.wallMs ?? wallNowMs;
    this.#monotonicMs = options.monotonicMs ?? monotonicNowMs;
    this.#destination = [FORMAT_FOLDER, destinationHash(options)];
    this.#ownName = newOwnerName(this.#wallMs());
    this.#folder = join(this.#spoolDir, ...this.#destination, this.#ownName);
  }

  /** Bytes on disk of this owner. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether `next` has something to read at this moment. */
  get hasNext(): boolean {
    return this.#state === 'open' && this.#waiting.size > 0 && this.#monotonicMs() >= this.#readsFromMs;
  }

  /**
   * Writes a record ahead of its delivery; it is on disk, as far as the death of the process is concerned, when this
   * returns. Undefined when the disk refuses, or when the spool is full.
   */
  append(record: SpooledRecord): Segment | undefined {
    if (!this.#mayWrite) return undefined;
    const framed = framedOf(record);
    if (framed === undefined || !this.#hasRoom(framed.length)) return undefined;
    return this.#tried(() => this.#append(framed));
  }

  /** One appended record fewer that has to be kept; a segment with none left is deleted. */
  release(segment: Segment): void {
    if (!(segment instanceof StoredSegment) || segment.records === 0) return;
    segment.records--;
    if (segment.records > 0) return;
    if (this.#open?.segment === segment) this.#seal();
    else this.#delete(segment);
  }

  /**
   * Writes records that are let go of, to be read again later: all of them, in a segment of their own, or none. Undefined
   * as for `append`, and for more than 128 MiB.
   */
  spill(records: readonly SpooledRecord[]): Segment | undefined {
    if (!this.#mayWrite || records.length === 0) return undefined;
    return this.#tried(() => this.#spill(records));
  }

  /** Claims what owners have left that are dead; says how many segments that were. */
  takeOver(): number {
    if (this.#state !== 'open') return 0;
    let claimed = 0;
    try {
      const folder = join(this.#spoolDir, ...this.#destination);
      checkPrivateFolders(this.#fs, this.#spoolDir, this.#destination);
      this.#facts ??= ownFacts(this.#fs);
      for (const owner of deadOwners(this.#fs, folder, this.#facts, this.#ownName, this.#wallMs())) {
        if (removeEmptied(this.#fs, owner)) continue;
        this.#makeFolder();
        claimed += this.#claim(owner);
      }
    } catch (thrown) {
      // As a rule nothing was ever written for this destination.
      if (codeOf(thrown) !== 'ENOENT') this.#degrade(thrown);
    }
    if (claimed > 0) this.#watch();
    return claimed;
  }

  /**
   * The oldest segment that waits: of those that were spilled and those that were claimed. It is not handed out again
   * unless it is put back. What cannot be read is set aside; one that was spilled comes without records then, or when it
   * was deleted by somebody else, as what was in it is counted.
   */
  next(): ReadSegment | undefined {
    while (this.hasNext) {
      const segment = this.#waiting.values().next().value as StoredSegment;
      this.#waiting.delete(segment);
      try {
        const read = this.#read(segment);
        if (read !== undefined) return read;
      } catch (thrown) {
        if (codeOf(thrown) === 'ENOENT') {
          this.#forget(segment);
          if (segment.isForeign) continue;
          return { segment, records: [], corrupt: 1, isExpired: false };
        }
        this.#waiting = new Set([segment, ...this.#waiting]);
        this.#readsFromMs = this.#monotonicMs() + RETRY_MS;
        this.#tell(thrown, 'read', 'what is there is kept, and it is tried again in a minute');
      }
    }
    return undefined;
  }

  /** It could not be delivered; it is the next to be handed out. */
  putBack(segment: Segment): void {
    if (!(segment instanceof StoredSegment) || !this.#handedOut.delete(segment)) return;
    this.#unmark(segment);
    this.#waiting = new Set([segment, ...this.#waiting]);
  }

  /** Everything in it is delivered or given up: it is deleted, or set aside when it was damaged. */
  done(segment: Segment): void {
    if (!(segment instanceof StoredSegment) || !this.#segments.has(segment)) return;
    if (!segment.isDamaged || !this.#setAside(segment)) this.#delete(segment);
  }

  /** Leaves the folder to whoever comes next, and takes it away when it is empty. Nothing is written or read any more. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    clearTimer(this.#heartbeat);
    this.#heartbeat = undefined;
    if (this.#open !== undefined) this.#seal();
    for (const segment of this.#doomed) this.#delete(segment);
    for (const segment of this.#handedOut) this.#unmark(segment);
    this.#leave();
  }

  get #mayWrite(): boolean {
    return this.#state === 'open' && this.#monotonicMs() >= this.#writesFromMs;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#bytes + bytes <= this.#bytesMax) return true;
    diagnostics.warnOnce(
      `spool full ${this.#folder}`,
      `spool: ${this.#spoolDir} is at its limit of ${this.#bytesMax} bytes; runs are kept in memory only until some of it is delivered.`,
    );
    return false;
  }

  #append(framed: Buffer): Segment {
    this.#checkOpen();
    this.#open ??= this.#create();
    const { segment, file } = this.#open;
    try {
      file.append(framed);
    } catch (thrown) {
      this.#seal();
      throw thrown;
    }
    segment.records++;
    this.#grow(segment, framed.length);
    if (file.bytes >= SEAL_BYTES) this.#seal();
    return segment;
  }

  #spill(records: readonly SpooledRecord[]): Segment | undefined {
    const { segment, file } = this.#create();
    let isWhole = false;
    try {
      try {
        isWhole = this.#writeAll(records, file);
      } finally {
        file.close();
      }
    } catch (thrown) {
      this.#delete(segment);
      throw thrown;
    }
    if (!isWhole) {
      this.#delete(segment);
      return undefined;
    }
    this.#grow(segment, file.bytes);
    this.#latestMs = Math.max(this.#latestMs, this.#wallMs());
    segment.writtenAtMs = this.#latestMs;
    this.#waiting.add(segment);
    return segment;
  }

  /** False when there is no room, or one of them is no record. */
  #writeAll(records: readonly SpooledRecord[], file: SegmentFile): boolean {
    let frames: Buffer[] = [];
    let bytes = 0;
    for (const [index, record] of records.entries()) {
      const framed = framedOf(record);
      if (framed === undefined) return false;
      frames.push(framed);
      bytes += framed.length;
      if (file.bytes + bytes > SEGMENT_BYTES_MAX || !this.#hasRoom(file.bytes + bytes)) return false;
      if (bytes < CHUNK_BYTES && index < records.length - 1) continue;
      file.append(frames.length === 1 ? framed : Buffer.concat(frames, bytes));
      frames = [];
      bytes = 0;
    }
    return true;
  }

  /** Leaves a segment behind that somebody has deleted, or may have claimed while nothing was heard of us. */
  #checkOpen(): void {
    if (this.#open === undefined) return;
    const { segment, file } = this.#open;
    if (this.#wallMs() - this.#lastSignMs > LATE_MS) {
      this.#giveSign();
      this.#seal();
    } else if (file.isLost) {
      this.#seal();
      this.#forget(segment);
    }
  }

  /** A new file. A folder that is gone is made again. */
  #create(): { segment: StoredSegment; file: SegmentFile } {
    for (let isAgain = false; ; isAgain = true) {
      try {
        this.#makeFolder();
        const name = { sequence: ++this.#sequence, token: ownerToken(this.#ownName) as string, attempts: 0 };
        const segment = new StoredSegment(this.#folder, name, false);
        const file = new SegmentFile(this.#fs, segment.path);
        this.#segments.add(segment);
        this.#watch();
        return { segment, file };
      } catch (thrown) {
        const code = codeOf(thrown);
        if (isAgain || (code !== 'ENOENT' && code !== 'EEXIST')) throw thrown;
        this.#isFolderMade = false;
      }
    }
  }

  #makeFolder(): void {
    if (this.#isFolderMade) return;
    makePrivateFolders(this.#fs, this.#spoolDir, [...this.#destination, this.#ownName]);
    this.#facts ??= ownFacts(this.#fs);
    try {
      writeOwner(this.#fs, this.#folder, this.#facts);
    } catch (thrown) {
      if (codeOf(thrown) !== 'EEXIST') throw thrown;
    }
    this.#lastSignMs = this.#wallMs();
    this.#isFolderMade = true;
  }

  #claim(owner: string): number {
    const claimed = claimAll(this.#fs, owner, this.#folder).map(({ name, bytes, modifiedAtMs }) => {
      const segment = new StoredSegment(this.#folder, name, true);
      segment.writtenAtMs = modifiedAtMs;
      this.#segments.add(segment);
      this.#grow(segment, bytes);
      return segment;
    });
    const inOrder = [...this.#waiting, ...claimed].sort((one, other) => one.writtenAtMs - other.writtenAtMs);
    this.#waiting = new Set(inOrder);
    return claimed.length;
  }

  /** Undefined when there is nothing to hand out; throws what the file system throws. */
  #read(segment: StoredSegment): ReadSegment | undefined {
    if (segment.name.attempts >= ATTEMPTS_MAX) {
      this.#tellOf(segment, `has ended ${ATTEMPTS_MAX} processes that read it, and is set aside`);
      if (!this.#setAside(segment)) this.#forget(segment);
      return undefined;
    }
    // A process that dies of what it reads has said so before.
    this.#rename(segment, segment.name.attempts + 1);
    const content = readWhole(this.#fs, segment.path, SEGMENT_BYTES_MAX);
    const { payloads, corrupt, isUnknownVersion } = scan(content?.bytes ?? NOTHING);
    if (isUnknownVersion) {
      this.#unmark(segment);
      this.#tellOf(segment, 'was written by a later version of runspan and is left as it is; upgrade, or delete it');
      this.#forget(segment);
      return undefined;
    }
    const records = payloads.map(decodeRecord).filter((record) => record !== undefined);
    const damaged = corrupt + payloads.length - records.length;
    if (content === undefined || damaged > 0) {
      segment.isDamaged = true;
      this.#tellOf(segment, 'is damaged; what could be read of it is delivered, and the file is set aside');
    }
    if (records.length === 0) {
      this.done(segment);
      return segment.isForeign ? undefined : { segment, records, corrupt: damaged, isExpired: false };
    }
    segment.handedOutAtMs = this.#monotonicMs();
    this.#handedOut.add(segment);
    const ageMs = this.#wallMs() - (content?.modifiedAtMs ?? 0);
    return { segment, records, corrupt: damaged, isExpired: ageMs > this.#ageMaxMs };
  }

  #rename(segment: StoredSegment, attempts: number): void {
    const name = { ...segment.name, attempts };
    this.#fs.renameSync(segment.path, join(this.#folder, segmentName(name)));
    segment.name = name;
  }

  /** The process lives: it was not this one that ends those who read it. */
  #unmark(segment: StoredSegment): void {
    if (segment.name.attempts === 0) return;
    try {
      this.#rename(segment, 0);
    } catch {
      // It counts as one more attempt.
    }
  }

  #setAside(segment: StoredSegment): boolean {
    try {
      setAside(this.#fs, segment.path, this.#spoolDir, this.#destination);
    } catch (thrown) {
      // What was moved, and could only not be bounded, is gone from here.
      if (!this.#isMissing(segment)) {
        this.#tell(thrown, 'write', 'damaged files cannot be set aside');
        return false;
      }
    }
    this.#forget(segment);
    return true;
  }

  #isMissing({ path }: StoredSegment): boolean {
    try {
      this.#fs.lstatSync(path);
      return false;
    } catch (thrown) {
      return codeOf(thrown) === 'ENOENT';
    }
  }

  /** Ends the segment that is appended to; one without records is deleted. */
  #seal(): void {
    if (this.#open === undefined) return;
    const { segment, file } = this.#open;
    this.#open = undefined;
    try {
      file.close();
    } catch {
      // What was written before was taken by the system.
    }
    if (segment.records === 0) this.#delete(segment);
  }

  #delete(segment: StoredSegment): void {
    if (!this.#segments.has(segment)) return;
    this.#waiting.delete(segment);
    this.#handedOut.delete(segment);
    try {
      removeFile(this.#fs, segment.path);
      this.#forget(segment);
    } catch {
      this.#doomed.add(segment);
    }
    if (this.#state === 'closed') this.#leave();
  }

  #grow(segment: StoredSegment, bytes: number): void {
    segment.bytes += bytes;
    this.#bytes += bytes;
  }

  /** It is no longer there, or no longer ours. */
  #forget(segment: StoredSegment): void {
    if (!this.#segments.delete(segment)) return;
    this.#waiting.delete(segment);
    this.#handedOut.delete(segment);
    this.#doomed.delete(segment);
    this.#bytes -= segment.bytes;
    segment.records = 0;
  }

  #watch(): void {
    if (this.#heartbeat !== undefined || this.#state === 'closed' || this.#segments.size === 0) return;
    this.#heartbeat = setTimer(() => this.#beat(), HEARTBEAT_MS).unref();
  }

  #beat(): void {
    this.#heartbeat = undefined;
    for (const segment of this.#doomed) this.#delete(segment);
    const handedOutBeforeMs = this.#monotonicMs() - HEARTBEAT_MS;
    for (const segment of this.#handedOut) if (segment.handedOutAtMs <= handedOutBeforeMs) this.#unmark(segment);
    this.#giveSign();
    this.#watch();
  }

  #giveSign(): void {
    const wallMs = this.#wallMs();
    try {
      beat(this.#fs, this.#folder, wallMs);
      this.#lastSignMs = wallMs;
    } catch (thrown) {
      if (codeOf(thrown) !== 'ENOENT') return;
      // Deleted, or taken over by somebody who held us for dead.
      this.#seal();
      this.#isFolderMade = false;
    }
  }

  #leave(): void {
    if (!this.#isFolderMade || removeEmptied(this.#fs, this.#folder)) return;
    try {
      leave(this.#fs, this.#folder);
    } catch {
      // Whoever comes next finds out by itself that this process has ended.
    }
  }

  #tried<Result>(work: () => Result): Result | undefined {
    try {
      return work();
    } catch (thrown) {
      this.#degrade(thrown);
      return undefined;
    }
  }

  #degrade(thrown: unknown): void {
    this.#writesFromMs = this.#monotonicMs() + RETRY_MS;
    this.#tell(thrown, 'write', 'runs are kept in memory only, and it is tried again every minute');
  }

  #tell(thrown: unknown, verb: 'read' | 'write', consequence: string): void {
    const problem =
      thrown instanceof UnsafeFolder
        ? `${thrown.message} and is not used; set spoolDir to a folder of your own`
        : `cannot ${verb} in ${this.#spoolDir} (${codeOf(thrown)})`;
    diagnostics.warnOnce(`spool ${this.#destination.join('/')} ${problem}`, `spool: ${problem}; ${consequence}.`);
  }

  #tellOf(segment: StoredSegment, what: string): void {
    diagnostics.warnOnce(`spool ${segment.path} ${what}`, `spool: ${segment.path} ${what}.`);
  }
}

const NOTHING: Buffer = Buffer.alloc(0);

/** A segment as the spool knows it. */
class StoredSegment implements Segment {
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
}

/** Undefined for what cannot be written, whatever the reason: it is no fault of the disk. */
function framedOf(record: SpooledRecord): Buffer | undefined {
  try {
    return frame(encodeRecord(record));
  } catch {
    return undefined;
  }
}
