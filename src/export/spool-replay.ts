import { setAside } from './spool-bad.ts';
import { codeOf, readWhole } from './spool-fs.ts';
import type { SpoolHome } from './spool-home.ts';
import { spoolNotice } from './spool-notice.ts';
import { decodeRecord, type RunName, type SpooledRecord, salvageRecord } from './spool-record.ts';
import { type Scan, SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';
import type { Segment, SpoolStock, StoredSegment } from './spool-stock.ts';

/** After a failure of the disk. */
const RETRY_MS = 60_000;

/** What a segment holds. */
export interface ReadSegment {
  readonly segment: Segment;
  readonly records: readonly SpooledRecord[];
  /** Whose records were damaged; one without a name stands for one or more of which nothing can be read. */
  readonly damagedRuns: readonly RunName[];
  /** Written longer ago than the age limit allows. */
  readonly isExpired: boolean;
}

export interface ReplayOptions {
  readonly ageMaxMs: number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

/** Queues segments for delivery, oldest first. A segment stays on disk until its runs are delivered or given up. */
export class SpoolReplay {
  readonly #home: SpoolHome;
  readonly #stock: SpoolStock;
  readonly #options: ReplayOptions;
  #waiting = new Set<StoredSegment>();
  /** The last that was added in order. */
  #youngest: StoredSegment | undefined;
  #readsFromMs = Number.NEGATIVE_INFINITY;

  constructor(home: SpoolHome, stock: SpoolStock, options: ReplayOptions) {
    this.#home = home;
    this.#stock = stock;
    this.#options = options;
  }

  get isDrained(): boolean {
    return this.#waiting.size === 0;
  }

  get hasNext(): boolean {
    return !this.isDrained && this.#options.monotonicMs() >= this.#readsFromMs;
  }

  /** Lets segments wait, each in its place by the time when it was written. */
  add(segments: readonly StoredSegment[]): void {
    let isInOrder = true;
    for (const segment of segments) {
      this.#waiting.add(segment);
      if (this.#youngest !== undefined && byAge(segment, this.#youngest) < 0) isInOrder = false;
      else this.#youngest = segment;
    }
    // What is spilled is the youngest; there may be thousands before it.
    if (!isInOrder) this.#waiting = new Set([...this.#waiting].sort(byAge));
  }

  /** Never throws: what cannot be read is handed out without records, or tried again later. */
  next(): ReadSegment | undefined {
    while (this.hasNext) {
      const segment = this.#waiting.values().next().value as StoredSegment;
      this.#waiting.delete(segment);
      try {
        const read = this.#read(segment);
        if (read !== undefined) return read;
      } catch (thrown) {
        if (codeOf(thrown) !== 'ENOENT') {
          this.add([segment]);
          this.#readsFromMs = this.#options.monotonicMs() + RETRY_MS;
          spoolNotice.notRead(this.#home, thrown);
          continue;
        }
        this.#stock.forget(segment);
      }
      // Whoever has spilled it counts on it; of what others have left behind nobody knows.
      if (!segment.isForeign) return unreadable(segment);
    }
    return undefined;
  }

  done(segment: StoredSegment): void {
    this.#waiting.delete(segment);
    if (!segment.isDamaged || !this.#setAside(segment)) this.#stock.delete(segment);
  }

  /** Undefined when there is nothing to hand out; throws what the file system throws. */
  #read(segment: StoredSegment): ReadSegment | undefined {
    const content = readWhole(this.#home.fs, segment.path, SEGMENT_BYTES_MAX);
    const { payloads, damaged, isUnknownVersion } = content === undefined ? NOT_OURS : scan(content.bytes);
    if (isUnknownVersion) {
      spoolNotice.later(segment);
      this.#stock.forget(segment);
      return undefined;
    }
    const records: SpooledRecord[] = [];
    const damagedRuns = damaged.map(salvageRecord);
    for (const payload of payloads) {
      const record = decodeRecord(payload);
      if (record !== undefined) records.push(record);
      else damagedRuns.push(salvageRecord(payload));
    }
    if (damagedRuns.length > 0) {
      segment.isDamaged = true;
      spoolNotice.damaged(segment);
    } else if (records.length === 0) {
      this.done(segment);
      return undefined;
    }
    const { wallMs, ageMaxMs } = this.#options;
    return { segment, records, damagedRuns, isExpired: wallMs() - (content?.modifiedAtMs ?? 0) > ageMaxMs };
  }

  #setAside(segment: StoredSegment): boolean {
    const { fs, spoolDir, destination } = this.#home;
    try {
      setAside(fs, segment.path, spoolDir, destination);
    } catch (thrown) {
      spoolNotice.notWritten(this.#home, thrown);
      return false;
    }
    this.#stock.forget(segment);
    return true;
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** What was not written by us: a link, or a file that is too large. */
const NOT_OURS: Scan = { payloads: [], damaged: [NOTHING], isUnknownVersion: false };

function unreadable(segment: Segment): ReadSegment {
  return { segment, records: [], damagedRuns: [salvageRecord(NOTHING)], isExpired: false };
}

/** Those of one writer within a millisecond stand in the order of their names. */
function byAge(one: StoredSegment, other: StoredSegment): number {
  return one.writtenAtMs - other.writtenAtMs || one.sequence - other.sequence;
}
