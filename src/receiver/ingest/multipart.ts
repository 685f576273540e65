import { Refusal } from '../refusal.ts';
import { Pieces } from './pieces.ts';
import type { BodyReader } from './request-body.ts';

/** One part of a multipart body, as it came. */
export interface Part {
  readonly name: string;
  /** The whole header, parameters and all; undefined when the part has none. */
  readonly contentType: string | undefined;
  /** What the part's own Content-Length says, as text. */
  readonly contentLength: string | undefined;
  readonly hasFilename: boolean;
  readonly bytes: Buffer;
}

/** Beyond it 413, at which senders split a batch. 100 runs with all parts of the field's dialect are 700. */
export const PARTS_MAX = 1_000;
/** Name of a part, in bytes. Those of JSON need 60; that of an attachment ends in a name of the application's own. */
export const PART_NAME_BYTES_MAX = 1_000;
/**
 * Maximum number of bytes before the first delimiter. Clients send nothing there, or a line for readers without multipart
 * support.
 */
const PREAMBLE_BYTES_MAX = 64 * 1024;
const HEADER_LINES_MAX = 50;
const HEADER_BYTES_MAX = 16 * 1024;
/** RFC 2046, 5.1.1. */
const BOUNDARY_LENGTH_MAX = 70;

/** The boundary that a Content-Type names; 415 when it is no multipart/form-data, 400 without a usable boundary. */
export function boundaryOf(contentType: string | undefined): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType ?? '')) {
    throw new Refusal(415, `Expected content-type to be multipart/form-data, got ${JSON.stringify(contentType ?? '')}`);
  }
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^\s;"]+))/i.exec(contentType ?? '') ?? [];
  const boundary = quoted ?? plain ?? '';
  if (boundary === '') throw new Refusal(400, 'The content-type names no boundary');
  if (boundary.length > BOUNDARY_LENGTH_MAX) {
    throw new Refusal(400, `The boundary is longer than ${BOUNDARY_LENGTH_MAX} characters`);
  }
  return boundary;
}

/**
 * The parts of a multipart body, in order, or 400 naming what is wrong. The body must be whole: a part or an end that is
 * missing is an error, never fewer parts. In strict mode nothing may stand around them.
 *
 *     preamble ␍␊--boundary␍␊ header ␍␊␍␊ bytes ␍␊--boundary␍␊ header … bytes ␍␊--boundary-- epilogue
 *
 * The line break before a delimiter is a part of it; the first one needs none at the very start of the body. How the network
 * has cut the body makes no difference. The bytes of a part are a view of what was written, or a copy where they were cut.
 */
export class MultipartReader implements BodyReader<Part[]> {
  readonly #delimiter: Buffer;
  readonly #strict: boolean;
  readonly #parts: Part[] = [];
  #state: 'preamble' | 'delimiter' | 'header' | 'bytes' | 'epilogue' = 'preamble';
  /** What has come and cannot be told yet: it may be the beginning of a delimiter, or of a header. */
  #rest: Buffer = LINE_BREAK;
  /** The part that is being read: its header, and its bytes with the line break before them. */
  #header: Omit<Part, 'bytes'> | undefined;
  #pieces = new Pieces();
  #preambleBytes = 0;

  constructor(boundary: string, strict: boolean) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    this.#strict = strict;
  }

  write(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (this.#step());
  }

  end(): Part[] {
    if (this.#state !== 'epilogue') throw new Refusal(400, `Unexpected end of multipart data ${this.#where}`);
    if (this.#strict && this.#rest.length === 1) throw new Refusal(400, 'Something follows the last delimiter');
    return this.#parts;
  }

  /** Reads as far as the next turn of what is there; false when more has to come. */
  #step(): boolean {
    switch (this.#state) {
      case 'preamble':
        return this.#readPreamble();
      case 'delimiter':
        return this.#readDelimiter();
      case 'header':
        return this.#readHeader();
      case 'bytes':
        return this.#readBytes();
      case 'epilogue':
        this.#checkEpilogue();
        return false;
    }
  }

  #readPreamble(): boolean {
    const start = this.#delimiter.subarray(0, this.#rest.length);
    if (this.#strict && !this.#rest.subarray(0, start.length).equals(start)) {
      throw new Refusal(400, 'The body does not begin with the delimiter of its boundary');
    }
    const before = this.#passDelimiter();
    this.#preambleBytes += (before ?? this.#takeCertain()).length;
    if (this.#preambleBytes > PREAMBLE_BYTES_MAX) {
      throw new Refusal(400, `The body has no delimiter of its boundary in the first ${PREAMBLE_BYTES_MAX} bytes`);
    }
    return before !== undefined;
  }

  #readDelimiter(): boolean {
    if (this.#rest.length < 2) return false;
    if (this.#rest.subarray(0, 2).equals(DASHES)) {
      this.#rest = this.#rest.subarray(2);
      this.#state = 'epilogue';
    } else {
      if (this.#parts.length === PARTS_MAX) throw new Refusal(413, `The body has more than ${PARTS_MAX} parts`);
      this.#state = 'header';
    }
    return true;
  }

  #readHeader(): boolean {
    const found = this.#rest.indexOf(HEADER_END);
    const end = found === -1 ? this.#rest.length : found;
    const position = this.#parts.length + 1;
    // A delimiter goes before everything, so a header that does not end ends there.
    if (this.#rest.subarray(0, end).includes(this.#delimiter)) throw withoutDisposition(position);
    if (end > HEADER_BYTES_MAX) {
      throw new Refusal(400, `The header of part ${position} is larger than ${HEADER_BYTES_MAX} bytes`);
    }
    if (found === -1) return false;
    this.#header = partHeaderOf(headerOf(this.#rest.toString('latin1', 0, end), position), position);
    // The second line break stays: a part without bytes may leave it to its delimiter (RFC 2046, 5.1.1).
    this.#rest = this.#rest.subarray(end + LINE_BREAK.length);
    this.#state = 'bytes';
    return true;
  }

  #readBytes(): boolean {
    const bytes = this.#passDelimiter();
    if (bytes === undefined) {
      const certain = this.#takeCertain();
      if (certain.length > 0) this.#pieces.push(certain);
      return false;
    }
    this.#pieces.push(bytes);
    const whole = this.#pieces.whole();
    this.#pieces = new Pieces();
    if (this.#header !== undefined) this.#parts.push({ ...this.#header, bytes: whole.subarray(LINE_BREAK.length) });
    this.#header = undefined;
    return true;
  }

  /** What stands before the next delimiter, behind which reading goes on; undefined when there is none yet. */
  #passDelimiter(): Buffer | undefined {
    const at = this.#rest.indexOf(this.#delimiter);
    if (at === -1) return undefined;
    const before = this.#rest.subarray(0, at);
    this.#rest = this.#rest.subarray(at + this.#delimiter.length);
    this.#state = 'delimiter';
    return before;
  }

  /** Removes and returns the leading bytes that cannot be part of a delimiter. */
  #takeCertain(): Buffer {
    const length = Math.max(0, this.#rest.length - this.#delimiter.length + 1);
    const certain = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return certain;
  }

  #checkEpilogue(): void {
    if (!this.#strict) this.#rest = NOTHING;
    else if (!LINE_BREAK.subarray(0, this.#rest.length).equals(this.#rest)) {
      throw new Refusal(400, 'Something follows the last delimiter');
    }
  }

  get #where(): string {
    const position = this.#parts.length + 1;
    if (this.#header !== undefined) return `in part ${position}, ${this.#header.name}`;
    if (this.#state === 'header') return `in part ${position}, whose header is not whole`;
    return position === 1 ? 'before the first part' : `after part ${position - 1}`;
  }
}

const NOTHING: Buffer = Buffer.alloc(0);
const LINE_BREAK: Buffer = Buffer.from('\r\n');
const HEADER_END: Buffer = Buffer.from('\r\n\r\n');
const DASHES: Buffer = Buffer.from('--');

/** Names in lower case; values as bytes in a string, one character each. */
type Header = ReadonlyMap<string, readonly string[]>;

/** The fields of a header, which begins with what is left of the line of the delimiter. */
function headerOf(text: string, position: number): Header {
  const header = new Map<string, string[]>();
  const [padding = '', ...lines] = text.split('\r\n');
  if (padding.trim() !== '') throw withoutDisposition(position);
  if (lines.length > HEADER_LINES_MAX) {
    throw new Refusal(400, `The header of part ${position} has more than ${HEADER_LINES_MAX} lines`);
  }
  let values: string[] | undefined;
  for (const line of lines) {
    if (/[\r\n]/.test(line)) throw unreadable(position);
    if (line.startsWith(' ') || line.startsWith('\t')) {
      // A line that begins with white space goes on with the one before (RFC 2822, 2.2.3).
      if (values === undefined) throw unreadable(position);
      values.push(`${values.pop()}${line}`);
      continue;
    }
    const colon = line.indexOf(':');
    if (colon < 1) throw unreadable(position);
    const name = line.slice(0, colon).toLowerCase();
    values = header.get(name) ?? [];
    header.set(name, values);
    values.push(line.slice(colon + 1));
  }
  return header;
}

function unreadable(position: number): Refusal {
  return new Refusal(400, `The header of part ${position} cannot be read`);
}

function withoutDisposition(position: number): Refusal {
  return new Refusal(400, `Part ${position} has no Content-Disposition of the form: form-data; name="…"`);
}

function partHeaderOf(header: Header, position: number): Omit<Part, 'bytes'> {
  const only = (field: string): string | undefined => {
    const [value, another] = header.get(field) ?? [];
    if (another !== undefined) throw new Refusal(400, `Part ${position} has two headers ${field}`);
    return value?.trim();
  };
  const disposition = dispositionOf(only('content-disposition'));
  if (disposition === undefined) throw withoutDisposition(position);
  const { name, hasFilename } = disposition;
  if (name.length > PART_NAME_BYTES_MAX) {
    throw new Refusal(400, `The name of part ${position} is longer than ${PART_NAME_BYTES_MAX} bytes`);
  }
  const encoding = only('content-transfer-encoding')?.toLowerCase() ?? 'binary';
  if (!['7bit', '8bit', 'binary'].includes(encoding)) {
    throw new Refusal(400, `Part ${position} is in transfer encoding ${JSON.stringify(encoding)}; send it as it is`);
  }
  return {
    name: Buffer.from(name, 'latin1').toString('utf8'),
    contentType: only('content-type'),
    contentLength: only('content-length'),
    hasFilename,
  };
}

const PARAMETER = /\s*;\s*([\w*-]+)=(?:"([^"]*)"|([^\s;"]*))\s*/y;

interface Disposition {
  readonly name: string;
  readonly hasFilename: boolean;
}

/**
 * What a Content-Disposition says, or undefined when it has no name or another form. Quotes and line breaks in a name
 * are written `%22`, `%0D` and `%0A`, and there is no other escape (HTML standard, "Multipart form data").
 */
function dispositionOf(disposition: string | undefined): Disposition | undefined {
  const type = /^\s*form-data/i.exec(disposition ?? '');
  if (disposition === undefined || type === null) return undefined;
  let name: string | undefined;
  let hasFilename = false;
  PARAMETER.lastIndex = type[0].length;
  while (PARAMETER.lastIndex < disposition.length) {
    const match = PARAMETER.exec(disposition);
    if (match === null) return undefined;
    const parameter = match[1]?.toLowerCase();
    if (parameter === 'name') name ??= match[2] ?? match[3];
    else if (parameter === 'filename' || parameter === 'filename*') hasFilename = true;
  }
  if (name === undefined) return undefined;
  const unescaped = name.replaceAll(/%(22|0D|0A)/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return { name: unescaped, hasFilename };
}
