import type { RunFields } from './run-message.ts';

/** A parsed search. */
export interface Search {
  /** Word prefixes. The run must contain a word for each prefix. */
  readonly prefixes: readonly string[];
  /** Phrases. The words of a phrase must be adjacent in the run. */
  readonly phrases: readonly (readonly string[])[];
}

/** Separates the words of two texts, so that no phrase matches across both. Not a word itself. */
const BREAK = '|';

/** Maximum length of a word. Longer words are truncated. */
const WORD_LENGTH_MAX = 64;
/** Maximum number of characters that are searched in a run. */
const TEXT_LENGTH_MAX = 1024 * 1024;

const WORD = /[\p{L}\p{N}_]+/gu;
const MARK = /\p{M}+/gu;
const ASCII = /^[\0-\x7f]*$/;
/**
 * Matches characters in scripts without spaces between words, such as Chinese. Each matched character counts as a word.
 */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;
/** Characters without spaces between them, which a person means as one word. The mark of long vowels is in no script. */
const UNSPACED_WORD = new RegExp(`(?:${UNSPACED.source}|ー){2,}`, 'gu');

/** Returns the words of a text in lower case and without accents. */
export function wordsOf(text: string): string[] {
  const plain = ASCII.test(text) ? text : text.normalize('NFKD').replace(MARK, '').replace(UNSPACED, ' $& ');
  return (plain.toLowerCase().match(WORD) ?? []).map((word) => word.slice(0, WORD_LENGTH_MAX));
}

/** Parses a search text. Returns undefined if the text contains no words. */
export function parseSearch(text: string): Search | undefined {
  const prefixes: string[] = [];
  const phrases: string[][] = [];
  // Pieces with an odd index were in quotes. An unclosed quote is ignored.
  const pieces = text.split('"').map((piece, at) => (at % 2 === 1 ? piece : piece.replace(UNSPACED_WORD, '"$&"')));
  for (const [at, piece] of pieces.join('"').split('"').entries()) {
    const words = wordsOf(piece);
    if (at % 2 === 1 && words.length > 1) phrases.push(words);
    else prefixes.push(...words);
  }
  return prefixes.length + phrases.length === 0 ? undefined : { prefixes, phrases };
}

/** Returns the searchable words of a run, with a `BREAK` after each text. */
export function runWords(fields: RunFields): string[] {
  return runTexts(fields).flatMap((text) => [...wordsOf(text), BREAK]);
}

/**
 * Returns the text to index for a run. SQLite's index splits ASCII text itself, because that is faster than `wordsOf`.
 * Text with a NUL character is split here, because SQLite would stop at the NUL.
 */
export function indexText(fields: RunFields): string {
  return runTexts(fields)
    .map((text) => (ASCII.test(text) && !text.includes('\0') ? text.toLowerCase() : wordsOf(text).join(' ')))
    .join(BREAK);
}

function runTexts(fields: RunFields): string[] {
  const texts: string[] = [];
  let left = TEXT_LENGTH_MAX;
  const { outputs, inputs, extra, tags, error, name } = fields;
  const pending: unknown[] = [outputs, inputs, extra?.metadata, tags, error, name];
  while (pending.length > 0 && left > 0) {
    const value = pending.pop();
    if (typeof value === 'string' || typeof value === 'number') {
      const text = String(value).slice(0, left);
      left -= text.length;
      texts.push(text);
    } else if (typeof value === 'object' && value !== null) {
      const values: unknown[] = Object.values(value);
      for (let at = values.length - 1; at >= 0; at--) pending.push(values[at]);
    }
  }
  return texts;
}

export function isFound({ prefixes, phrases }: Search, words: readonly string[]): boolean {
  return (
    prefixes.every((prefix) => words.some((word) => word.startsWith(prefix))) &&
    phrases.every((phrase) => words.some((_, from) => phrase.every((word, at) => words[from + at] === word)))
  );
}
