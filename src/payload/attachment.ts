import { fromBase64, toBase64 } from './describe.ts';

/** Content of an attachment. */
export type AttachmentContent = ArrayBufferView | ArrayBufferLike | Blob;

/** An attachment that has not been sent. A Blob never changes, so it is read when it is sent. */
export interface HeldAttachment {
  name: string;
  mimeType: string;
  bytes: Uint8Array | Blob;
}

/** Attachments of one run. Receivers refuse a run that has more. */
export const ATTACHMENTS_MAX = 100;

/** Receivers limit the length of the header line that contains the name. */
const NAME_CHARACTERS_MAX = 256;

/** The type of bytes of unknown content. */
export const UNKNOWN_TYPE = 'application/octet-stream';

/** `type/subtype` with parameters, in characters that a header line may contain (RFC 9110, 8.3.1). */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;[\t\x20-\x7e]*)?$/;

export function isMimeType(value: unknown): value is string {
  return typeof value === 'string' && MIME_TYPE.test(value);
}

/** Dots separate the fields of a part name, so an attachment's name has none. */
export function isAttachmentName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX && !value.includes('.');
}

/**
 * Returns the name as sent (HTML standard, "Multipart form data"). Names are compared in this form, because escapes and
 * invalid Unicode could make two names equal.
 */
export function nameOnWire(name: string): string {
  return safeName(name).toWellFormed().replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}

/**
 * Escapes characters that the standard allows and parsers misread: NUL, which a header line may not contain (RFC 9110, 5.5),
 * and backslashes before the closing quote, which escape the quote in RFC 822.
 */
export function safeName(name: string): string {
  let end = name.length;
  while (name[end - 1] === '\\') end--;
  return name.slice(0, end).replaceAll('\0', '%00') + '%5C'.repeat(name.length - end);
}

/** Returns the size in bytes. Ignores the `size` of a subclass of Blob. */
export function sizeOf(bytes: Uint8Array | Blob): number {
  if (bytes instanceof Uint8Array) return bytes.byteLength;
  const { get } = Object.getOwnPropertyDescriptor(Blob.prototype, 'size') as PropertyDescriptor;
  return get?.call(bytes) as number;
}

/** Returns the type of a Blob, if a header line may contain it. */
export function typeOf({ type }: Blob): string {
  return isMimeType(type) ? type : UNKNOWN_TYPE;
}

/** A shorter data URI stays in its payload. */
const DATA_URI_CHARACTERS_MIN = 1_024;

/** The type of a data URI ends before this index. */
const TYPE_END_MAX = 256;

const BASE64 = ';base64';

/** A data URI, not decoded. */
export interface DataUri {
  readonly mimeType: string;
  /** The number of decoded bytes. */
  readonly byteLength: number;
  readonly base64: string;
}

/** Whether a text is long enough for an attachment and starts like a data URI. */
export function mayBeDataUri(text: string): boolean {
  return text.length > DATA_URI_CHARACTERS_MIN && text.startsWith('data:');
}

/** Parses a text of the form `data:<type>;base64,…`. Returns undefined for any other text. */
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

/** Decodes a data URI. Returns undefined if encoding the bytes again would give another text. */
export function decoded({ base64 }: DataUri): Uint8Array | undefined {
  const bytes = fromBase64(base64);
  return withoutPadding(toBase64(bytes)) === withoutPadding(base64) ? bytes : undefined;
}

function withoutPadding(base64: string): string {
  if (base64.endsWith('==')) return base64.slice(0, -2);
  return base64.endsWith('=') ? base64.slice(0, -1) : base64;
}
