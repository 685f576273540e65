import { parseDataUri } from '../payload/attachment.ts';
import { textOf } from './fields.ts';

/** Stands for media that came as base64: a marker of how much there was, so that an answer is not all pixels. */
export function mediaMarker(kind: 'Image' | 'Audio', base64: string): string {
  return `[${kind}: ${base64Bytes(base64)} bytes]`;
}

/** How many bytes base64 text, padded or not, stands for. */
export function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/** Base64 as a data URI, which leaves its payload for an attachment. Undefined where it is so short that it would stay, or is none. */
export function dataUriOf(mimeType: unknown, base64: unknown): string | undefined {
  if (textOf(base64) === undefined) return undefined;
  const uri = `data:${mimeType};base64,${base64}`;
  return parseDataUri(uri) === undefined ? undefined : uri;
}
