import { IMAGE_TYPES } from '../../receiver/domain/run-view.ts';
import { base64Bytes, typeOfBytes } from '../../services/media-type.ts';

/** Binary data encoded as text: a data URI or base64. */
export interface BinaryText {
  readonly base64: string;
  readonly type: string;
  readonly sizeBytes: number;
}

/** Minimum length of base64 text. Shorter text may be an id or a word. */
const LENGTH_MIN = 256;
const SAMPLE = 4_096;

/** Returns the data in a text. The first bytes only make a declared type more exact: they make no image of audio. */
export function binaryOf(text: string): BinaryText | undefined {
  const [prefix, given = ''] = /^data:([\w.+*/-]*)(?:; ?[\w=.+-]+)*;base64,/i.exec(text.slice(0, 200)) ?? [''];
  const isUri = prefix !== '';
  if (!isUri && (text.length < LENGTH_MIN || !looksLikeBase64(text))) return undefined;
  const base64 = text.slice(prefix.length);
  const declared = given.toLowerCase();
  const known = typeOfBytes(base64);
  const isOpen = /^$|\/octet-stream$/.test(declared) || known?.split('/')[0] === declared.split('/')[0];
  const type = (isOpen && known) || declared || 'application/octet-stream';
  return { base64, type, sizeBytes: base64Bytes(base64) };
}

/** Returns the data URI of a safe image. */
export function imageOf(text: string): string | undefined {
  const found = binaryOf(text);
  return found !== undefined && IMAGE_TYPES.has(found.type) ? `data:${found.type};base64,${found.base64}` : undefined;
}

/** Returns whether a text looks like base64, which mixes cases and digits unlike words and hexadecimal numbers. */
function looksLikeBase64(text: string): boolean {
  const sample = text.slice(0, SAMPLE);
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(sample)) return false;
  return /[a-z]/.test(sample) && /[A-Z]/.test(sample) && /\d/.test(sample);
}
