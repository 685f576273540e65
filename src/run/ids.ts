import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { safeText, shown } from '../base/text.ts';
import { randomBytes, sha1 } from '../platform/crypto.ts';
import { canonicalId } from './time.ts';

/**
 * Returns a new UUIDv7 for a run with this start time. Ids from one process strictly increase unless the clock moves
 * back by more than `BACKWARD_MAX_MS`. The layout is:
 *
 *     tttttttt-tttt-7ccc-8ccc-rrrrrrrrrrrr    t  start, milliseconds     c  counter     r  random bits
 *
 * Every millisecond, the counter restarts at a random value below 2^23.
 */
export function newRunId(startUs: number): string {
  const ms = Math.floor(startUs / 1_000);
  if (ms > counterMs || ms < counterMs - BACKWARD_MAX_MS) {
    counterMs = ms;
    counter = Number.parseInt(randomHex(6), 16) >>> 1;
  } else if (++counter === COUNTER_END) {
    counterMs++;
    counter = 0;
  }
  return runId(counterMs, counter);
}

let givenCounter = 0;

/**
 * Returns a new UUIDv7 for a run with a start time set by the application. Ids with the same start time sort in call
 * order.
 */
export function runIdAt(startUs: number): string {
  givenCounter = (givenCounter + 1) % COUNTER_END;
  return runId(Math.floor(startUs / 1_000), givenCounter);
}

function runId(ms: number, count: number): string {
  return `${timePrefix(ms)}${THREE_HEX[count >>> 12]}-8${THREE_HEX[count & 0xfff]}-${randomHex(12)}`;
}

const BACKWARD_MAX_MS = 5_000;
const COUNTER_END = 2 ** 24;

let counterMs = 0;
let counter = 0;

const THREE_HEX: readonly string[] = Array.from({ length: 4_096 }, (_, n) => n.toString(16).padStart(3, '0'));

/** Random bytes are generated in blocks, because generating them is the slowest part of creating an id. */
const RANDOM_BYTES = 6_144;
let randomText = '';
let randomAt = 0;

export function randomHex(digits: number): string {
  if (randomAt + digits > randomText.length) {
    randomText = randomBytes(RANDOM_BYTES).toString('hex');
    randomAt = 0;
  }
  randomAt += digits;
  return randomText.slice(randomAt - digits, randomAt);
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

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a string is a lower-case UUID with hyphens, the format of run ids in requests. */
export function isRunId(text: string): boolean {
  return UUID.test(text);
}
