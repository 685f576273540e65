import { resolve } from 'node:path';
import { monotonicNowMs, wallNowMs } from '../base/clock.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { claimAll, deadOwners, removeEmptied } from './spool-claim.ts';
import { checkPrivateFolders, type Destination, destinationHash, FORMAT_FOLDER } from './spool-folder.ts';
import { codeOf, isFull, type SpoolFs, systemFs } from './spool-fs.ts';
import { SpoolHome } from './spool-home.ts';
import { spoolNotice } from './spool-notice.ts';
import { deleteLeftover, findLeftovers, type Leftover } from './spool-others.ts';
import { HEARTBEAT_MS } from './spool-owner.ts';
import type { RunName, SpooledRecord } from './spool-record.ts';
import { type ReadSegment, SpoolReplay } from './spool-replay.ts';
import { type Segment, SpoolStock, StoredSegment } from './spool-stock.ts';
import { SpoolWriter } from './spool-writer.ts';

export type { SpooledRecord } from './spool-record.ts';
export type { ReadSegment } from './spool-replay.ts';
export type { Segment } from './spool-stock.ts';

/** After a failure of the disk. */
const RETRY_MS = 60_000;

/**
 * Maps each spool folder to the spool that scans it for other destinations. One per process is enough, because a scan
 * covers all destinations.
 */
const caretakers = new Map<string, Spool>();

export interface SpoolOptions extends Destination {
  readonly spoolDir: string;
  /** Hash of the destination whose folder is used, if it is not the folder of this destination. */
  readonly spoolDestination?: string | undefined;
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

/**
 * Records on disk, in files that are appended to, handed out whole, and deleted whole; the folder is the only truth. What
 * the disk refuses is told once and kept from the caller: nothing here throws. Nothing is flushed to the device, so what
 * the operating system held at a loss of power is lost.
 */
export class Spool {
  readonly #endpoint: URL;
  readonly #bytesMax: number;
  readonly #ageMaxMs: number;
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  readonly #home: SpoolHome;
  readonly #stock: SpoolStock;
  readonly #writer: SpoolWriter;
  readonly #replay: SpoolReplay;
  #state: 'open' | 'closed' = 'open';
  #writesFromMs = Number.NEGATIVE_INFINITY;
  /** When the last segment was spilled; the clock may go back, the order may not. */
  #spilledAtMs = 0;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: SpoolOptions) {
    const { fs = systemFs, wallMs = wallNowMs, monotonicMs = monotonicNowMs, bytesMax, ageMaxMs } = options;
    this.#endpoint = options.endpoint;
    this.#bytesMax = bytesMax;
    this.#ageMaxMs = ageMaxMs;
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    const destination = options.spoolDestination ?? destinationHash(options);
    this.#home = new SpoolHome(fs, resolve(options.spoolDir), [FORMAT_FOLDER, destination], wallMs);
    this.#stock = new SpoolStock(fs);
    this.#writer = new SpoolWriter(this.#home, this.#stock, (bytes) => this.#hasRoom(bytes));
    this.#replay = new SpoolReplay(this.#home, this.#stock, { ageMaxMs, wallMs, monotonicMs });
  }

  /** Bytes on disk of this owner. */
  get bytes(): number {
    return this.#stock.bytes;
  }

  /** Whether nothing waits, now or until a disk that failed is tried again. */
  get isDrained(): boolean {
    return this.#replay.isDrained;
  }

  /** Whether `next` has something to read at this moment. */
  get hasNext(): boolean {
    return this.#state === 'open' && this.#replay.hasNext;
  }

  /**
   * Writes a record ahead of its delivery; it outlives the process as soon as this returns. Undefined when the disk refuses
   * or the spool is full.
   */
  append(record: SpooledRecord): Segment | undefined {
    return this.#written(() => this.#writer.append(record));
  }

  /** One appended record fewer that has to be kept; a segment with none left is deleted. */
  release(segment: Segment): void {
    if (!this.#stock.has(segment)) return;
    this.#writer.release(segment);
    if (this.#state === 'closed') this.#home.leave();
  }

  /**
   * Writes records that are let go of, to be handed out again by `next`: all of them, in a segment of their own, or none.
   * Undefined as for `append`, and for more than 128 MiB.
   */
  spill(records: readonly SpooledRecord[]): Segment | undefined {
    const segment = records.length === 0 ? undefined : this.#written(() => this.#writer.spill(records));
    if (segment === undefined) return undefined;
    this.#spilledAtMs = Math.max(this.#spilledAtMs, this.#wallMs());
    segment.writtenAtMs = this.#spilledAtMs;
    this.#replay.add([segment]);
    return segment;
  }

  /**
   * Writes records that the next process is to hand out, in the same way; false when it could not. Tried also soon after the
   * disk has failed, since this process has no later time to.
   */
  keep(records: readonly SpooledRecord[]): boolean {
    this.#writesFromMs = Number.NEGATIVE_INFINITY;
    return this.#written(() => this.#writer.spill(records)) !== undefined;
  }

  /** Claims what owners have left that are dead; says how many segments that were. */
  takeOver(): number {
    if (this.#state === 'closed') return 0;
    const claimed: StoredSegment[] = [];
    try {
      const { fs, spoolDir, destination, destinationPath, name, facts } = this.#home;
      checkPrivateFolders(fs, spoolDir, destination);
      for (const owner of deadOwners(fs, destinationPath, facts, name, this.#wallMs())) {
        if (removeEmptied(fs, owner)) continue;
        // There may have been no need of the folder for long, and somebody may have deleted it.
        this.#home.giveSign();
        claimed.push(...this.#claim(owner));
      }
    } catch (thrown) {
      // As a rule nothing was ever written for this destination.
      if (codeOf(thrown) !== 'ENOENT') this.#degrade(thrown);
    }
    if (claimed.length > 0) this.#replay.add(claimed);
    this.#watch();
    return claimed.length;
  }

  /**
   * Finds runs that were left waiting for other destinations and that no running process is delivering. Deletes files
   * that are too old, one per step, and yields their runs. Reports the remaining destinations once.
   */
  *expireOthers(): Generator<readonly RunName[]> {
    const { fs, spoolDir } = this.#home;
    if (this.#state === 'closed' || (caretakers.get(spoolDir) ?? this) !== this) return;
    caretakers.set(spoolDir, this);
    const wallMs = this.#wallMs();
    let leftovers: readonly Leftover[] = [];
    try {
      leftovers = findLeftovers(this.#home, wallMs);
    } catch {
      // Usually the folder does not exist. After any other error, the next scan tries again.
    }
    const isExpired = ({ writtenAtMs }: Leftover): boolean => wallMs - writtenAtMs > this.#ageMaxMs;
    const waiting = leftovers.filter((leftover) => !isExpired(leftover));
    if (waiting.length > 0) spoolNotice.others(this.#home, this.#endpoint, waiting);
    for (const leftover of leftovers.filter(isExpired)) yield* deleteLeftover(fs, leftover);
  }

  /**
   * Returns the oldest waiting segment, spilled by this process or claimed from another. Each segment is returned once. An
   * unreadable segment is returned without records.
   */
  next(): ReadSegment | undefined {
    return this.#state === 'open' ? this.#replay.next() : undefined;
  }

  /** Everything in it is delivered or given up: it is deleted, or set aside when it was damaged. */
  done(segment: Segment): void {
    if (!this.#stock.has(segment)) return;
    this.#replay.done(segment);
    if (this.#state === 'closed') this.#home.leave();
  }

  /** Leaves the folder to whoever comes next, and takes it away when it is empty. Nothing is written or read any more. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    if (caretakers.get(this.#home.spoolDir) === this) caretakers.delete(this.#home.spoolDir);
    clearTimer(this.#heartbeat);
    this.#heartbeat = undefined;
    this.#writer.seal();
    this.#stock.deleteDoomed();
    this.#home.leave();
  }

  #claim(owner: string): StoredSegment[] {
    const { fs, path } = this.#home;
    let from = owner;
    try {
      this.#home.make();
    } catch (thrown) {
      if (!isFull(thrown)) throw thrown;
      from = this.#home.adopt(owner);
    }
    return claimAll(fs, from, path).map(({ path, sequence, bytes, modifiedAtMs }) => {
      const segment = new StoredSegment(path, sequence, true);
      segment.bytes = bytes;
      segment.writtenAtMs = modifiedAtMs;
      this.#stock.add(segment);
      return segment;
    });
  }

  #hasRoom(bytes: number): boolean {
    if (this.#stock.bytes + bytes <= this.#bytesMax) return true;
    spoolNotice.full(this.#home, this.#bytesMax);
    return false;
  }

  #written(write: () => StoredSegment | undefined): StoredSegment | undefined {
    if (this.#state === 'closed' || this.#monotonicMs() < this.#writesFromMs) return undefined;
    try {
      return write();
    } catch (thrown) {
      this.#degrade(thrown);
      return undefined;
    } finally {
      this.#watch();
    }
  }

  #degrade(thrown: unknown): void {
    this.#writesFromMs = this.#monotonicMs() + RETRY_MS;
    spoolNotice.notWritten(this.#home, thrown);
  }

  /** Gives signs of life while there is something that nobody else may take. */
  #watch(): void {
    if (this.#heartbeat !== undefined || this.#state === 'closed' || this.#stock.isEmpty) return;
    this.#heartbeat = setTimer(() => this.#beat(), HEARTBEAT_MS).unref();
  }

  #beat(): void {
    this.#heartbeat = undefined;
    this.#stock.deleteDoomed();
    if (!this.#home.giveSign()) this.#writer.seal();
    this.#watch();
  }
}
