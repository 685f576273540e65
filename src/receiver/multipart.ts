import { Dicer } from '@fastify/busboy';
import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';

/** One part of a multipart body, as it came. */
export interface Part {
  readonly name: string;
  /** The whole header, parameters and all; undefined when the part has none. */
  readonly contentType: string | undefined;
  /** What the part's own Content-Length says, as text. */
  readonly contentLength: string | undefined;
  readonly hasFilename: boolean;
  readonly bytes: Uint8Array;
}

/** Beyond it 413, at which senders split a batch. 100 runs with all parts of the field's dialect are 700. */
export const PARTS_MAX = 1_000;
/** Name of a part, in bytes. Those of JSON need 60; that of an attachment ends in a name of the application's own. */
export const PART_NAME_BYTES_MAX = 1_000;
const HEADER_PAIRS_MAX = 50;
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
 * This is busboy's inner parser and not busboy, which passes over parts without a name in silence, makes text of parts
 * without a `filename`, and keeps their other headers to itself.
 */
export async function readParts(body: Buffer, boundary: string, strict: boolean): Promise<Part[]> {
  checkDelimiters(body, boundary, strict);
  const drafts: Draft[] = [];
  await new Promise<void>((resolve, reject) => {
    let partsOpen = 0;
    let finished = false;
    // The parser counts no empty part, so it may finish before such a part has ended.
    const settle = (): void => {
      if (finished && partsOpen === 0) resolve();
    };

    // Its types do not know the size; the spread keeps them from taking it for a mistake.
    const parser = new Dicer({ boundary, maxHeaderPairs: HEADER_PAIRS_MAX, ...{ maxHeaderSize: HEADER_BYTES_MAX } });
    parser.on('part', (stream) => {
      const draft: Draft = { position: drafts.length + 1, header: undefined, chunks: [] };
      drafts.push(draft);
      partsOpen += 1;
      stream.on('header', (header) => {
        draft.header = header as Header;
      });
      stream.on('data', (chunk) => draft.chunks.push(chunk as Buffer));
      // Told of the parser as well, and without a listener here it would end the process.
      stream.on('error', reject);
      stream.on('end', () => {
        partsOpen -= 1;
        settle();
      });
    });
    parser.on('error', (error) => reject(new Refusal(400, `${messageOf(error)} ${whereIn(drafts)}`)));
    parser.on('finish', () => {
      finished = true;
      settle();
    });
    // In one write, so that it makes no difference how the network has cut the body.
    parser.end(body);
  });
  return drafts.map(partOf);
}

/**
 * Refuses too many parts before the parser, which takes microseconds for each and cannot be stopped, and in strict mode
 * what stands before the first delimiter and after the last.
 */
function checkDelimiters(body: Buffer, boundary: string, strict: boolean): void {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // At the very start of the body it needs no line break.
  const isFirst = body.indexOf(delimiter.subarray(2)) === 0;
  if (strict && !isFirst) throw new Refusal(400, 'The body does not begin with the delimiter of its boundary');
  let end = isFirst ? delimiter.length - 2 : endOf(delimiter, body, 0);
  for (let parts = 0; end !== undefined; parts += 1) {
    const rest = body.subarray(end, end + 5).toString('latin1');
    if (rest.startsWith('--')) {
      if (strict && rest !== '--' && rest !== '--\r\n') throw new Refusal(400, 'Something follows the last delimiter');
      return;
    }
    if (parts === PARTS_MAX) throw new Refusal(413, `The body has more than ${PARTS_MAX} parts`);
    end = endOf(delimiter, body, end);
  }
}

function endOf(delimiter: Buffer, body: Buffer, from: number): number | undefined {
  const start = body.indexOf(delimiter, from);
  return start === -1 ? undefined : start + delimiter.length;
}

/** Names in lower case; values as bytes in a string, one character each. */
type Header = Readonly<Record<string, readonly string[] | undefined>>;

interface Draft {
  /** From 1. */
  readonly position: number;
  header: Header | undefined;
  readonly chunks: Buffer[];
}

function whereIn(drafts: readonly Draft[]): string {
  const last = drafts.at(-1);
  if (last === undefined) return 'before the first part';
  const disposition = dispositionOf(last.header?.['content-disposition']?.[0]);
  return `in part ${last.position}, ${disposition?.name ?? 'whose header is not whole'}`;
}

function partOf({ position, header, chunks }: Draft): Part {
  const headerOf = (field: string): string | undefined => {
    const [value, another] = header?.[field] ?? [];
    if (another !== undefined) throw new Refusal(400, `Part ${position} has two headers ${field}`);
    return value?.trim();
  };
  const disposition = dispositionOf(headerOf('content-disposition'));
  if (disposition === undefined) {
    throw new Refusal(400, `Part ${position} has no Content-Disposition of the form: form-data; name="…"`);
  }
  const { name, hasFilename } = disposition;
  if (name.length > PART_NAME_BYTES_MAX) {
    throw new Refusal(400, `The name of part ${position} is longer than ${PART_NAME_BYTES_MAX} bytes`);
  }
  const encoding = headerOf('content-transfer-encoding')?.toLowerCase() ?? 'binary';
  if (!['7bit', '8bit', 'binary'].includes(encoding)) {
    throw new Refusal(400, `Part ${position} is in transfer encoding ${JSON.stringify(encoding)}; send it as it is`);
  }
  return {
    name: Buffer.from(name, 'latin1').toString('utf8'),
    contentType: headerOf('content-type'),
    contentLength: headerOf('content-length'),
    hasFilename,
    bytes: chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks),
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
