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
  readonly bytes: Uint8Array;
}

/** Beyond it 413, at which senders split a batch. 100 runs with all parts of the field's dialect are 700. */
export const PARTS_MAX = 1_000;
/** Name of a part, in bytes. */
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
 * missing is an error, never fewer parts.
 *
 * This is busboy's inner parser and not busboy, which passes over parts without a name in silence, makes text of parts
 * without a `filename`, and keeps their other headers to itself.
 */
export function readParts(body: Uint8Array, boundary: string): Promise<Part[]> {
  return new Promise((resolve, reject) => {
    const drafts: Draft[] = [];
    let partsOpen = 0;
    let finished = false;
    // The parser counts no empty part, so it may finish before such a part has ended.
    const settle = (): void => {
      if (!finished || partsOpen > 0) return;
      try {
        resolve(drafts.map(partOf));
      } catch (error) {
        reject(error);
      }
    };

    // Its types do not know the size; the spread keeps them from taking it for a mistake.
    const parser = new Dicer({ boundary, maxHeaderPairs: HEADER_PAIRS_MAX, ...{ maxHeaderSize: HEADER_BYTES_MAX } });
    parser.on('part', (stream) => {
      const draft: Draft = { position: drafts.length + 1, header: undefined, chunks: [] };
      drafts.push(draft);
      if (draft.position > PARTS_MAX) reject(new Refusal(413, `The body has more than ${PARTS_MAX} parts`));
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
  return `in part ${last.position}, ${nameIn(last.header?.['content-disposition']?.[0]) ?? 'whose header is not whole'}`;
}

function partOf({ position, header, chunks }: Draft): Part {
  const name = nameIn(header?.['content-disposition']?.[0]);
  if (name === undefined) {
    throw new Refusal(400, `Part ${position} has no Content-Disposition of the form: form-data; name="…"`);
  }
  if (name.length > PART_NAME_BYTES_MAX) {
    throw new Refusal(400, `The name of part ${position} is longer than ${PART_NAME_BYTES_MAX} bytes`);
  }
  const encoding = header?.['content-transfer-encoding']?.[0]?.toLowerCase() ?? 'binary';
  if (!['7bit', '8bit', 'binary'].includes(encoding)) {
    throw new Refusal(400, `Part ${position} is in transfer encoding ${JSON.stringify(encoding)}; send it as it is`);
  }
  return {
    name: Buffer.from(name, 'latin1').toString('utf8'),
    contentType: header?.['content-type']?.[0]?.trim(),
    contentLength: header?.['content-length']?.[0]?.trim(),
    bytes: chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks),
  };
}

const PARAMETER = /\s*;\s*([\w*-]+)=(?:"([^"]*)"|([^\s;"]*))\s*/y;

/**
 * The `name` of a Content-Disposition, or undefined when that has another form. Quotes and line breaks in a name are
 * written `%22`, `%0D` and `%0A`, and there is no other escape (HTML standard, "Multipart form data").
 */
function nameIn(disposition: string | undefined): string | undefined {
  const type = /^\s*form-data/i.exec(disposition ?? '');
  if (disposition === undefined || type === null) return undefined;
  let name: string | undefined;
  PARAMETER.lastIndex = type[0].length;
  while (PARAMETER.lastIndex < disposition.length) {
    const match = PARAMETER.exec(disposition);
    if (match === null) return undefined;
    if (match[1]?.toLowerCase() === 'name') name ??= match[2] ?? match[3];
  }
  return name?.replaceAll(/%(22|0D|0A)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
