import { V7Generator } from 'uuidv7';
import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { safeText, shown } from '../base/text.ts';
import { fillRandom, sha1 } from '../platform/crypto.ts';
import { canonicalId } from './time.ts';

/**
 * Returns a new UUIDv7 for a run with this start time. Ids from one process strictly increase unless the clock moves
 * back by more than `BACKWARD_MAX_MS`.
 */
export function newRunId(startUs: number): string {
  return uuidText(generator.generateOrResetWithTs(Math.floor(startUs / 1_000)).bytes);
}

const BACKWARD_MAX_MS = 5_000;

const generator = new V7Generator({ nextUint32: randomWord });
generator.setRollbackAllowance(BACKWARD_MAX_MS);

const HEX_DIGITS: Buffer = Buffer.from('0123456789abcdef');
const idText: Buffer = Buffer.from('00000000-0000-0000-0000-000000000000');
/** The position in `idText` of each byte's first digit. */
const DIGIT_AT: readonly number[] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** Formats a UUID. The `toString` of `uuidv7` joins single digits, which takes several times as long. */
function uuidText(bytes: Readonly<Uint8Array>): string {
  for (let at = 0; at < 16; at++) {
    const byte = bytes[at] as number;
    const digitAt = DIGIT_AT[at] as number;
    idText[digitAt] = HEX_DIGITS[byte >>> 4] as number;
    idText[digitAt + 1] = HEX_DIGITS[byte & 15] as number;
  }
  return idText.toString('latin1');
}

let givenCounter = 0;
const GIVEN_COUNTER_END = 2 ** 24;

/**
 * Returns a new UUIDv7 for a run with a start time set by the application. Ids with the same start time sort in call
 * order:
 *
 *     tttttttt-tttt-7ccc-8ccc-rrrrrrrrrrrr    t  start, milliseconds     c  counter     r  random bits
 */
export function runIdAt(startUs: number): string {
  givenCounter = (givenCounter + 1) % GIVEN_COUNTER_END;
  const count = givenCounter.toString(16).padStart(6, '0');
  return `${timePrefix(Math.floor(startUs / 1_000))}${count.slice(0, 3)}-8${count.slice(3)}-${randomHex(12)}`;
}

/** Random numbers are generated in blocks, because generating them is the slowest part of creating an id. */
const randomWords = new Uint32Array(1_536);
let randomAt = randomWords.length;

function randomWord(): number {
  if (randomAt === randomWords.length) {
    fillRandom(randomWords);
    randomAt = 0;
  }
  return randomWords[randomAt++] as number;
}

export function randomHex(digits: number): string {
  let text = '';
  while (text.length < digits) text += randomWord().toString(16).padStart(8, '0');
  return text.slice(0, digits);
}

/**
 * Derives a run id from the start time, trace id and span id of an OpenTelemetry span. A span always gets the same run
 * id, even if it is exported twice. The run id is a UUIDv7 that contains the span id:
 *
 *     tttttttt-tttt-7sss-VXXs-ssssssssssss    t  start, milliseconds     s  span id, 64 bits
 *                                             V  variant and 2 bits, XX 8 bits of the trace id
 */
export function spanRunId(startUs: number, traceId: string, spanId: string): string {
  const variant = VARIANTS[Number.parseInt(traceId.charAt(29), 16) & 3] as string;
  const prefix = timePrefix(Math.floor(startUs / 1_000));
  return `${prefix}${spanId.slice(0, 3)}-${variant}${traceId.slice(30)}${spanId.charAt(3)}-${spanId.slice(4)}`;
}

const VARIANTS = ['8', '9', 'a', 'b'] as const;

let prefixMs = Number.NaN;
let prefix = '';

function timePrefix(ms: number): string {
  if (ms === prefixMs) return prefix;
  const time = ms.toString(16).padStart(12, '0');
  prefixMs = ms;
  prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  return prefix;
}

/** The UUIDv5 namespace for `runIdFrom`: the UUIDv5 of the name `runspan` in the DNS namespace. */
const NAMESPACE: Buffer = Buffer.from('efbbad0ad40851189657a2b2ede2c632', 'hex');

/**
 * Derives a run id from your own id, for example an order id, so that you do not need to store the run id. Pass the
 * result as `id` when you start the run, and again when you send feedback. The same key gives the same id in every
 * process. The id is a UUIDv5 (RFC 9562, section 5.5). If the key is not a string or number, each call returns a new
 * id, and a warning is logged once.
 */
export function runIdFrom(key: string): string {
  if (!isText(key)) {
    diagnostics.warnOnce(
      'runIdFrom',
      `runIdFrom(key): expected \`key\` to be a string, got ${shown(key)}; a random id is returned.`,
    );
    return newRunId(clock.nowUs());
  }
  const hash = sha1(Buffer.concat([NAMESPACE, Buffer.from(safeText(key))]));
  hash[6] = ((hash[6] as number) & 0x0f) | 0x50;
  hash[8] = ((hash[8] as number) & 0x3f) | 0x80;
  return canonicalId(hash.subarray(0, 16).toString('hex'));
}

/** The keys `7` and `'7'` give the same run id. */
function isText(key: unknown): boolean {
  return typeof key === 'string' || typeof key === 'bigint' || (typeof key === 'number' && !Number.isNaN(key));
}

/** Whether a string consists of exactly `digits` lower-case hexadecimal digits. */
export function isHex(text: string, digits: number): boolean {
  if (text.length !== digits) return false;
  for (let at = 0; at < digits; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x66 || (code > 0x39 && code < 0x61)) return false;
  }
  return true;
}

export function hexOf(id: string): string {
  return id.replaceAll('-', '');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a string is a lower-case UUID with hyphens, the format of run ids in requests. */
export function isRunId(text: string): boolean {
  return UUID.test(text);
}

/** Replaces the segments of a URL path that are ids by `:id`, so that the names of runs stay few. */
export function pathPattern(path: string): string {
  const shown = path.split('/').map((segment) => (ID.test(segment) || isToken(segment) ? ':id' : segment));
  return shown.join('/');
}

/** A number, a UUID, a ULID, or at least 16 hexadecimal digits. */
const ID = /^(?:\d+|[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}|[0-7][\da-hjkmnp-tv-z]{25}|(?=.*\d)[\da-f]{16,})$/i;

/** A place where the kind of character changes: lowercase, uppercase or digit. The capital of a word is no change. */
const CHANGE = /(?<=[a-z])[A-Z\d]|(?<=[A-Z])\d|(?<=\d)[A-Za-z]/g;

/** Number of characters per change. Random tokens have fewer. Words have more, also with versions: `gpt-4o-2024-08-06`. */
const CHARACTERS_PER_CHANGE = 4;

function isToken(segment: string): boolean {
  if (!/^(?=.*\d)[\w-]{16,}$/.test(segment)) return false;
  return (segment.match(CHANGE)?.length ?? 0) * CHARACTERS_PER_CHANGE >= segment.length;
}
