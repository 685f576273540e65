import { type Fields, firstText } from '../payload/fields.ts';

/** What the base64 of a file of each type starts with. RIFF, in which images and audio begin, is followed by a size. */
const STARTS: readonly (readonly [RegExp, string])[] = [
  [/^iVBORw0KGgo/, 'image/png'],
  [/^\/9j\//, 'image/jpeg'],
  [/^R0lGOD/, 'image/gif'],
  [/^UklGR.{6}XRUJQ/, 'image/webp'],
  [/^UklGR.{6}XQVZF/, 'audio/wav'],
  [/^JVBERi/, 'application/pdf'],
  [/^SUQz/, 'audio/mpeg'],
];

/** Returns the decoded size of base64 text in bytes. Padding is optional. */
export function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/** Returns the MIME type of base64 by its first bytes, or undefined if they tell none. */
export function typeOfBytes(base64: string): string | undefined {
  return STARTS.find(([start]) => start.test(base64))?.[1];
}

/** Returns the MIME type that an object with media of a kind, such as `audio`, declares, also by a `format`. */
export function declaredType(kind: string, media: Fields): string | undefined {
  const { mediaType, media_type, mimeType, mime_type, format } = media;
  const declared = firstText(mediaType, media_type, mimeType, mime_type, format);
  if (declared === undefined || declared !== format || declared.includes('/')) return declared;
  return `${/^(image|audio|video)$/.test(kind) ? kind : 'application'}/${format === 'mp3' ? 'mpeg' : format}`;
}
