import { IMAGE_TYPES } from '../../receiver/domain/run-view.ts';

/** Binary data encoded as text: a data URI or base64. */
export interface BinaryText {
  readonly base64: string;
  readonly type: string;
  readonly sizeBytes: number;
}

/** Minimum length of base64 text. Shorter text may be an id or a word. */
const LENGTH_MIN = 256;
const SAMPLE = 4_096;

const MAGIC: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi', 'application/pdf'],
  ['SUQz', 'audio/mpeg'],
];

export function binaryOf(text: string): BinaryText | undefined {
  const [prefix, type = ''] = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,/i.exec(text.slice(0, 200)) ?? [''];
  const isUri = prefix !== '';
  if (!isUri && (text.length < LENGTH_MIN || !looksLikeBase64(text))) return undefined;
  const base64 = text.slice(prefix.length);
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  const known = MAGIC.find(([start]) => base64.startsWith(start))?.[1];
  return {
    base64,
    type: known ?? (type || 'application/octet-stream'),
    sizeBytes: Math.floor(((base64.length - padding) * 3) / 4),
  };
}

/** Returns the data URI of a safe image. The first bytes tell its type, because the declared type may be wrong. */
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
