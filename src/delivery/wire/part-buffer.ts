import type { PayloadTexts } from '../../run/encoded-run.ts';
import { randomHex } from '../../run/ids.ts';

export interface Part {
  /** The payload in the part, for example `inputs`. Empty for the main part. */
  readonly payload: string;
  /** Where the part starts with its boundary, and where its JSON text starts and ends. */
  readonly startAt: number;
  readonly textAt: number;
  readonly endAt: number;
  readonly nextAt: number;
}

/** JSON text up to this length is written in one call with its header, which is faster. */
const JOINED_CHARACTERS_MAX = 1_024;

/** Maximum UTF-8 bytes per character. If fewer bytes are free after a write, the text may have been truncated. */
const CHARACTER_BYTES_MAX = 4;

const CRLF = '\r\n';
const [CR, LF] = [0x0d, 0x0a];
const HEADERS_END = `${CRLF}${CRLF}`;

const EMPTY_OBJECT_CHARACTERS = '{}'.length;

/** A growing buffer for the JSON parts of the body of `POST /runs/multipart`. `multipart.ts` shows the format. */
export class PartBuffer {
  readonly boundary: string;
  readonly #frame: string;
  readonly #close: string;
  buffer: Buffer;
  /** Number of bytes written. Lower it to remove the last parts. */
  length = 0;

  constructor(boundary: string, buffer: Buffer) {
    this.boundary = boundary;
    this.#frame = frameOf(boundary);
    this.#close = `--${boundary}--${CRLF}`;
    this.buffer = buffer;
  }

  /** Size of the body if it is closed now, in bytes. */
  get closedLength(): number {
    return this.length + this.#close.length;
  }

  addRun(op: 'post' | 'patch', id: string, main: string, { inputs, outputs, events }: PayloadTexts): void {
    const name = `${op}.${id}`;
    this.#addPart(name, main);
    if (inputs !== undefined) this.#addPart(`${name}.inputs`, inputs);
    if (outputs !== undefined) this.#addPart(`${name}.outputs`, outputs);
    if (events !== undefined) this.#addPart(`${name}.events`, events);
  }

  /** Returns a view of the buffer. Add no parts afterwards. */
  bytes(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  /** Cannot fail after a part was added, even if there is no memory. */
  close(): Buffer {
    this.length += this.buffer.write(this.#close, this.length, 'latin1');
    return this.bytes();
  }

  /**
   * Adds a part, unless the JSON is empty. `Content-Length` is first set to the number of characters, which is correct
   * for ASCII text. For other text, `Content-Length` is corrected after writing, because counting bytes beforehand is
   * slower.
   */
  #addPart(name: string, json: string): void {
    if (json.length <= EMPTY_OBJECT_CHARACTERS) return;
    const start = this.length;
    let lengthBytes = json.length;
    for (;;) {
      const length = String(lengthBytes);
      const header = `${this.#frame}${name}"\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
      if (json.length <= JOINED_CHARACTERS_MAX) {
        this.#write(`${header}${json}${CRLF}`);
      } else {
        this.#write(header);
        this.#write(json);
        // `#write` leaves room for the two bytes.
        this.buffer[this.length++] = CR;
        this.buffer[this.length++] = LF;
      }
      const writtenBytes = this.length - start - header.length - CRLF.length;
      if (writtenBytes === lengthBytes) return;
      const corrected = String(writtenBytes);
      if (corrected.length === length.length) {
        this.buffer.write(corrected, start + header.length - 2 * CRLF.length - length.length, 'latin1');
        return;
      }
      lengthBytes = writtenBytes;
      this.length = start;
    }
  }

  /** Leaves room for `close`. */
  #write(text: string): void {
    const freeBytes = CHARACTER_BYTES_MAX + this.#close.length;
    let written = this.buffer.write(text, this.length, 'utf8');
    while (this.buffer.length - this.length - written < freeBytes) {
      const grown = Buffer.allocUnsafeSlow(this.buffer.length * 2 + text.length);
      this.buffer.copy(grown, 0, 0, this.length);
      this.buffer = grown;
      written = this.buffer.write(text, this.length, 'utf8');
    }
    this.length += written;
  }
}

/** Returns the parts of a body that a `PartBuffer` has written, in order. */
export function* partsIn(bytes: Buffer, boundary: string): Generator<Part> {
  const frame = frameOf(boundary);
  for (let startAt = 0; bytes.toString('latin1', startAt, startAt + frame.length) === frame; ) {
    const textAt = bytes.indexOf(HEADERS_END, startAt) + HEADERS_END.length;
    const header = bytes.toString('latin1', startAt + frame.length, textAt);
    const [, , payload = ''] = header.slice(0, header.indexOf('"')).split('.');
    const endAt = textAt + Number(header.slice(header.lastIndexOf(':') + 1));
    const nextAt = endAt + CRLF.length;
    yield { payload, startAt, textAt, endAt, nextAt };
    startAt = nextAt;
  }
}

export function newBoundary(): string {
  return `runspan-${randomHex(32)}`;
}

export function contentTypeOf(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`;
}

function frameOf(boundary: string): string {
  return `--${boundary}\r\nContent-Disposition: form-data; name="`;
}
