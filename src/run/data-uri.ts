import { isMimeType } from './attachment.ts';

/** Shorter ones stay in their payload. */
const CHARACTERS_MIN = 1_024;

/** Where the type of a data URI ends at the latest. */
const TYPE_CHARACTERS_MAX = 256;

const BASE64 = ';base64';

/** Type and bytes of a data URI, which are not decoded yet. */
export interface DataUri {
  readonly mimeType: string;
  /** Bytes that it stands for. */
  readonly byteLength: number;
  readonly base64: string;
}

/** Whether a text is long enough, and begins as a data URI does; for the hot path, which looks at every string. */
export function mayBeDataUri(text: string): boolean {
  return text.length > CHARACTERS_MIN && text.startsWith('data:');
}

/** What a text of the form `data:<type>;base64,…` says of itself; undefined for any other. */
export function parseDataUri(text: string): DataUri | undefined {
  if (!mayBeDataUri(text)) return undefined;
  const head = text.slice('data:'.length, TYPE_CHARACTERS_MAX);
  const comma = head.indexOf(',');
  if (comma < 0 || !head.slice(0, comma).toLowerCase().endsWith(BASE64)) return undefined;
  const mimeType = head.slice(0, comma - BASE64.length);
  if (!isMimeType(mimeType)) return undefined;
  const base64 = text.slice('data:'.length + comma + 1);
  return { mimeType, base64, byteLength: Math.floor((withoutPadding(base64).length * 3) / 4) };
}

/** The bytes, or undefined where the text is not exactly their base64: nothing may be lost by taking the bytes instead. */
export function decoded({ base64 }: DataUri): Uint8Array | undefined {
  const bytes = Buffer.from(base64, 'base64');
  return withoutPadding(bytes.toString('base64')) === withoutPadding(base64) ? bytes : undefined;
}

function withoutPadding(base64: string): string {
  if (base64.endsWith('==')) return base64.slice(0, -2);
  return base64.endsWith('=') ? base64.slice(0, -1) : base64;
}
