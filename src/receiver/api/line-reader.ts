import { HttpError } from '../http/http-error.ts';

const LINE_FEED = 0x0a;
const LINE_BYTES_MAX = 256 * 1024 * 1024;

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
    if (this.#length > LINE_BYTES_MAX) throw new HttpError(413, `A line is longer than ${LINE_BYTES_MAX} bytes`);
    this.#parts.push(part);
  }
}
