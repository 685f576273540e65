import { join } from 'node:path';
import { SegmentFile } from './spool-file.ts';
import { segmentFile } from './spool-folder.ts';
import { codeOf } from './spool-fs.ts';
import type { SpoolHome } from './spool-home.ts';
import { encodeRecord, type SpooledRecord } from './spool-record.ts';
import { frame, SEGMENT_BYTES_MAX } from './spool-segment.ts';
import { type SpoolStock, StoredSegment } from './spool-stock.ts';

/** Bytes at which a segment that is appended to makes room for the next. */
const SEAL_BYTES = 4 * 1024 * 1024;

/** Bytes that are written at once. */
const CHUNK_BYTES = 1024 * 1024;

/** Writes segments. Every method but `seal` and `release` throws what the file system throws. */
export class SpoolWriter {
  readonly #home: SpoolHome;
  readonly #stock: SpoolStock;
  /** Whether so many bytes more may be written. */
  readonly #hasRoom: (bytes: number) => boolean;
  #sequence = 0;
  #open: { readonly segment: StoredSegment; readonly file: SegmentFile } | undefined;

  constructor(home: SpoolHome, stock: SpoolStock, hasRoom: (bytes: number) => boolean) {
    this.#home = home;
    this.#stock = stock;
    this.#hasRoom = hasRoom;
  }

  /** Undefined when there is no room, or the record cannot be written at all. */
  append(record: SpooledRecord): StoredSegment | undefined {
    const framed = framedOf(record);
    if (framed === undefined || !this.#hasRoom(framed.length)) return undefined;
    this.#checkOpen();
    this.#open ??= this.#create();
    const { segment, file } = this.#open;
    try {
      file.append(framed);
    } catch (thrown) {
      this.seal();
      throw thrown;
    }
    segment.records++;
    this.#stock.grow(segment, framed.length);
    if (file.bytes >= SEAL_BYTES) this.seal();
    return segment;
  }

  /** All of them in a segment of their own, or nothing. */
  spill(records: readonly SpooledRecord[]): StoredSegment | undefined {
    const { segment, file } = this.#create();
    let isWhole = false;
    try {
      try {
        isWhole = this.#writeAll(records, file);
      } finally {
        file.close();
      }
    } catch (thrown) {
      this.#stock.delete(segment);
      throw thrown;
    }
    if (isWhole) this.#stock.grow(segment, file.bytes);
    else this.#stock.delete(segment);
    return isWhole ? segment : undefined;
  }

  /** One record fewer that has to be kept. */
  release(segment: StoredSegment): void {
    if (segment.records === 0 || --segment.records > 0) return;
    if (this.#open?.segment === segment) this.seal();
    else this.#stock.delete(segment);
  }

  /** Ends the segment that is appended to; one without records is deleted. Never throws. */
  seal(): void {
    if (this.#open === undefined) return;
    const { segment, file } = this.#open;
    this.#open = undefined;
    try {
      file.close();
    } catch {
      // The system has had each record since it was appended.
    }
    if (segment.records === 0) this.#stock.delete(segment);
  }

  /** False when there is no room, or one of them cannot be written at all. */
  #writeAll(records: readonly SpooledRecord[], file: SegmentFile): boolean {
    let frames: Buffer[] = [];
    let bytes = 0;
    for (const [index, record] of records.entries()) {
      const framed = framedOf(record);
      if (framed === undefined) return false;
      frames.push(framed);
      bytes += framed.length;
      const total = file.bytes + bytes;
      if (total > SEGMENT_BYTES_MAX || !this.#hasRoom(total)) return false;
      if (bytes < CHUNK_BYTES && index < records.length - 1) continue;
      file.append(frames.length === 1 ? framed : Buffer.concat(frames, bytes));
      frames = [];
      bytes = 0;
    }
    return true;
  }

  /** Goes on in another segment when somebody has deleted this one, or may be taking it over. */
  #checkOpen(): void {
    if (this.#open === undefined) return;
    const { segment, file } = this.#open;
    if (this.#home.isLate) {
      this.seal();
    } else if (file.isLost) {
      this.seal();
      this.#stock.forget(segment);
    }
  }

  /** A new file. A folder that is gone is made again, and a name that is taken is passed over. */
  #create(): { segment: StoredSegment; file: SegmentFile } {
    if (this.#home.isLate) this.#home.giveSign();
    for (let isAgain = false; ; isAgain = true) {
      try {
        this.#home.make();
        const path = join(this.#home.path, segmentFile(++this.#sequence, this.#home.token));
        const segment = new StoredSegment(path, this.#sequence, false);
        const file = new SegmentFile(this.#home.fs, segment.path);
        this.#stock.add(segment);
        return { segment, file };
      } catch (thrown) {
        const code = codeOf(thrown);
        if (isAgain || (code !== 'ENOENT' && code !== 'EEXIST')) throw thrown;
        this.#home.lose();
      }
    }
  }
}

/** Undefined for what cannot be written, on whatever disk. */
function framedOf(record: SpooledRecord): Buffer | undefined {
  try {
    return frame(encodeRecord(record));
  } catch {
    return undefined;
  }
}
