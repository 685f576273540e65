import { types } from 'node:util';
import type { Attachment } from './record.ts';

/** A chunk of an attached stream. Text is encoded as UTF-8. */
export type AttachmentChunk = ArrayBufferView | ArrayBufferLike | string;

/** What may be attached. A stream is handed over: it is read at once, and closed when it is left out. */
export type AttachmentContent =
  | ArrayBufferView
  | ArrayBufferLike
  | Blob
  | ReadableStream<AttachmentChunk>
  | AsyncIterable<AttachmentChunk>;

/** An attachment on its way. A Blob never changes, so it is held as it is and read when it is sent. */
export interface HeldAttachment extends Omit<Attachment, 'bytes'> {
  bytes: Uint8Array | Blob;
}

/** Attachments of one run; receivers refuse a run that has more. */
export const ATTACHMENTS_MAX = 100;

/** Characters of a name. Receivers bound the line that it stands in. */
const NAME_CHARACTERS_MAX = 256;

/** The type of bytes of which nothing is known. */
export const UNKNOWN_TYPE = 'application/octet-stream';

/** `type/subtype` with parameters, in characters that a header line may hold (RFC 9110, 8.3.1). */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;[\t\x20-\x7e]*)?$/;

export function isMimeType(value: unknown): value is string {
  return typeof value === 'string' && MIME_TYPE.test(value);
}

/** A part name has its dots elsewhere. */
export function isAttachmentName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX && !value.includes('.');
}

/**
 * The name as it stands on the wire (HTML standard, "Multipart form data"), by which names are told apart: text that is no
 * Unicode, and what looks like an escape, would otherwise become the name of another.
 */
export function nameOnWire(name: string): string {
  const text = Buffer.from(safeName(name)).toString();
  return text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}

/**
 * What the standard leaves as it is, and readers fall over: no line of a header may hold a NUL (RFC 9110, 5.5), and for
 * those who go by RFC 822 a backslash before the quote that ends a name makes it go on behind that.
 */
export function safeName(name: string): string {
  let end = name.length;
  while (name[end - 1] === '\\') end--;
  return name.slice(0, end).replaceAll('\0', '%00') + '%5C'.repeat(name.length - end);
}

export function isBinary(value: unknown): value is ArrayBufferView | ArrayBufferLike {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}

/** Also a File, which is a Blob. */
export function isBlob(value: unknown): value is Blob {
  return typeof Blob === 'function' && value instanceof Blob;
}

/** The bytes of a binary value, not copied; throws when they cannot be reached, as those of a buffer that was transferred. */
export function viewOf(value: ArrayBufferView | ArrayBufferLike): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}

/** Bytes of what is held. A Blob says what it was made with, whatever a subclass says. */
export function sizeOf(bytes: Uint8Array | Blob): number {
  return bytes instanceof Uint8Array ? bytes.byteLength : blobSize(bytes);
}

function blobSize(blob: Blob): number {
  const { get } = Object.getOwnPropertyDescriptor(Blob.prototype, 'size') as PropertyDescriptor;
  return get?.call(blob) as number;
}

/** The type that a Blob says, when a header line may hold it. */
export function typeOf({ type }: Blob): string {
  return isMimeType(type) ? type : UNKNOWN_TYPE;
}
