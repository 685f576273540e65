import type { RunFields } from './store.ts';

/** What a search asks for. */
export interface Search {
  /** Each has to be the beginning of a word. */
  readonly prefixes: readonly string[];
  /** The words of each have to stand next to each other. */
  readonly phrases: readonly (readonly string[])[];
}

/** Stands between the words of two texts, so that no phrase reaches from one into the other. It is no word. */
export const BREAK = '|';

/** Longer words are those that nobody types: they are looked at up to here. */
const WORD_LENGTH_MAX = 64;
/** Characters of one run that can be found. */
const TEXT_LENGTH_MAX = 1024 * 1024;

const WORD = /[\p{L}\p{N}_]+/gu;
const MARK = /\p{M}+/gu;
const ASCII = /^[\0-\x7f]*$/;
/** Scripts that put no space between words: each character counts as one. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;

/** The words of a text in the one form in which they are compared: lower case, without accents. */
export function wordsOf(text: string): string[] {
  const plain = ASCII.test(text) ? text : text.normalize('NFKD').replace(MARK, '').replace(UNSPACED, ' $& ');
  return (plain.toLowerCase().match(WORD) ?? []).map((word) => word.slice(0, WORD_LENGTH_MAX));
}

/** What somebody has typed; undefined when it has no word in it. */
export function parseSearch(text: string): Search | undefined {
  const prefixes: string[] = [];
  const phrases: string[][] = [];
  // What stands between two quotes is at the odd places; a quote that is not closed is passed over.
  for (const [at, piece] of text.split('"').entries()) {
    const words = wordsOf(piece);
    if (at % 2 === 1 && words.length > 1) phrases.push(words);
    else prefixes.push(...words);
  }
  return prefixes.length + phrases.length === 0 ? undefined : { prefixes, phrases };
}

/** The words of a run by which it is found, with a BREAK after each text. */
export function runWords(fields: RunFields): string[] {
  return runTexts(fields).flatMap((text) => [...wordsOf(text), BREAK]);
}

/**
 * What an index takes the words of a run from: any character that no word has stands between words. ASCII is left to it as it
 * is, since taking that apart here would cost more than all else, but not with a NUL, at which a text would end for it.
 */
export function indexText(fields: RunFields): string {
  return runTexts(fields)
    .map((text) => (ASCII.test(text) && !text.includes('\0') ? text.toLowerCase() : wordsOf(text).join(' ')))
    .join(BREAK);
}

/** The texts by which a run is found. */
function runTexts(fields: RunFields): string[] {
  const texts: string[] = [];
  let left = TEXT_LENGTH_MAX;
  const pending: unknown[] = [
    fields.outputs,
    fields.inputs,
    fields.extra?.metadata,
    fields.tags,
    fields.error,
    fields.name,
  ];
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

/** Whether a run with these words is among those that a search asks for. */
export function isFound({ prefixes, phrases }: Search, words: readonly string[]): boolean {
  return (
    prefixes.every((prefix) => words.some((word) => word.startsWith(prefix))) &&
    phrases.every((phrase) => words.some((_, from) => phrase.every((word, at) => words[from + at] === word)))
  );
}
