import { ignoreErrors } from '../../base/guard.ts';
import { ATTACHMENTS_MAX, isAttachmentName, isMimeType, type WaitingAttachment } from '../../payload/attachment.ts';
import { isBlob } from '../../payload/describe.ts';
import { nodeModule } from '../../platform/node.ts';
import { type EncodedRun, mainJson, parseMainJson } from '../../run/encoded-run.ts';
import { segmentToken } from './directory.ts';
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
  /** The runs of the lost records. An unreadable id is an empty string. */
  readonly damagedRuns: readonly RunName[];
  /** Whether a later version of runspan wrote the file. Files from later versions must not be changed. */
  readonly isLaterVersion: boolean;
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

/** Reads a segment file. Returns `undefined` for a path that is no regular file, and above `SEGMENT_BYTES_MAX`. */
export function readSegment(fs: SpoolFs, path: string): SegmentRecords | undefined {
  const file = readWhole(fs, path, SEGMENT_BYTES_MAX);
  if (file === undefined) return undefined;
  const { bytes, facts } = file;
  const content = readFrames(bytes, segmentToken(path));
  return { ...content, bytes: bytes.length, modifiedAtMs: facts.mtimeMs };
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
  add(record: SpooledRecord, place: FramePlace): boolean {
    return ignoreErrors(() => this.#addFrame(record.run.id, place, encodeRecord(record))) ?? false;
  }

  #addFrame(id: string, place: FramePlace, sections: readonly (string | Uint8Array)[]): boolean {
    const start = this.#length;
    const payloadAt = start + HEAD_BYTES;
    this.#reserve(HEAD_BYTES);
    this.#length = payloadAt;
    for (const section of sections) this.#addSection(section);
    const length = this.#length - payloadAt;
    if (length > PAYLOAD_BYTES_MAX) return false;
    const head = this.#bytes.subarray(start, payloadAt);
    place.token.copy(head);
    head.writeUInt32BE(VERSION << 24, VERSION_AT);
    head.writeUInt32BE(place.fileBytes + start, OFFSET_AT);
    head.writeUInt32BE(place.ordinal, ORDINAL_AT);
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

/** The place of a record in its segment file. */
export interface FramePlace {
  readonly token: Buffer;
  /** Number of records before this record. */
  readonly ordinal: number;
  /** Size of the file to which the buffer will be appended. */
  readonly fileBytes: number;
}

/**
 * Format of a segment file. The file is a sequence of frames with one record each. Numbers are big-endian:
 *
 *     token 8 | version 1 | zero 3 | offset 4 | ordinal 4 | payload length 4 | run id 36 | payload crc32 4 | head crc32 4
 *     payload …
 *
 * The token is random and part of the file's name, so damage to the file cannot change it. The offset is the position
 * of the frame in the file. A frame starts where both are right. An attachment cannot imitate a frame: its author does
 * not know the token, and in a copy of the file the offsets are wrong.
 *
 * - If one bit of a head is flipped, it is flipped back.
 * - If a head is damaged further, reading continues at the next frame. The ordinal of the next intact head shows how many
 *   records are lost.
 * - If only a payload is damaged, the head contains the id of the lost run.
 *
 * Later versions must keep the layout of the head. Version 1 then reports their files instead of treating them as damaged.
 */
const VERSION = 1;

const VERSION_AT = 8;
const OFFSET_AT = 12;
const ORDINAL_AT = 16;
const LENGTH_AT = 20;
const ID_AT = 24;
const PAYLOAD_CRC_AT = 60;
const HEAD_CRC_AT = 64;
const HEAD_BYTES = 68;

/** Size of a section's length field. A payload consists of sections, and each section starts with its length. */
const LENGTH_BYTES = 4;

const PAYLOAD_BYTES_MAX: number = 64 * 1024 * 1024;

/** Maximum size of a segment file, in bytes. Larger files are not read. */
export const SEGMENT_BYTES_MAX: number = 2 * PAYLOAD_BYTES_MAX;

/** Reads all intact records in a file. Never throws, even if the file is damaged. */
function readFrames(file: Buffer, token: Buffer): Omit<SegmentRecords, 'bytes' | 'modifiedAtMs'> {
  const records: SpooledRecord[] = [];
  const damagedRuns: RunName[] = [];
  const lose = (id: string): number => damagedRuns.push({ id, traceId: '', name: '' });
  for (let at = 0; at < file.length; ) {
    const head = headAt(file, at, token);
    if (head === undefined) {
      const next = nextFrame(file, at + 1, token);
      // Zeros at the end of a file, for example after a power failure, do not count as a lost record.
      if (at === 0 || next < file.length || file.subarray(at).some((byte) => byte !== 0)) lose('');
      at = next;
      continue;
    }
    if (head.version !== VERSION) return { records: [], damagedRuns: [], isLaterVersion: true };
    while (records.length + damagedRuns.length < head.ordinal) lose('');
    const payload = file.subarray(at + HEAD_BYTES, head.end);
    const record = crc32(payload) === head.payloadCrc ? ignoreErrors(() => decodeRecord(payload)) : undefined;
    if (record === undefined) lose(head.id);
    else records.push(record);
    at = head.end;
  }
  return { records, damagedRuns, isLaterVersion: false };
}

/** Reads the head of a frame. Returns `undefined` if no frame starts at `at`, or if the head is damaged beyond repair. */
function headAt(file: Buffer, at: number, token: Buffer) {
  const head = Buffer.from(file.subarray(at, at + HEAD_BYTES));
  if (head.length < HEAD_BYTES || !repair(head) || !isFrame(head, at, token)) return undefined;
  return {
    version: head[VERSION_AT] as number,
    // Each earlier frame has at least `HEAD_BYTES` bytes.
    ordinal: Math.min(head.readUInt32BE(ORDINAL_AT), at / HEAD_BYTES),
    id: head.toString('latin1', ID_AT, PAYLOAD_CRC_AT),
    payloadCrc: head.readUInt32BE(PAYLOAD_CRC_AT),
    end: at + HEAD_BYTES + head.readUInt32BE(LENGTH_AT),
  };
}

/**
 * Flips back a flipped bit: with it, the checksum matches. Heads with valid checksums differ in at least five bits, so a
 * wrong bit can be flipped only in a head with four or more flipped bits.
 */
function repair(head: Buffer): boolean {
  const isIntact = (): boolean => crc32(head.subarray(0, HEAD_CRC_AT)) === head.readUInt32BE(HEAD_CRC_AT);
  const flip = (bit: number): number => head.writeUInt8(head.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  if (isIntact()) return true;
  for (let bit = 0; bit < 8 * HEAD_BYTES; bit++) {
    flip(bit);
    if (isIntact()) return true;
    flip(bit);
  }
  return false;
}

function isFrame(frame: Buffer, at: number, token: Buffer): boolean {
  return token.equals(frame.subarray(0, token.length)) && frame.readUInt32BE(OFFSET_AT) === at;
}

/** Returns the start of the next frame, or the end of the file. */
function nextFrame(file: Buffer, from: number, token: Buffer): number {
  for (let at = file.indexOf(token, from); at !== -1; at = file.indexOf(token, at + 1)) {
    if (file.length >= at + ORDINAL_AT && isFrame(file.subarray(at), at, token)) return at;
  }
  return file.length;
}

function crc32(bytes: Uint8Array): number {
  return nodeModule('node:zlib').crc32(bytes);
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
    JSON.stringify({ op, isEnded, ...(run.isIdGiven && { isIdGiven: true }) }),
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
  const sections = sectionsOf(payload);
  const [header = '', main = '', ...payloads] = sections.slice(0, 5).map((section) => utf8.decode(section));
  const { op, isEnded, isIdGiven } = JSON.parse(header) as Partial<SpooledRecord & EncodedRun>;
  const run = parseMainJson(main);
  if ((op !== 'post' && op !== 'patch') || typeof isEnded !== 'boolean' || run === undefined) return undefined;
  const attachments = attachmentsOf(sections.slice(5));
  run.isIdGiven = isIdGiven === true;
  run.inputs = payloadOf(payloads[0], '{');
  run.outputs = payloadOf(payloads[1], '{');
  run.events = payloadOf(payloads[2], '[');
  run.attachments = attachments.length === 0 ? undefined : attachments;
  return { op, isEnded, run };
}

function withoutBlobs(run: EncodedRun): EncodedRun {
  const attachments = run.attachments?.filter(({ bytes }) => !isBlob(bytes)) ?? [];
  const dropped = (run.attachments?.length ?? 0) - attachments.length;
  if (dropped === 0) return run;
  const total = dropped + Number(run.metadata?.get('dropped_attachments') ?? 0);
  return { ...run, attachments, metadata: new Map(run.metadata).set('dropped_attachments', String(total)) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function attachmentsOf(sections: readonly Uint8Array[]): WaitingAttachment[] {
  if (sections.length > 3 * ATTACHMENTS_MAX) throw new TypeError('too many attachments');
  const attachments: WaitingAttachment[] = [];
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
