import { HttpError } from '../../http/http-error.ts';
import { JsonReader } from '../../http/json.ts';

const ENTRY_BYTES_MAX = 256 * 1024 * 1024;

/** A field of an object, or an element of a field that is an array. */
interface Entry {
  readonly key: string;
  /** JSON text of the entry's value. */
  readonly bytes: Buffer;
  /** Index in the array. Undefined if the field is not an array. */
  readonly index: number | undefined;
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACKET_END, BRACE, BRACE_END] = Buffer.from('"\\,:[]{}');

const BLANKS = Buffer.from(' \t\r\n');

/**
 * Splits the JSON text of an object into entries while the text arrives. Throws an HTTP 400 error if the text around
 * the entries is not valid JSON. The entries themselves are not parsed.
 */
export class ExportReader {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isEnded = false;
  /** Whether the reader is directly after the end of an array. */
  #isAfterArray = false;
  #key: string | undefined;
  #index: number | undefined;
  #parts: Buffer[] = [];
  #length = 0;

  *write(chunk: Buffer): Generator<Entry> {
    let start = 0;
    let [quote, backslash] = [-1, -1];
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#isInText && !this.#isEscaped) {
        // Most bytes are in long texts, and a search is faster than this loop.
        if (quote < at) quote = positionOf(QUOTE, chunk, at);
        if (backslash < at) backslash = positionOf(BACKSLASH, chunk, at);
        at = Math.min(quote, backslash);
      }
      const byte = chunk[at];
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInText = false;
        continue;
      }
      if (byte === QUOTE) this.#isInText = true;
      else if (byte === BRACKET || byte === BRACE) {
        this.#depth += 1;
        const isArray = byte === BRACKET && this.#depth === 2 && this.#key !== undefined;
        if (this.#depth > 1 && !isArray) continue;
        check(isBlank(this.#take(chunk, start, at)) && !this.#isEnded && (isArray || byte === BRACE));
        start = at + 1;
        if (isArray) this.#index = 0;
      } else if (byte === BRACKET_END || byte === BRACE_END) {
        const isArray = this.#depth === 2 && this.#index !== undefined;
        this.#depth -= 1;
        if (this.#depth > 0 && !isArray) continue;
        check(this.#depth >= 0 && byte === (isArray ? BRACKET_END : BRACE_END));
        yield* this.#entry(this.#take(chunk, start, at), this.#isAfterArray || this.#index === 0);
        start = at + 1;
        this.#index = undefined;
        this.#key = undefined;
        this.#isAfterArray = isArray;
        this.#isEnded = this.#depth === 0;
      } else if (byte === COMMA && this.#isBetweenEntries) {
        yield* this.#entry(this.#take(chunk, start, at));
        start = at + 1;
        this.#isAfterArray = false;
        if (this.#index === undefined) this.#key = undefined;
        else this.#index += 1;
      } else if (byte === COLON && this.#depth === 1) {
        check(this.#key === undefined && !this.#isAfterArray);
        this.#key = keyOf(this.#take(chunk, start, at));
        start = at + 1;
      }
    }
    this.#push(chunk.subarray(start));
  }

  /** Throws if the object is incomplete or followed by text. */
  end(): void {
    if (!this.#isEnded) throw notAnExport('the file is incomplete');
    check(this.#parts.every(isBlank));
  }

  get #isBetweenEntries(): boolean {
    return this.#depth === 1 || (this.#depth === 2 && this.#index !== undefined);
  }

  *#entry(bytes: Buffer, isOptional = this.#isAfterArray): Generator<Entry> {
    const isMissing = isBlank(bytes);
    if (isMissing && isOptional) return;
    check(!isMissing && this.#key !== undefined);
    yield { key: this.#key, bytes, index: this.#index };
  }

  #take(chunk: Buffer, start: number, end: number): Buffer {
    this.#push(chunk.subarray(start, end));
    const bytes =
      this.#parts.length === 1 && this.#parts[0] !== undefined ? this.#parts[0] : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    return bytes;
  }

  #push(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#parts.push(bytes);
    this.#length += bytes.length;
    if (this.#length > ENTRY_BYTES_MAX) {
      throw new HttpError(413, `A part of the export is larger than ${ENTRY_BYTES_MAX} bytes`);
    }
  }
}

const LINE_FEED = 0x0a;

/** Splits JSON lines into runs while the text arrives. */
export class LineReader {
  #parts: Buffer[] = [];
  #length = 0;
  #index = 0;

  *write(chunk: Buffer): Generator<{ readonly key: 'runs'; readonly bytes: Buffer; readonly index: number }> {
    let start = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, start)) {
      this.#keep(chunk.subarray(start, at));
      yield* this.end();
      start = at + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** Yields the last line, which may have no line feed. */
  *end(): ReturnType<LineReader['write']> {
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    // Lines may end with a carriage return, and blank lines are ignored.
    if (bytes.length < 2) return;
    yield { key: 'runs', bytes, index: this.#index };
    this.#index += 1;
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > ENTRY_BYTES_MAX) throw new HttpError(413, `A line is longer than ${ENTRY_BYTES_MAX} bytes`);
    this.#parts.push(part);
  }
}

/** Returns the position of a byte, or the length of the chunk. */
function positionOf(byte: number | undefined, chunk: Buffer, from: number): number {
  const found = chunk.indexOf(byte ?? 0, from);
  return found === -1 ? chunk.length : found;
}

function keyOf(bytes: Buffer): string {
  const { value } = new JsonReader().parse(bytes, 'The body');
  check(typeof value === 'string');
  return value;
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => BLANKS.includes(byte));
}

function check(isValid: boolean): asserts isValid {
  if (!isValid) throw notAnExport('the content is not a valid JSON object');
}

export function notAnExport(problem: string): HttpError {
  return new HttpError(400, `The file is not a trace exported by runspan: ${problem}`);
}
