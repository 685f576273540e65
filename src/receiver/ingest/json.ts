import { messageOf } from '../../base/text.ts';
import { Refusal } from '../refusal.ts';

/**
 * How deep JSON may nest. Serializing and copying recurse, and would run out of stack on a body of brackets; our own
 * exporter cuts payloads at 64 levels.
 */
const DEPTH_MAX = 512;
/**
 * Values in the JSON of one request, all parts together. As an object of its own each takes tens of bytes of heap for two
 * of text, so a bound on bytes alone would let a body of brackets unfold to gigabytes.
 */
export const VALUES_MAX = 2_000_000;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Bytes of a text that are looked at one by one for its end, before the engine is asked, for which a call is dear. */
const TEXT_BYTES_LOOKED_AT = 48;

/** JSON as it came, and what it says. */
export interface Json {
  readonly value: unknown;
  readonly text: string;
}

/** Reads all JSON of one request. */
export class JsonReader {
  #valuesLeft = VALUES_MAX;

  /** The value of JSON text in UTF-8. 400 with a sentence that begins with `what`, or 413 for too many values. */
  parse(bytes: Buffer, what: string): unknown {
    return this.read(bytes, what).value;
  }

  /** The same with the text. */
  read(bytes: Buffer, what: string): Json {
    this.#measure(bytes, what);
    try {
      const text = utf8.decode(bytes);
      return { value: JSON.parse(text), text };
    } catch (error) {
      throw new Refusal(400, `${what} is no JSON: ${messageOf(error)}`);
    }
  }

  /**
   * Counts values and levels in the text, before anything is built of it: an element or member begins after a comma or
   * after an opening bracket. Of text that is no JSON it may count anything; that is refused in any case.
   */
  #measure(bytes: Buffer, what: string): void {
    let values = 0;
    let depth = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        at = endOfText(bytes, at);
      } else if (byte === COMMA) {
        values += 1;
      } else if (byte === BRACKET || byte === BRACE) {
        values += 1;
        depth += 1;
        if (depth > DEPTH_MAX) throw new Refusal(400, `${what} nests deeper than ${DEPTH_MAX} levels`);
      } else if (byte === BRACKET_END || byte === BRACE_END) {
        depth -= 1;
      }
    }
    this.#valuesLeft -= values;
    if (this.#valuesLeft < 0) throw new Refusal(413, `The JSON of the body has more than ${VALUES_MAX} values`);
  }
}

/** Returns the index of the quote that closes the string opened at `start`, or the number of bytes if there is none. */
function endOfText(bytes: Buffer, start: number): number {
  let at = start + 1;
  for (;;) {
    for (const near = at + TEXT_BYTES_LOOKED_AT; at < near; at += 1) {
      if (bytes[at] === BACKSLASH) at += 1;
      else if (bytes[at] === QUOTE || at >= bytes.length) return Math.min(at, bytes.length);
    }
    const quote = bytes.indexOf(QUOTE as number, at);
    if (quote === -1) return bytes.length;
    // A quote belongs to the text after an odd number of backslashes. Those before `at` have been passed over in pairs.
    let first = quote;
    while (first > at && bytes[first - 1] === BACKSLASH) first -= 1;
    if ((quote - first) % 2 === 0) return quote;
    at = quote + 1;
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACKET_END, BRACE, BRACE_END] = Buffer.from('"\\,[]{}');

/** Heap that a value takes beside its text, and an object or array beside what it holds. */
const VALUE_BYTES = 16;
const CONTAINER_BYTES = 56;

/**
 * The weight of a value in a store: bytes of its JSON text, escapes aside, and what V8 adds to them. It is counted, not
 * written, as that would cost more than the parsing did.
 */
export function jsonSizeBytes(value: unknown): number {
  let sizeBytes = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const item = pending.pop();
    sizeBytes += VALUE_BYTES;
    if (typeof item === 'string') {
      sizeBytes += Buffer.byteLength(item) + 2;
    } else if (typeof item !== 'object' || item === null) {
      sizeBytes += String(item).length;
    } else if (Array.isArray(item)) {
      sizeBytes += CONTAINER_BYTES + 2 + Math.max(0, item.length - 1);
      for (const element of item) pending.push(element);
    } else {
      const keys = Object.keys(item);
      sizeBytes += CONTAINER_BYTES + 2 + Math.max(0, keys.length - 1);
      for (const key of keys) {
        sizeBytes += Buffer.byteLength(key) + 3;
        pending.push((item as Record<string, unknown>)[key]);
      }
    }
  }
  return sizeBytes;
}
