import { HttpError } from '../http/http-error.ts';

export interface Part {
  readonly name: string;
  /** Value of the Content-Type header, including its parameters. */
  readonly contentType: string | undefined;
  readonly contentLength: string | undefined;
  readonly hasFilename: boolean;
  /** Content of the part, as a view into the request body. */
  readonly bytes: Buffer;
}

/** A LangSmith client's batch of 1,000 runs has up to 7,000 parts. After status 413, clients split the batch. */
const PARTS_MAX = 10_000;
/** Maximum length of a part name, in bytes. The application chooses attachment names, which may be long. */
const PART_NAME_BYTES_MAX = 1_000;
const HEADER_BYTES_MAX = 16 * 1024;
/** Maximum length of a boundary (RFC 2046, 5.1.1). */
const BOUNDARY_LENGTH_MAX = 70;

/** Throws an HTTP 415 error if the type is not `multipart/form-data`, or a 400 error if the boundary is invalid. */
export function boundaryOf(contentType = ''): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) {
    throw new HttpError(415, `Expected content-type to be multipart/form-data, got ${JSON.stringify(contentType)}`);
  }
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^\s;"]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain ?? '';
  if (boundary === '' || boundary.length > BOUNDARY_LENGTH_MAX) {
    throw new HttpError(400, `Expected the boundary in content-type to have 1 to ${BOUNDARY_LENGTH_MAX} characters`);
  }
  return boundary;
}

/**
 * Returns the parts of a multipart body in order. Throws an HTTP 400 error if the body is malformed or incomplete.
 * Ignores preamble and epilogue (RFC 2046, 5.1.1). In strict mode, the last delimiter must be alone on its line.
 *
 *     preamble ␍␊--boundary␍␊ header ␍␊␍␊ bytes ␍␊--boundary␍␊ header … bytes ␍␊--boundary--␍␊ epilogue
 *
 * The line break before a delimiter belongs to the delimiter, unless the body starts with the delimiter.
 */
export function parseMultipart(body: Buffer, boundary: string, strict: boolean): Part[] {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const parts: Part[] = [];
  let at = firstPart(body, delimiter);
  while (!body.subarray(at, at + 2).equals(DASHES)) {
    const position = parts.length + 1;
    if (position > PARTS_MAX) throw new HttpError(413, `The body has more than ${PARTS_MAX} parts`);
    const next = body.indexOf(delimiter, at);
    if (next === -1) throw new HttpError(400, `Unexpected end of multipart data in part ${position}`);
    // An empty part may share its line break with the delimiter (RFC 2046, 5.1.1).
    const headerEnd = body.subarray(at, next + LINE_BREAK.length).indexOf(HEADER_END);
    if (headerEnd === -1) throw withoutDisposition(position);
    if (headerEnd > HEADER_BYTES_MAX) throw invalidHeader(position, `is larger than ${HEADER_BYTES_MAX} bytes`);
    const header = parseHeader(body.toString('utf8', at, at + headerEnd), position);
    parts.push({ ...header, bytes: body.subarray(at + headerEnd + HEADER_END.length, next) });
    at = next + delimiter.length;
  }
  const lineEnd = body.indexOf(LINE_BREAK, at);
  if (strict && /[^ \t]/.test(body.toString('latin1', at + DASHES.length, lineEnd === -1 ? undefined : lineEnd))) {
    throw new HttpError(400, 'The line of the last delimiter contains other text');
  }
  return parts;
}

const DASHES = Buffer.from('--');
const LINE_BREAK = '\r\n';
const HEADER_END = Buffer.from('\r\n\r\n');

/** Returns the index of the first byte after the first delimiter. */
function firstPart(body: Buffer, delimiter: Buffer): number {
  const first = delimiter.subarray(LINE_BREAK.length);
  if (body.subarray(0, first.length).equals(first)) return first.length;
  const index = body.indexOf(delimiter);
  if (index === -1) throw new HttpError(400, 'Unexpected end of multipart data before the first part');
  // Otherwise, the part after this delimiter would be lost as a part of the preamble.
  if (body.subarray(0, index).includes(first)) throw new HttpError(400, 'The first delimiter does not start its line');
  return index + delimiter.length;
}

const HEADER_LINE = /^([^\s:][^:]*):([^\r\n]*)$/;

/** `text` starts directly after the delimiter, so the first line is the rest of the delimiter line. */
function parseHeader(text: string, position: number): Omit<Part, 'bytes'> {
  const [padding = '', ...lines] = text.split(LINE_BREAK);
  if (padding.trim() !== '') throw withoutDisposition(position);
  const header = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ''] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined) throw invalidHeader(position, 'is malformed');
    const key = name.toLowerCase();
    if (header.has(key)) throw invalidHeader(position, `contains ${key} twice`);
    header.set(key, value.trim());
  }
  const encoding = header.get('content-transfer-encoding')?.toLowerCase() ?? 'binary';
  if (!['7bit', '8bit', 'binary'].includes(encoding)) {
    throw invalidHeader(position, `contains the unsupported transfer encoding ${JSON.stringify(encoding)}`);
  }
  const disposition = parseDisposition(header.get('content-disposition') ?? '');
  if (disposition === undefined) throw withoutDisposition(position);
  if (Buffer.byteLength(disposition.name) > PART_NAME_BYTES_MAX) {
    throw invalidHeader(position, `contains a name of more than ${PART_NAME_BYTES_MAX} bytes`);
  }
  return { ...disposition, contentType: header.get('content-type'), contentLength: header.get('content-length') };
}

const PARAMETER = /\s*;\s*([\w*-]+)=(?:"([^"]*)"|([^\s;"]*))\s*/y;

/**
 * Parses a Content-Disposition header. Returns undefined if the header is malformed or has no name. The only escapes in
 * names are `%22`, `%0D` and `%0A`, for quotes and line breaks (HTML standard, "Multipart form data").
 */
function parseDisposition(text: string): { name: string; hasFilename: boolean } | undefined {
  if (!/^form-data\b/i.test(text)) return undefined;
  let name: string | undefined;
  let hasFilename = false;
  PARAMETER.lastIndex = 'form-data'.length;
  while (PARAMETER.lastIndex < text.length) {
    const [, parameter = '', quoted, plain] = PARAMETER.exec(text) ?? [];
    if (parameter === '') return undefined;
    if (/^name$/i.test(parameter)) name ??= quoted ?? plain;
    else if (/^filename\*?$/i.test(parameter)) hasFilename = true;
  }
  if (name === undefined) return undefined;
  return { name: name.replaceAll(/%(22|0D|0A)/gi, (code) => decodeURIComponent(code)), hasFilename };
}

function invalidHeader(position: number, problem: string): HttpError {
  return new HttpError(400, `The header of part ${position} ${problem}`);
}

function withoutDisposition(position: number): HttpError {
  return new HttpError(400, `Part ${position} has no Content-Disposition of the form: form-data; name="…"`);
}
