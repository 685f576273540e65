// The parts of Node that payloads need. Nothing else in this folder uses Node's modules or `Buffer`.
import { Stream } from 'node:stream';
import { types } from 'node:util';

export { Stream, types };

/** Returns the base64 text of bytes. */
export function toBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64');
}

/** Decodes base64 text. Characters outside the alphabet are skipped. */
export function fromBase64(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

export function isBinary(value: unknown): value is ArrayBufferView | ArrayBufferLike {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}

/** Also true for a `File`, which is a `Blob`. */
export function isBlob(value: unknown): value is Blob {
  return typeof Blob === 'function' && value instanceof Blob;
}

/** Returns a view of the bytes, not a copy. Throws if the buffer was transferred. */
export function viewOf(value: ArrayBufferView | ArrayBufferLike): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
