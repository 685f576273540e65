/** Text that stands for bytes: a data URI, or base64 by itself. */
export interface BinaryText {
  readonly base64: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
}

/** Shorter text is as easily an id or a word. */
const LENGTH_MIN = 256;
/** Characters that are looked at: base64 is so all the way or not at all. */
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
    size: Math.floor(((base64.length - padding) * 3) / 4),
  };
}

/** A picture that is safe to show: drawn from pixels, by what it begins with and not by what it says it is. */
export function pictureOf(text: string): string | undefined {
  const found = binaryOf(text);
  return found !== undefined && SHOWN.has(found.type) ? `data:${found.type};base64,${found.base64}` : undefined;
}

/** Types of pictures that hold nothing but pixels. */
export const SHOWN: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Lower and upper case and digits among each other, as no word and no hexadecimal number has them. */
function looksLikeBase64(text: string): boolean {
  const sample = text.slice(0, SAMPLE);
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(sample)) return false;
  return /[a-z]/.test(sample) && /[A-Z]/.test(sample) && /\d/.test(sample);
}
