import { parseDataUri } from '../payload/attachment.ts';
import { type Fields, textOf } from './fields.ts';

/** Returns a marker that replaces base64 in an answer, for example `[Image: 70 bytes]`. */
export function mediaMarker(kind: 'Image' | 'Audio', base64: string): string {
  return `[${kind}: ${base64Bytes(base64)} bytes]`;
}

/** Returns the decoded size of base64 text with or without padding. */
export function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/**
 * Returns base64 as a data URI, which is recorded as an attachment. Returns undefined if the value is not base64 text
 * or is small enough to stay in the payload.
 */
export function dataUriOf(mimeType: unknown, base64: unknown): string | undefined {
  if (textOf(base64) === undefined) return undefined;
  const uri = `data:${mimeType};base64,${base64}`;
  return parseDataUri(uri) === undefined ? undefined : uri;
}

/** Returns a tool call in OpenAI's form, in which the arguments are JSON text. */
export function toolCall(id: unknown, name: unknown, args: unknown): Fields {
  return { id, type: 'function', function: { name, arguments: jsonOf(args) } };
}

/** Returns a value that has no JSON form unchanged. The payload serializer handles such values. */
function jsonOf(value: unknown): unknown {
  try {
    return typeof value === 'string' ? value : JSON.stringify(value);
  } catch {
    return value;
  }
}
