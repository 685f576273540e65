import { messageOf } from '../../base/text.ts';
import { isEscaped, parseExact } from '../../payload/fields.ts';
import { HttpError } from './http-error.ts';

/** Maximum nesting depth of JSON. Serializing or copying more deeply nested values would overflow the call stack. */
const DEPTH_MAX = 512;
/**
 * Maximum number of JSON values per request. Parsed JSON can use 30 times as much memory as its text. Without a limit,
 * a body full of brackets could exhaust the heap.
 */
export const VALUES_MAX = 2_000_000;
/** Maximum number of keys of an object. The time to parse and copy an object of a million keys is several seconds. */
const KEYS_MAX = 100_000;
/**
 * Maximum number of distinct keys per request. A key is distinct unless it follows the same keys as in another object.
 * For each distinct key, V8 creates a hidden class, which takes 20 times as long as parsing a known key.
 */
const DISTINCT_KEYS_MAX = 200_000;

const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface Json {
  readonly value: unknown;
  readonly text: string;
}

/** Parses all JSON texts in one request. */
export class JsonReader {
  readonly #valuesMax: number;
  readonly #keysMax: number;
  readonly #distinctMax: number;
  #values = 0;
  /** Number of keys in all texts, including those that are not distinct. */
  #keys = 0;
  readonly #distinct = new Set<number>();
  /** Random, so that no client can choose keys with equal hashes. */
  readonly #seed = Math.random() * 2 ** 32;

  constructor({
    valuesMax = VALUES_MAX,
    keysMax = KEYS_MAX,
    distinctMax = DISTINCT_KEYS_MAX,
  }: { valuesMax?: number; keysMax?: number; distinctMax?: number } = {}) {
    this.#valuesMax = valuesMax;
    this.#keysMax = keysMax;
    this.#distinctMax = distinctMax;
  }

  /**
   * Parses UTF-8 JSON. Throws an HTTP 400 error if the JSON is invalid, or a 413 error if it has too many values or keys.
   * `what` names the JSON text in the error message.
   */
  parse(bytes: Buffer, what: string): Json {
    try {
      const text = utf8.decode(bytes);
      this.#checkLimits(text, what);
      return { value: parseExact(text), text };
    } catch (error) {
      if (error instanceof HttpError) throw error;
      throw new HttpError(400, `${what} is not valid JSON: ${messageOf(error)}`);
    }
  }

  /**
   * Checks the limits before parsing. For invalid JSON, the counts may be wrong, but `JSON.parse` rejects the text
   * anyway.
   */
  #checkLimits(text: string, what: string): void {
    let depth = 0;
    /** Number of keys of the open objects, by depth. */
    const keys = new Uint32Array(DEPTH_MAX + 1);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        at = endOfString(text, at);
        if (at === -1) break;
      } else if (code === COMMA) {
        this.#values += 1;
      } else if (code === BRACKET || code === BRACE) {
        this.#values += 1;
        depth += 1;
        if (depth > DEPTH_MAX) throw new HttpError(400, `${what} is nested deeper than ${DEPTH_MAX} levels`);
        keys[depth] = 0;
      } else if (code === COLON) {
        this.#keys += 1;
        keys[depth] = (keys[depth] ?? 0) + 1;
        if ((keys[depth] ?? 0) > this.#keysMax)
          throw new HttpError(413, `${what} has an object with more than ${this.#keysMax} keys`);
      } else if (code === BRACKET_END || code === BRACE_END) {
        depth -= 1;
      }
    }
    if (this.#values > this.#valuesMax)
      throw new HttpError(413, `The JSON of the request has more than ${this.#valuesMax} values`);
    // Hashing takes as long as parsing, so the keys of most requests are not hashed.
    if (this.#keys > this.#distinctMax) this.#countDistinct(text);
  }

  #countDistinct(text: string): void {
    let depth = 0;
    let start = 0;
    /** Hashes of the keys so far of the open objects, by depth. */
    const hashes = new Uint32Array(DEPTH_MAX + 1);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        start = at;
        at = endOfString(text, at);
        if (at === -1) return;
      } else if (code === BRACKET || code === BRACE) {
        depth += 1;
        hashes[depth] = this.#seed;
      } else if (code === BRACKET_END || code === BRACE_END) {
        depth -= 1;
      } else if (code === COLON) {
        let hash = hashes[depth] ?? 0;
        for (let key = start; key < at; key += 1) hash = Math.imul(hash ^ text.charCodeAt(key), FNV_PRIME);
        hashes[depth] = hash;
        if (this.#distinct.add(hash).size > this.#distinctMax)
          throw new HttpError(413, `The JSON of the request has more than ${this.#distinctMax} distinct keys`);
      }
    }
  }
}

/** Returns the index of the quote that ends a string, or -1. */
function endOfString(text: string, start: number): number {
  let at = start;
  do at = text.indexOf('"', at + 1);
  while (text.charCodeAt(at - 1) === BACKSLASH && isEscaped(text, at));
  return at;
}

/** Prime of the 32-bit FNV-1a hash. */
const FNV_PRIME = 0x01000193;
const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACKET_END, BRACE, BRACE_END] = Buffer.from('"\\,:[]{}');
