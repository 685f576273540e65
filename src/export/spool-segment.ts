import { crc32 } from 'node:zlib';

/**
 * A file of the spool is a row of frames:
 *
 *     magic 4 | version 1 | flags 1 | reserved 2 | length 4 | crc32 4 | payload …
 *
 * Numbers are big-endian; the checksum is over the twelve bytes before it and the payload. The magic holds 0xFF, which
 * JSON text in UTF-8 never does: after a damaged frame reading goes on at the next magic whose checksum holds. Every later
 * version keeps this head, so that an older one can tell a newer file from a damaged one.
 */
const MAGIC: Buffer = Buffer.from([0xff, 0x52, 0x53, 0x50]);

const VERSION = 1;

/** What follows the magic in every frame of this version: no flags, nothing reserved. */
const AFTER_MAGIC: Buffer = Buffer.from([VERSION, 0, 0, 0]);

const VERSION_AT = 4;
const FLAGS_AT = 5;
const LENGTH_AT = 8;
const CHECKSUM_AT = 12;
const HEAD_BYTES = 16;

/** Bytes of one payload. */
export const PAYLOAD_BYTES_MAX: number = 64 * 1024 * 1024;

/** Bytes of one file; what is larger was not written by us. */
export const SEGMENT_BYTES_MAX: number = 2 * PAYLOAD_BYTES_MAX;

/** A payload as it goes to disk; undefined when it is too large. */
export function frame(payload: Uint8Array): Buffer | undefined {
  if (payload.byteLength > PAYLOAD_BYTES_MAX) return undefined;
  const framed = Buffer.allocUnsafe(HEAD_BYTES + payload.byteLength);
  MAGIC.copy(framed);
  framed[VERSION_AT] = VERSION;
  framed[FLAGS_AT] = 0;
  framed.writeUInt16BE(0, 6);
  framed.writeUInt32BE(payload.byteLength, LENGTH_AT);
  framed.set(payload, HEAD_BYTES);
  framed.writeUInt32BE(checksum(framed), CHECKSUM_AT);
  return framed;
}

/** How often a file's length may be summed up in vain, so that one made of heads alone does not hold the process. */
const VAIN_READINGS_MAX = 16;

/** Damaged frames that are told apart in one file; a segment that is ended at 4 MiB holds far fewer. */
const DAMAGED_MAX = 100_000;

/** What a file holds. */
export interface Scan {
  /** Views into the file, in its order. */
  readonly payloads: readonly Uint8Array[];
  /**
   * Views of what is no whole frame: a torn end, flipped bits, zeros. One for each frame of which the head can still be made
   * out, and one at least for each stretch.
   */
  readonly damaged: readonly Uint8Array[];
  /** It was written by a later version, and is to be left as it is. */
  readonly isUnknownVersion: boolean;
}

/** Reads what there is, past whatever is damaged. Never throws. */
export function scan(file: Buffer): Scan {
  const payloads: Uint8Array[] = [];
  const damaged: Uint8Array[] = [];
  let isUnknownVersion = false;
  let isInDamage = false;
  let vainBytesLeft = VAIN_READINGS_MAX * file.length;
  let at = 0;
  while (at < file.length) {
    const framed = frameAt(file, at);
    if (framed === undefined || !isWhole(framed)) {
      vainBytesLeft -= framed?.length ?? 0;
      const next = vainBytesLeft > 0 ? nextHead(file, at) : file.length;
      const isOne = !isInDamage || seemsHead(file, at);
      if (isOne && damaged.length < DAMAGED_MAX) damaged.push(file.subarray(at, next));
      isInDamage = true;
      at = next;
      continue;
    }
    isInDamage = false;
    if (framed[VERSION_AT] !== VERSION || framed[FLAGS_AT] !== 0) isUnknownVersion = true;
    else payloads.push(framed.subarray(HEAD_BYTES));
    at += framed.length;
  }
  // A later version may have another checksum.
  if (payloads.length === 0 && beginsLater(file)) isUnknownVersion = true;
  return { payloads, damaged, isUnknownVersion };
}

/** The frame that seems to begin there. Its length is held against the file before anything is made of it. */
function frameAt(file: Buffer, at: number): Buffer | undefined {
  if (file.length - at < HEAD_BYTES || MAGIC.compare(file, at, at + MAGIC.length) !== 0) return undefined;
  const length = file.readUInt32BE(at + LENGTH_AT);
  if (length > PAYLOAD_BYTES_MAX || length > file.length - at - HEAD_BYTES) return undefined;
  return file.subarray(at, at + HEAD_BYTES + length);
}

/**
 * Where to go on after damage: at the next magic, and before it where the damaged frame ends and another one seems to begin, of
 * which the magic is damaged too. Never beyond the next magic, as the length may be what is damaged.
 */
function nextHead(file: Buffer, at: number): number {
  const magicAt = file.indexOf(MAGIC, at + 1);
  const next = magicAt === -1 ? file.length : magicAt;
  const end = seemsHead(file, at) ? at + HEAD_BYTES + file.readUInt32BE(at + LENGTH_AT) : next;
  return end < next && seemsHead(file, end) ? end : next;
}

/** Whether a damaged frame begins there: of magic, what follows it and a length that is possible, two are there. */
function seemsHead(file: Buffer, at: number): boolean {
  if (file.length - at < HEAD_BYTES) return false;
  const isMagic = MAGIC.compare(file, at, at + VERSION_AT) === 0;
  const isVersion = AFTER_MAGIC.compare(file, at + VERSION_AT, at + LENGTH_AT) === 0;
  const isPossible = file.readUInt32BE(at + LENGTH_AT) <= PAYLOAD_BYTES_MAX;
  return isMagic ? isVersion || isPossible : isVersion && isPossible;
}

function isWhole(framed: Buffer): boolean {
  return framed.readUInt32BE(CHECKSUM_AT) === checksum(framed);
}

function checksum(framed: Buffer): number {
  return crc32(framed.subarray(HEAD_BYTES), crc32(framed.subarray(0, CHECKSUM_AT)));
}

function beginsLater(file: Buffer): boolean {
  return file.length >= HEAD_BYTES && file.indexOf(MAGIC) === 0 && (file[VERSION_AT] as number) > VERSION;
}
