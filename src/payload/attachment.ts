import { diagnostics } from '../base/diagnostics.ts';
import { BINARY_BYTES_KEPT, fromBase64, isBinary, isBlob, toBase64, viewOf } from './describe.ts';
import { mayBeDataUri } from './plain.ts';
import { shownText } from './redaction/redact.ts';
import type { PayloadRules } from './truncate.ts';

/** The content of an attachment: bytes, or a `Blob` that is read when the run is sent. */
export type AttachmentContent = ArrayBufferView | ArrayBufferLike | Blob;

/** An attachment that is waiting to be sent. Blobs are immutable, so they are read only when the attachment is sent. */
export interface WaitingAttachment {
  name: string;
  mimeType: string;
  bytes: Uint8Array | Blob;
}

export type AttachingField = 'inputs' | 'outputs';

/** A payload that may have attachments. A stream's chunks become its `outputs` when the stream ends. */
export type AttachingPayload = AttachingField | 'chunks';

export interface AttachmentRoom {
  readonly bytesLeft: number;
  readonly countLeft: number;
  isTaken(name: string): boolean;
}

export interface AttachmentPolicy {
  /** Maximum total size of a run's attachments, in bytes. */
  readonly attachmentBytes: number;
  readonly payload: PayloadRules;
  /** Whether plain data is copied, and encoded when its text is read. */
  readonly isLazy?: boolean;
}

/** Keeps a run's attachment names unique, and limits the number and total size of the attachments. */
export class RunAttachments implements AttachmentRoom {
  readonly #record: { attachments: WaitingAttachment[] | undefined };
  readonly #policy: AttachmentPolicy;
  readonly #names = new Set<string>();
  readonly #ofPayloads = new Map<AttachingPayload, string[]>();
  #bytes = 0;

  constructor(record: { attachments: WaitingAttachment[] | undefined }, policy: AttachmentPolicy) {
    this.#record = record;
    this.#policy = policy;
  }

  get bytesLeft(): number {
    return this.#policy.attachmentBytes - this.#bytes;
  }

  get countLeft(): number {
    return ATTACHMENTS_MAX - this.#names.size;
  }

  isTaken(name: string): boolean {
    return this.#names.has(nameOnWire(name));
  }

  /** Adds an attachment. If an argument is invalid or a limit is reached, logs a warning and adds nothing. */
  attach(given: unknown, content: unknown, mimeType: unknown): void {
    const name = typeof given === 'string' ? this.#shown(given) : given;
    const complaint = this.#complaint(name, content, mimeType);
    if (complaint !== undefined) {
      const line = `Run.attach(name, content, mimeType): ${complaint}; the attachment was ignored.`;
      diagnostics.warnOnce(`Run.attach ${complaint}`, line);
      return;
    }
    const shown = name as string;
    const type = (mimeType ?? (isBlob(content) ? blobType(content) : UNKNOWN_TYPE)) as string;
    const bytes = isBlob(content) ? content : viewOf(content as ArrayBufferView).slice();
    this.#names.add(nameOnWire(shown));
    this.#hold([{ name: shown, mimeType: type, bytes }]);
  }

  keep(payload: AttachingPayload, attachments: readonly WaitingAttachment[]): void {
    const names = attachments.map(({ name }) => name);
    for (const name of names) this.#names.add(nameOnWire(name));
    this.#hold(attachments);
    this.#ofPayloads.set(payload, [...(this.#ofPayloads.get(payload) ?? []), ...names]);
  }

  forget(payload: AttachingPayload): void {
    const replaced = this.#ofPayloads.get(payload);
    if (replaced === undefined) return;
    this.#ofPayloads.delete(payload);
    const kept: WaitingAttachment[] = [];
    for (const attachment of this.#record.attachments ?? []) {
      if (!replaced.includes(attachment.name)) {
        kept.push(attachment);
        continue;
      }
      this.#bytes -= sizeOf(attachment.bytes);
      this.#names.delete(nameOnWire(attachment.name));
    }
    this.#record.attachments = kept;
  }

  /** Masks secrets in a name. Appends a number if another attachment already has the masked name. */
  #shown(name: string): string {
    const shown = shownText(name, this.#policy.payload.redaction, ['attachments', undefined]);
    if (shown === name) return name;
    const mask = shown.replaceAll('.', '_');
    let free = mask;
    for (let number = 2; this.isTaken(free); number++) free = `${mask} ${number}`;
    return free;
  }

  #complaint(name: unknown, content: unknown, mimeType: unknown): string | undefined {
    if (this.#policy.payload.redaction?.hidesAll === true) return 'every payload is hidden';
    if (!isAttachmentName(name)) return 'expected `name` to be a string of at most 256 characters, without a dot';
    if (!isBinary(content) && !isBlob(content)) return 'expected `content` to be bytes or a Blob; read a stream first';
    if (mimeType !== undefined && !isMimeType(mimeType))
      return 'expected `mimeType` to be a string such as "image/png"';
    if (this.isTaken(name)) return 'expected `name` to be unique within the run';
    if (this.countLeft <= 0) return `a run had more than ${ATTACHMENTS_MAX} attachments`;
    return sizeOf(content) > this.bytesLeft ? 'the attachments of a run exceeded limits.attachmentBytes' : undefined;
  }

  #hold(attachments: readonly WaitingAttachment[]): void {
    for (const { bytes } of attachments) this.#bytes += sizeOf(bytes);
    this.#record.attachments = [...(this.#record.attachments ?? []), ...attachments];
  }
}

/**
 * Extracts large binary values, Blobs and data URIs from one payload, and replaces them with markers. If a value occurs
 * several times, it is attached once.
 */
export class PayloadAttachments {
  readonly #field: AttachingField;
  readonly #bytesMax: number;
  readonly #room: AttachmentRoom | undefined;
  readonly #markers = new Map<unknown, string>();
  #bytes = 0;
  #number = 0;
  #taken: WaitingAttachment[] | undefined;

  /**
   * `room` is the remaining space for attachments. If the run has no attachments yet, `room` is undefined and
   * `bytesMax` applies.
   */
  constructor(field: AttachingField, bytesMax: number, room?: AttachmentRoom) {
    this.#field = field;
    this.#bytesMax = bytesMax;
    this.#room = room;
  }

  get taken(): readonly WaitingAttachment[] | undefined {
    return this.#taken;
  }

  /** Attaches a Blob or a large binary value. Returns the object to record instead of the value. */
  describe(value: object): Readonly<Record<string, unknown>> | undefined {
    const isLarge = isBinary(value) && value.byteLength > BINARY_BYTES_KEPT;
    if (!isLarge && !isBlob(value)) return undefined;
    const byteLength = sizeOf(value);
    return { type: value.constructor.name, byteLength, attachment: this.#attach(value, byteLength) };
  }

  /** Attaches a long data URI and returns its marker. Returns undefined for other strings. */
  attachText(text: string): string | undefined {
    const uri = parseDataUri(text);
    if (uri === undefined) return undefined;
    const known = this.#markers.get(text);
    if (known !== undefined) return known;
    let name = 'left out';
    if (this.#hasRoom(uri.byteLength)) {
      const bytes = decoded(uri);
      if (bytes === undefined) return undefined;
      name = this.#add(bytes, uri.mimeType);
    }
    return this.#remember(text, `[Attachment ${name}: ${uri.mimeType}, ${uri.byteLength} bytes]`);
  }

  /** Discards all attachments, because the payload could not be serialized. */
  clear(): void {
    this.#taken = undefined;
  }

  /** Returns the attachment's name, or a marker if a limit is reached. */
  #attach(value: ArrayBufferView | ArrayBufferLike | Blob, size: number): string {
    const known = this.#markers.get(value);
    if (known !== undefined) return known;
    let marker = `[Left out: ${size} bytes]`;
    if (this.#hasRoom(size)) {
      marker = isBlob(value) ? this.#add(value, blobType(value)) : this.#add(viewOf(value).slice(), UNKNOWN_TYPE);
    }
    return this.#remember(value, marker);
  }

  #remember(source: unknown, marker: string): string {
    this.#markers.set(source, marker);
    return marker;
  }

  #hasRoom(size: number): boolean {
    const { bytesLeft, countLeft } = this.#room ?? { bytesLeft: this.#bytesMax, countLeft: ATTACHMENTS_MAX };
    if (this.#bytes + size <= bytesLeft && (this.#taken?.length ?? 0) < countLeft) return true;
    diagnostics.warnOnce(
      'payload attachments',
      `the payloads of a run exceeded limits.attachmentBytes or ${ATTACHMENTS_MAX} attachments; excess binary values were removed.`,
    );
    return false;
  }

  #add(bytes: Uint8Array | Blob, mimeType: string): string {
    let name = `${this.#field}_${++this.#number}`;
    while (this.#room?.isTaken(name) === true) name = `${this.#field}_${++this.#number}`;
    this.#bytes += sizeOf(bytes);
    this.#taken ??= [];
    this.#taken.push({ name, bytes, mimeType });
    return name;
  }
}

/** Maximum number of attachments per run. Services reject runs with more attachments. */
export const ATTACHMENTS_MAX = 100;

/** Maximum length of an attachment name. Services limit the length of the header line with the name. */
const NAME_CHARACTERS_MAX = 256;

export const UNKNOWN_TYPE = 'application/octet-stream';

/** Rejects characters that header lines cannot contain (RFC 9110). */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;[\t\x20-\x7e]*)?$/;

export function isMimeType(value: unknown): value is string {
  return typeof value === 'string' && MIME_TYPE.test(value);
}

/**
 * Whether a value is a valid attachment name. Dots are invalid, because they separate the fields in multipart part
 * names.
 */
export function isAttachmentName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX && !value.includes('.');
}

/**
 * Encodes an attachment name for a multipart request (HTML standard, "Multipart form data"). Encoded names must be
 * unique within a run, because the service receives only encoded names.
 */
function nameOnWire(name: string): string {
  return safeName(name).toWellFormed().replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}

/**
 * Escapes NUL characters and trailing backslashes. Header lines must not contain NUL (RFC 9110, 5.5). RFC 822 parsers
 * treat a backslash before the closing quote as an escape.
 */
export function safeName(name: string): string {
  let end = name.length;
  while (name[end - 1] === '\\') end--;
  return name.slice(0, end).replaceAll('\0', '%00') + '%5C'.repeat(name.length - end);
}

/** Reads `size` from `Blob.prototype`, because a subclass may override it. */
export function sizeOf(content: AttachmentContent): number {
  return isBlob(content) ? (Reflect.get(Blob.prototype, 'size', content) as number) : content.byteLength;
}

export function blobType({ type }: Blob): string {
  return isMimeType(type) ? type : UNKNOWN_TYPE;
}

/** Maximum position of the comma in a data URI. */
const TYPE_END_MAX = 256;

const BASE64 = ';base64';

interface DataUri {
  readonly mimeType: string;
  readonly byteLength: number;
  readonly base64: string;
}

/** Parses a data URI, `data:<type>;base64,…`, if it is long enough to become an attachment. */
export function parseDataUri(text: string): DataUri | undefined {
  if (!mayBeDataUri(text)) return undefined;
  const head = text.slice('data:'.length, TYPE_END_MAX);
  const comma = head.indexOf(',');
  if (comma < 0 || !head.slice(0, comma).toLowerCase().endsWith(BASE64)) return undefined;
  const mimeType = head.slice(0, comma - BASE64.length);
  if (!isMimeType(mimeType)) return undefined;
  const base64 = text.slice('data:'.length + comma + 1);
  return { mimeType, base64, byteLength: Math.floor((withoutPadding(base64).length * 3) / 4) };
}

/** Decodes a data URI. Returns undefined if the content is not canonical base64. */
export function decoded({ base64 }: DataUri): Uint8Array | undefined {
  const bytes = fromBase64(base64);
  return withoutPadding(toBase64(bytes)) === withoutPadding(base64) ? bytes : undefined;
}

function withoutPadding(base64: string): string {
  if (base64.endsWith('==')) return base64.slice(0, -2);
  return base64.endsWith('=') ? base64.slice(0, -1) : base64;
}
