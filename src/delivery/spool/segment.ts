import { ATTACHMENTS_MAX, type HeldAttachment, isAttachmentName, isMimeType } from '../../payload/attachment.ts';
import { isBlob } from '../../payload/describe.ts';
import { nodeModule } from '../../platform/node.ts';
import { type EncodedRun, mainJson, parseMainJson } from '../../run/encoded-run.ts';
import { readWhole, type SpoolFs } from './fs.ts';

/** A complete run, the start of a run or the end of a run, as stored on disk. Secrets are already masked. */
export interface SpooledRecord {
  readonly op: 'post' | 'patch';
  readonly isEnded: boolean;
  readonly run: EncodedRun;
}

/** Identifies a dropped run. Fields that cannot be read are empty. */
export type RunName = Readonly<Pick<EncodedRun, 'id' | 'traceId' | 'name'>>;

export interface SegmentRecords {
  readonly records: readonly SpooledRecord[];
  readonly damagedRuns: readonly RunName[];
  readonly isLaterVersion: boolean;
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

/**
 * Reads a segment file. Returns `undefined` if the path is not a regular file or the file exceeds `SEGMENT_BYTES_MAX`.
 */
export function readSegment(fs: SpoolFs, path: string): SegmentRecords | undefined {
  const content = readWhole(fs, path, SEGMENT_BYTES_MAX);
  if (content === undefined) return undefined;
  const { bytes, modifiedAtMs } = content;
  const { records, lostIds, isLaterVersion } = readFrames(bytes);
  const damagedRuns = lostIds.map((id) => ({ id, traceId: '', name: '' }));
  return { records, damagedRuns, isLaterVersion, bytes: bytes.length, modifiedAtMs };
}

/** Encodes records for a segment file in a reused buffer. */
export class FrameBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The encoded records. Valid only until the next call of `add` or `clear`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Adds a record. Returns `false` if the record cannot be encoded or exceeds 64 MiB. */
  add(record: SpooledRecord, ordinal: number): boolean {
    try {
      return this.#addFrame(record.run.id, ordinal, encodeRecord(record));
    } catch {
      return false;
    }
  }

  #addFrame(id: string, ordinal: number, sections: readonly (string | Uint8Array)[]): boolean {
    const start = this.#length;
    this.#reserve(HEAD_BYTES);
    this.#length += HEAD_BYTES;
    for (const section of sections) this.#addSection(section);
    const payloadAt = start + HEAD_BYTES;
    const length = this.#length - payloadAt;
    if (length > PAYLOAD_BYTES_MAX) return false;
    const head = this.#bytes.subarray(start, payloadAt);
    MAGIC.copy(head);
    head.writeUInt32BE(VERSION << 24, VERSION_AT);
    head.writeUInt32BE(ordinal, ORDINAL_AT);
    head.writeUInt32BE(length, LENGTH_AT);
    head.write(id, ID_AT, PAYLOAD_CRC_AT - ID_AT, 'latin1');
    head.writeUInt32BE(crc32(this.#bytes.subarray(payloadAt, this.#length)), PAYLOAD_CRC_AT);
    head.writeUInt32BE(crc32(head.subarray(0, HEAD_CRC_AT)), HEAD_CRC_AT);
    return true;
  }

  clear(): void {
    this.#length = 0;
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.alloc(0);
  }

  #addSection(section: string | Uint8Array): void {
    const length = Buffer.byteLength(section);
    this.#reserve(LENGTH_BYTES + length);
    const at = this.#bytes.writeUInt32BE(length, this.#length);
    if (typeof section !== 'string') this.#bytes.set(section, at);
    // ASCII text is written as Latin-1, which is faster and produces the same bytes.
    else this.#bytes.write(section, at, length === section.length ? 'latin1' : 'utf8');
    this.#length = at + length;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length, INITIAL_BYTES));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

const INITIAL_BYTES = 64 * 1024;
const KEPT_BYTES_MAX = 2 * 1024 * 1024;

/**
 * Format of a segment file. The file is a sequence of frames with one record each. Numbers are big-endian:
 *
 *     magic 4 | version 1 | zero 3 | ordinal 4 | payload length 4 | run id 36 | payload crc32 4 | head crc32 4 | payload …
 *
 * The head has its own checksum. If only the payload is damaged, the run id and the next frame can still be read. If
 * the head is damaged, no further record is decoded. The rest of the file is only searched for intact heads, which show
 * how many records are lost. Later versions must keep this head, so that version 2 can tell later files from damaged
 * files.
 *
 * In version 1, the head has 16 bytes: magic 4 | version 1 | zero 3 | payload length 4 | crc32 4. The checksum covers
 * the first 12 bytes and the payload.
 */
const MAGIC: Buffer = Buffer.from([0xff, 0x52, 0x53, 0x50]);

const VERSION = 2;

const VERSION_AT = 4;
const ORDINAL_AT = 8;
const LENGTH_AT = 12;
const ID_AT = 16;
const PAYLOAD_CRC_AT = 52;
const HEAD_CRC_AT = 56;
const HEAD_BYTES = 60;

/** Size of a section's length field. A payload consists of sections, and each section starts with its length. */
const LENGTH_BYTES = 4;

const PAYLOAD_BYTES_MAX: number = 64 * 1024 * 1024;

/** Maximum size of a segment file, in bytes. Larger files are not read. */
export const SEGMENT_BYTES_MAX: number = 2 * PAYLOAD_BYTES_MAX;

interface SegmentContent {
  readonly records: readonly SpooledRecord[];
  /** Run ids of the lost records. An unreadable id is an empty string. */
  readonly lostIds: readonly string[];
  /** Whether a later version of runspan wrote the file. Files from later versions must not be changed. */
  readonly isLaterVersion: boolean;
}

/** Reads all records in a file. Never throws, even if the file is damaged. */
function readFrames(file: Buffer): SegmentContent {
  if (file[VERSION_AT] === 1 && hasMagic(file, 0)) return readVersion1(file);
  const records: SpooledRecord[] = [];
  const lostIds: string[] = [];
  let at = 0;
  for (let ordinal = 0; at < file.length; ordinal++) {
    const head = headAt(file, at);
    if (head === undefined) {
      lostIds.push(...lostIn(file.subarray(at), ordinal));
      break;
    }
    if (head.version !== VERSION) return { records: [], lostIds: [], isLaterVersion: true };
    const payload = file.subarray(at + HEAD_BYTES, at + HEAD_BYTES + head.length);
    const record = crc32(payload) === head.payloadCrc ? decodeRecord(payload) : undefined;
    if (record === undefined) lostIds.push(head.id);
    else records.push(record);
    at += HEAD_BYTES + head.length;
  }
  return { records, lostIds, isLaterVersion: false };
}

interface Head {
  readonly version: number;
  readonly ordinal: number;
  readonly length: number;
  readonly id: string;
  readonly payloadCrc: number;
}

function headAt(file: Buffer, at: number): Head | undefined {
  if (file.length - at < HEAD_BYTES || !hasMagic(file, at)) return undefined;
  const head = file.subarray(at, at + HEAD_BYTES);
  if (crc32(head.subarray(0, HEAD_CRC_AT)) !== head.readUInt32BE(HEAD_CRC_AT)) return undefined;
  return {
    version: head[VERSION_AT] as number,
    ordinal: head.readUInt32BE(ORDINAL_AT),
    length: head.readUInt32BE(LENGTH_AT),
    id: head.toString('latin1', ID_AT, PAYLOAD_CRC_AT),
    payloadCrc: head.readUInt32BE(PAYLOAD_CRC_AT),
  };
}

/**
 * Returns the run ids of the records in the damaged rest of a file. `ordinal` is the position of the first lost record.
 * Later records are counted but not read, because a payload may contain bytes that look like a record.
 */
function lostIn(rest: Buffer, ordinal: number): string[] {
  const ids: string[] = [];
  for (let at = rest.indexOf(MAGIC); at !== -1; at = rest.indexOf(MAGIC, at + 1)) {
    const head = headAt(rest, at);
    const index = head === undefined ? -1 : head.ordinal - ordinal;
    // Each record has at least `HEAD_BYTES` bytes, so a head with a higher index is part of a payload.
    if (head === undefined || index < ids.length || index > at / HEAD_BYTES) continue;
    while (ids.length < index) ids.push('');
    ids.push(head.id);
  }
  // Zeros at the end of a file, for example after a power failure, do not count as a lost record. If no record was
  // readable, at least one record counts as lost.
  const isPadding = ordinal > 0 && rest.every((byte) => byte === 0);
  return ids.length > 0 || isPadding ? ids : [''];
}

function readVersion1(file: Buffer): SegmentContent {
  const records: SpooledRecord[] = [];
  const lostIds: string[] = [];
  let at = 0;
  while (file.length - at >= 16 && hasMagic(file, at)) {
    const payload = file.subarray(at + 16, at + 16 + file.readUInt32BE(at + 8));
    if (crc32(payload, crc32(file.subarray(at, at + 12))) !== file.readUInt32BE(at + 12)) break;
    const record = decodeRecord(payload);
    if (record === undefined) lostIds.push('');
    else records.push(record);
    at += 16 + payload.length;
  }
  if (at < file.length) lostIds.push(...lostIn(file.subarray(at), records.length + lostIds.length));
  return { records, lostIds, isLaterVersion: false };
}

function crc32(bytes: Uint8Array, initial = 0): number {
  return nodeModule('node:zlib').crc32(bytes, initial);
}

function hasMagic(file: Buffer, at: number): boolean {
  return MAGIC.compare(file, at, at + MAGIC.length) === 0;
}

function sectionsOf(payload: Buffer): Uint8Array[] {
  const sections: Uint8Array[] = [];
  let at = 0;
  while (at < payload.length) {
    const length = payload.readUInt32BE(at);
    at += LENGTH_BYTES;
    if (length > payload.length - at) throw new RangeError('invalid length');
    sections.push(payload.subarray(at, at + length));
    at += length;
  }
  return sections;
}

/**
 * Encodes a record as a list of sections:
 *
 *     {"op":"post","isEnded":true} | main part | inputs | outputs | events | (name | type | bytes) of each attachment
 *
 * The main part has the same JSON format as in multipart requests. Missing inputs, outputs or events are empty
 * sections. Blobs are omitted, because they cannot be read synchronously. The metadata field `dropped_attachments`
 * counts omitted attachments.
 */
function encodeRecord({ op, isEnded, run }: SpooledRecord): (string | Uint8Array)[] {
  const stored = withoutBlobs(run);
  const sections: (string | Uint8Array)[] = [
    JSON.stringify({ op, isEnded }),
    mainJson(stored, isEnded),
    stored.inputs ?? '',
    (isEnded ? stored.outputs : undefined) ?? '',
    (isEnded ? stored.events : undefined) ?? '',
  ];
  for (const { name, mimeType, bytes } of stored.attachments ?? []) {
    sections.push(name, mimeType, bytes as Uint8Array);
  }
  return sections;
}

function decodeRecord(payload: Buffer): SpooledRecord | undefined {
  try {
    const sections = sectionsOf(payload);
    const [header = '', main = '', ...payloads] = sections.slice(0, 5).map((section) => utf8.decode(section));
    const { op, isEnded } = JSON.parse(header) as Partial<SpooledRecord>;
    const run = parseMainJson(main);
    if ((op !== 'post' && op !== 'patch') || typeof isEnded !== 'boolean' || run === undefined) return undefined;
    const attachments = attachmentsOf(sections.slice(5));
    run.inputs = payloadOf(payloads[0], '{');
    run.outputs = payloadOf(payloads[1], '{');
    run.events = payloadOf(payloads[2], '[');
    run.attachments = attachments.length === 0 ? undefined : attachments;
    return { op, isEnded, run };
  } catch {
    return undefined;
  }
}

function withoutBlobs(run: EncodedRun): EncodedRun {
  const attachments = run.attachments?.filter(({ bytes }) => !isBlob(bytes)) ?? [];
  const dropped = (run.attachments?.length ?? 0) - attachments.length;
  if (dropped === 0) return run;
  const total = dropped + Number(run.metadata?.get('dropped_attachments') ?? 0);
  return { ...run, attachments, metadata: new Map(run.metadata).set('dropped_attachments', String(total)) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function attachmentsOf(sections: readonly Uint8Array[]): HeldAttachment[] {
  if (sections.length > 3 * ATTACHMENTS_MAX) throw new TypeError('too many attachments');
  const attachments: HeldAttachment[] = [];
  for (let at = 0; at < sections.length; at += 3) {
    const [name, mimeType] = [utf8.decode(sections[at]), utf8.decode(sections[at + 1])];
    // Copies the bytes, because a view would keep the whole file in memory.
    const bytes = Uint8Array.from(sections[at + 2] as Uint8Array);
    attachments.push({ name: checked(name, isAttachmentName), mimeType: checked(mimeType, isMimeType), bytes });
  }
  return attachments;
}

/** Checks only the first character. The checksum already proves that the JSON text is unchanged. */
function payloadOf(payload: string | undefined, opening: '{' | '['): string | undefined {
  if (payload === undefined || payload === '') return undefined;
  return checked(payload, (text) => text.startsWith(opening));
}

function checked(text: string, isValid: (text: string) => boolean): string {
  if (!isValid(text)) throw new TypeError('invalid value');
  return text;
}
