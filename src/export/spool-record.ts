import { ATTACHMENTS_MAX, type HeldAttachment, isAttachmentName, isMimeType } from '../payload/attachment.ts';
import { isBlob } from '../payload/platform.ts';
import { type EncodedRun, mainJson, parseMainJson } from '../run/encoded-run.ts';
import { isRunId } from '../run/ids.ts';
import { dropAttachments } from './delivery.ts';

/** What goes to disk of one run: what a post or a patch of it would say, redacted already. */
export interface SpooledRecord {
  readonly op: 'post' | 'patch';
  /** Whether it carries the end of the run. */
  readonly isEnded: boolean;
  readonly run: EncodedRun;
}

/** Who a run is. */
export type RunName = Readonly<Pick<EncodedRun, 'id' | 'traceId' | 'name'>>;

/**
 * A record as bytes: sections, each after its length in four bytes.
 *
 *     {"op":"post","isEnded":true} | main part | inputs | outputs | events | (name | type | bytes) of each attachment
 *
 * A payload that there is none of is an empty section. Blobs cannot be read at once: they are left out, and the metadata that
 * is written says how many. The run itself is left as it is.
 */
export function encodeRecord({ op, isEnded, run }: SpooledRecord): Uint8Array {
  const written = withoutBlobs(run);
  const sections: (string | Uint8Array)[] = [
    `{"op":"${op}","isEnded":${isEnded}}`,
    mainJson(written, isEnded),
    written.inputs ?? '',
    (isEnded ? written.outputs : undefined) ?? '',
    (isEnded ? written.events : undefined) ?? '',
  ];
  for (const { name, mimeType, bytes } of written.attachments ?? []) sections.push(name, mimeType, bytes as Uint8Array);
  return joined(sections);
}

/** The record that these bytes are; undefined where they are none. Never throws. */
export function decodeRecord(bytes: Uint8Array): SpooledRecord | undefined {
  try {
    const sections = sectionsOf(bytes);
    if (sections === undefined || sections.length < 5) return undefined;
    const [header, main, inputs, outputs, events] = sections.slice(0, 5).map((section) => utf8.decode(section));
    const { op, isEnded } = JSON.parse(header as string) as Partial<SpooledRecord>;
    const run = parseMainJson(main as string);
    const attachments = attachmentsOf(sections.slice(5));
    if ((op !== 'post' && op !== 'patch') || typeof isEnded !== 'boolean') return undefined;
    if (run === undefined || attachments === undefined) return undefined;
    run.inputs = payloadOf(inputs, '{');
    run.outputs = payloadOf(outputs, '{');
    run.events = payloadOf(events, '[');
    if (attachments.length > 0) run.attachments = attachments;
    return { op, isEnded, run };
  } catch {
    // Text that is no UTF-8 or no JSON, or nests too deep.
    return undefined;
  }
}

/**
 * Whose record these bytes were, as far as they can still be read; empty text for what cannot. The id stands in two places, of
 * which one may be enough.
 */
export function salvageRecord(bytes: Uint8Array): RunName {
  const text = lenientUtf8.decode(bytes.subarray(0, SALVAGED_BYTES_MAX));
  const id = /"(?:id|dotted_order)":"[^"]*?([0-9a-f-]{36})"/.exec(text)?.[1] ?? '';
  const traceId = /"trace_id":"([0-9a-f-]{36})"/.exec(text)?.[1] ?? '';
  const name = /"name":("(?:[^"\\]|\\.)*")/.exec(text)?.[1] ?? '""';
  return { id: isRunId(id) ? id : '', traceId: isRunId(traceId) ? traceId : '', name: textIn(name) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const lenientUtf8 = new TextDecoder();

/** In which a damaged record is looked through for whose it was; what says so stands at its beginning. */
const SALVAGED_BYTES_MAX = 16_384;

const LENGTH_BYTES = 4;

function withoutBlobs(run: EncodedRun): EncodedRun {
  const blobs = run.attachments?.filter(({ bytes }) => isBlob(bytes)) ?? [];
  if (blobs.length === 0) return run;
  const written = { ...run };
  dropAttachments(written, blobs);
  return written;
}

function joined(sections: readonly (string | Uint8Array)[]): Uint8Array {
  const lengths = sections.map((section) => Buffer.byteLength(section));
  const bytes = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + LENGTH_BYTES + length, 0));
  let at = 0;
  sections.forEach((section, index) => {
    const length = lengths[index] as number;
    at = bytes.writeUInt32BE(length, at);
    if (typeof section !== 'string') bytes.set(section, at);
    // Text of one byte per character, nearly all of it, is copied instead of encoded.
    else bytes.write(section, at, length === section.length ? 'latin1' : 'utf8');
    at += length;
  });
  return bytes;
}

function sectionsOf(bytes: Uint8Array): Uint8Array[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sections: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < LENGTH_BYTES) return undefined;
    const length = view.getUint32(at);
    at += LENGTH_BYTES;
    if (length > bytes.length - at) return undefined;
    sections.push(bytes.subarray(at, at + length));
    at += length;
  }
  return sections;
}

function payloadOf(text: string | undefined, opening: '{' | '['): string | undefined {
  if (text === undefined || text === '') return undefined;
  JSON.parse(text);
  if (!text.startsWith(opening)) throw new TypeError('expected a payload');
  return text;
}

function attachmentsOf(sections: readonly Uint8Array[]): HeldAttachment[] | undefined {
  if (sections.length % 3 !== 0 || sections.length > 3 * ATTACHMENTS_MAX) return undefined;
  const attachments: HeldAttachment[] = [];
  for (let at = 0; at < sections.length; at += 3) {
    const [name, mimeType] = [utf8.decode(sections[at]), utf8.decode(sections[at + 1])];
    if (!isAttachmentName(name) || !isMimeType(mimeType)) return undefined;
    // A copy: a view would hold on to the whole file.
    attachments.push({ name, mimeType, bytes: new Uint8Array(sections[at + 2] as Uint8Array) });
  }
  return attachments;
}

function textIn(json: string): string {
  try {
    return JSON.parse(json) as string;
  } catch {
    return '';
  }
}
