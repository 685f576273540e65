/**
 * Matches a token of a tokenizer: a word, a piece of a word, two words joined by a hyphen, a short number, a date or a
 * marker such as `<image>`.
 */
const PIECE =
  /^[^\p{L}\p{N}]{0,8}(?:Ġ?\p{Lu}?[\p{Ll}\p{Lo}\p{M}]{0,20}(?:\p{Lu}\p{Ll}{2,16}|['’]\p{Ll}{1,2}|-\p{Ll}{2,16})?|\p{Lu}{1,12}|\d{1,4}|\d{4}-\d\d-\d\d)[^\p{L}\p{N}]{0,8}$|^<[\w|/ ]{1,40}>$|^\[[A-Z_\d]{1,16}\]$/u;

/** Matches a word, a number or a date in prose. */
const PROSE_WORD =
  /^[^\p{L}\p{N}]{0,8}(?:\p{L}[\p{L}\p{M}'’./-]{0,24}|[\d.,:/%-]{1,16}\p{L}{0,2})?[^\p{L}\p{N}]{0,8}$/u;

/** Matches an authentication scheme, which precedes the credential in a header. */
const SCHEME = /^(?:api-?key|basic|bearer|digest|negotiate|token)$/i;

/** Maximum number of characters examined, from the start of the text. */
const CHARACTERS_MAX = 10_000;

/** Whether a text without spaces looks like a word or a piece of a word rather than a credential. */
export function isPiece(text: string): boolean {
  // A credential has ASCII letters or digits.
  return !/[A-Za-z\d]/.test(text) || (text.length <= 50 && PIECE.test(text));
}

/** Whether a text looks like words rather than a credential. */
export function isPlainText(text: string): boolean {
  const words = text.slice(0, CHARACTERS_MAX).trim().split(/\s+/);
  if (words.length === 1) return isPiece(text);
  if (words.length === 2 && SCHEME.test(words[0] as string)) return false;
  return words.every((word) => !/[A-Za-z\d]/.test(word) || (word.length <= 50 && PROSE_WORD.test(word)));
}
