import type { RunFields } from '../run-message.ts';

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
 * Blocks of the scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Hiragana, Katakana and Han. Not `\p{Script}`,
 * because databases know other versions of Unicode, and the mark of long vowels is in no script.
 */
const UNSPACED_BLOCKS = `e00-eff 1000-109f 1780-17ff a9e0-a9ff aa60-aa7f 116d0-116ff 3005-303c 3040-30ff 31f0-31ff 1aff0-1b16f
  3400-4dbf 4e00-9fff f900-faff 16fe3-16fff 20000-3ffff`;
/** The characters in these blocks, in square brackets of a regular expression. Each of them counts as a word. */
export const UNSPACED: string = UNSPACED_BLOCKS.replace(/[\da-f]+/g, (hex) =>
  String.fromCodePoint(Number.parseInt(hex, 16)),
).replace(/\s+/g, '');
const EACH_UNSPACED = new RegExp(`[${UNSPACED}]`, 'gu');
/** Characters without spaces between them, which a person means as one word. */
const UNSPACED_WORD = new RegExp(`[${UNSPACED}]{2,}`, 'gu');
const BEGINS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'u');

/** Returns the words of a text in lower case and without accents. */
export function indexedWords(text: string): string[] {
  const plain = ASCII.test(text) ? text : withoutMarks(text).replace(EACH_UNSPACED, ' $& ');
  return (plain.toLowerCase().match(WORD) ?? []).map((word) => word.slice(0, WORD_LENGTH_MAX));
}

function withoutMarks(text: string): string {
  return text.normalize('NFKD').replace(MARK, '');
}

/** Parses a search text. Returns undefined if the text contains no words. */
export function parseSearch(text: string): Search | undefined {
  const prefixes: string[] = [];
  const phrases: string[][] = [];
  // Pieces with an odd index were in quotes. An unclosed quote is ignored.
  const pieces = withoutMarks(text)
    .split('"')
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(UNSPACED_WORD, '"$&"')));
  for (const [at, piece] of pieces.join('"').split('"').entries()) {
    const words = indexedWords(piece);
    if (at % 2 === 1 && words.length > 1) phrases.push(words);
    else prefixes.push(...words);
  }
  return prefixes.length + phrases.length === 0 ? undefined : { prefixes, phrases };
}

/** Returns whether a word is a character of a script without spaces. */
export function isUnspaced(word: string): boolean {
  return BEGINS_UNSPACED.test(word);
}

/** Returns the searchable words of a run, with a `BREAK` after each text. */
export function runWords(fields: RunFields): string[] {
  return runTexts(fields).flatMap((text) => [...indexedWords(text), BREAK]);
}

/**
 * Returns the text to index for a run. SQLite's index splits ASCII text itself, because that is faster than `wordsOf`.
 * Text with a NUL character is split here, because SQLite would stop at the NUL.
 */
export function indexText(fields: RunFields): string {
  return runTexts(fields)
    .map((text) => (ASCII.test(text) && !text.includes('\0') ? text.toLowerCase() : indexedWords(text).join(' ')))
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
