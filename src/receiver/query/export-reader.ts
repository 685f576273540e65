import { HttpError } from '../http-error.ts';

/** Maximum size of an entry in bytes. */
const ENTRY_BYTES_MAX = 256 * 1024 * 1024;

/** A field of the object. If the field is an array, each of its elements is an entry. */
export interface Entry {
  readonly key: string;
  /** JSON text of the entry's value. */
  readonly bytes: Buffer;
  /** Index in the array. Undefined if the field is not an array. */
  readonly index: number | undefined;
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACKET_END, BRACE, BRACE_END] = Buffer.from('"\\,:[]{}');

/** Splits the JSON text of an object into entries while the text arrives in chunks. */
export class ExportReader {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isEnded = false;
  #key: string | undefined;
  #index: number | undefined;
  #parts: Buffer[] = [];
  #length = 0;

  *write(chunk: Buffer): Generator<Entry> {
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
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
        if (this.#depth === 1 && byte === BRACKET) throw notAnExport();
        if (this.#depth > 1 && !isArray) continue;
        this.#take(chunk, start, at);
        start = at + 1;
        if (isArray) this.#index = 0;
      } else if (byte === BRACKET_END || byte === BRACE_END) {
        const isEnd = this.#depth === 1 || (this.#depth === 2 && this.#index !== undefined);
        this.#depth -= 1;
        if (!isEnd) continue;
        yield* this.#entry(this.#take(chunk, start, at));
        start = at + 1;
        this.#index = undefined;
        if (this.#depth === 0) this.#isEnded = true;
        if (this.#depth <= 1) this.#key = undefined;
      } else if (byte === COMMA && this.#isBetweenEntries) {
        yield* this.#entry(this.#take(chunk, start, at));
        start = at + 1;
        if (this.#index === undefined) this.#key = undefined;
        else this.#index += 1;
      } else if (byte === COLON && this.#depth === 1) {
        this.#key = keyOf(this.#take(chunk, start, at));
        start = at + 1;
      }
    }
    this.#push(chunk.subarray(start));
  }

  /** Ends the text. Throws if the object is incomplete. */
  end(): void {
    if (!this.#isEnded) throw notAnExport();
  }

  get #isBetweenEntries(): boolean {
    return this.#depth === 1 || (this.#depth === 2 && this.#index !== undefined);
  }

  *#entry(bytes: Buffer): Generator<Entry> {
    // There is no entry at the end of an empty array or object, and after an array.
    if (bytes.toString('latin1', 0, 64).trim() === '' || this.#key === undefined) return;
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

function keyOf(bytes: Buffer): string {
  try {
    return String(JSON.parse(bytes.toString()));
  } catch {
    throw notAnExport();
  }
}

function notAnExport(): HttpError {
  return new HttpError(400, 'The body is no trace that runspan has exported');
}
