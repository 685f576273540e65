import { createHash, randomFillSync } from 'node:crypto';
import { V7Generator } from 'uuidv7';
import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { safeText, shown } from '../base/text.ts';

// The package's own source asks the system for 32 bytes at a time, which costs more than all the rest of an id.
const randomWords = new Uint32Array(2_048);
let usedWords = randomWords.length;
const generator = new V7Generator({
  nextUint32() {
    if (usedWords === randomWords.length) {
      randomFillSync(randomWords);
      usedWords = 0;
    }
    return randomWords[usedWords++] as number;
  },
});

/** A new UUIDv7 for a run that starts at this moment; ids of one process increase strictly. */
export function newRunId(startUs: number): string {
  return hyphenated(generator.generateOrResetWithTs(Math.floor(startUs / 1_000)).bytes);
}

/**
 * The run id of an OpenTelemetry span: a UUIDv7 made of its start and its ids alone, so that exporting the span again,
 * or from another processor, gives the same run. The span id can be read back out of it:
 *
 *     tttttttt-tttt-7sss-VXXs-ssssssssssss    t  start, milliseconds     s  span id, 64 bits
 *                                             V  variant and 2 bits, XX 8 bits of the trace id
 */
export function spanRunId(startUs: number, traceId: string, spanId: string): string {
  const variant = VARIANTS[Number.parseInt(traceId.charAt(29), 16) & 3] as string;
  return `${timePrefix(startUs)}${spanId.slice(0, 3)}-${variant}${traceId.slice(30)}${spanId.charAt(3)}-${spanId.slice(4)}`;
}

const VARIANTS = ['8', '9', 'a', 'b'] as const;

let prefixMs = Number.NaN;
let prefix = '';

/** `tttttttt-tttt-7`, made once for each millisecond. */
function timePrefix(startUs: number): string {
  const ms = Math.floor(startUs / 1_000);
  if (ms === prefixMs) return prefix;
  const time = ms.toString(16).padStart(12, '0');
  prefixMs = ms;
  prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  return prefix;
}

/** The name space of ids made from other ids; it is the UUIDv5 of `runspan` in the name space of domain names. */
const NAMESPACE: Buffer = Buffer.from('efbbad0ad40851189657a2b2ede2c632', 'hex');

/**
 * The run id that always belongs to an id of yours, an order's or a message's for example, so that the run can be found
 * again without keeping its own id: pass it as `id` when the run starts, and again when feedback comes in. A UUIDv5
 * (RFC 9562, 5.5); the same text gives the same id in every process. What is no text, an id that is missing for example,
 * gives a new id each time, since runs of one id would take each other's place, and one line says so.
 */
export function runIdFrom(key: string): string {
  if (!isText(key)) {
    diagnostics.warnOnce(
      'runIdFrom',
      `runIdFrom(key): expected \`key\` to be text, got ${shown(key)}; the run gets a new id, which nobody can find by a key.`,
    );
    return newRunId(clock.nowUs());
  }
  const hash = createHash('sha1').update(NAMESPACE).update(safeText(key)).digest();
  hash[6] = ((hash[6] as number) & 0x0f) | 0x50;
  hash[8] = ((hash[8] as number) & 0x3f) | 0x80;
  return hyphenated(hash);
}

/** A number is taken for its text: that of an order, say, is one in a database and the other in an address. */
function isText(key: unknown): boolean {
  return typeof key === 'string' || typeof key === 'bigint' || (typeof key === 'number' && !Number.isNaN(key));
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text is a UUID in lower case with hyphens, the one spelling that we send. */
export function isRunId(text: string): boolean {
  return UUID.test(text);
}

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

// Twice as fast as the package's own toString; ids are made on the call path.
function hyphenated(b: Readonly<Uint8Array>): string {
  const hex = (at: number): string => HEX[b[at] as number] as string;
  return `${hex(0) + hex(1) + hex(2) + hex(3)}-${hex(4) + hex(5)}-${hex(6) + hex(7)}-${hex(8) + hex(9)}-${
    hex(10) + hex(11) + hex(12) + hex(13) + hex(14) + hex(15)
  }`;
}
