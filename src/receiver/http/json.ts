import { messageOf } from '../../base/text.ts';
import { isEscaped, parseExact } from '../../payload/fields.ts';
import { HttpError } from './http-error.ts';

/** Maximum nesting depth of JSON. Serializing or copying more deeply nested values would overflow the call stack. */
const DEPTH_MAX = 512;
/** Parsed JSON can use 30 times as much memory as its text, so a body full of brackets could exhaust the heap. */
export const VALUES_MAX = 2_000_000;
const LIMITS: Readonly<Record<'valuesMax' | 'distinctMax', number>> = {
  valuesMax: VALUES_MAX,
  /**
   * Of a request. A key is distinct unless it follows the same keys as in another object. For each distinct key, V8 creates
   * a hidden class, which takes 20 times as long as parsing a known key.
   */
  distinctMax: 200_000,
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface Json {
  readonly value: unknown;
  readonly text: string;
}

export class JsonReader {
  readonly #limits: typeof LIMITS;
  #values = 0;
  /** Number of keys in all texts, including those that are not distinct. */
  #keys = 0;
  readonly #distinct = new Set<number>();
  /** Random, so that no client can choose keys with equal hashes. */
  readonly #seed = Math.random() * 2 ** 32;

  constructor(limits: Partial<typeof LIMITS> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /**
   * Parses UTF-8 JSON. Throws an HTTP 400 error if the JSON is invalid, or a 413 error if it has too many values or keys.
   * `what` names the JSON text in the error message.
   */
  parse(bytes: Buffer, what: string): Json {
    try {
      const text = utf8.decode(bytes);
      this.#scan(text, what, false);
      const { valuesMax, distinctMax } = this.#limits;
      if (this.#values > valuesMax)
        throw new HttpError(413, `The JSON of the request has more than ${valuesMax} values`);
      // Hashing takes as long as parsing, so keys are hashed only if there are many.
      if (this.#keys > distinctMax) this.#scan(text, what, true);
      return { value: parseExact(text), text };
    } catch (error) {
      if (error instanceof HttpError) throw error;
      throw new HttpError(400, `${what} is not valid JSON: ${messageOf(error)}`);
    }
  }

  /** Counts values and keys, or distinct keys. In invalid JSON, the counts may be wrong, but parsing rejects it. */
  #scan(text: string, what: string, isHashing: boolean): void {
    const { distinctMax } = this.#limits;
    const step = isHashing ? 0 : 1;
    let depth = 0;
    let start = 0;
    /** Hashes of the keys so far of the open objects, by depth. */
    const hashes = new Uint32Array(DEPTH_MAX + 1);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        start = at;
        do at = text.indexOf('"', at + 1);
        while (text.charCodeAt(at - 1) === BACKSLASH && isEscaped(text, at));
        if (at === -1) break;
      } else if (code === COMMA) {
        this.#values += step;
      } else if (code === BRACKET || code === BRACE) {
        this.#values += step;
        depth += 1;
        if (depth > DEPTH_MAX) throw new HttpError(400, `${what} is nested deeper than ${DEPTH_MAX} levels`);
        hashes[depth] = this.#seed;
      } else if (code === COLON && isHashing) {
        let hash = hashes[depth] ?? 0;
        // The FNV-1a hash.
        for (let key = start; key < at; key += 1) hash = Math.imul(hash ^ text.charCodeAt(key), 0x01000193);
        hashes[depth] = hash;
        if (this.#distinct.add(hash).size > distinctMax)
          throw new HttpError(413, `The JSON of the request has more than ${distinctMax} distinct keys`);
      } else if (code === COLON) {
        this.#keys += 1;
      } else if (code === BRACKET_END || code === BRACE_END) {
        depth -= 1;
      }
    }
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACKET_END, BRACE, BRACE_END] = Buffer.from('"\\,:[]{}');
