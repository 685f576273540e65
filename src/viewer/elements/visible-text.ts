import { escapeOf } from '../../base/visible.ts';

/**
 * Matches characters that are invisible or change how other characters look. Examples are control characters, direction
 * marks, zero-width marks, tags and lone surrogates. Joiners do not match, because scripts and emoji need joiners.
 */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: The pattern matches control characters on purpose.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}|[\u{e0000}-\u{e007f}]/gu;

/** A piece of visible text, or the escape sequence of one hidden character. */
export interface TextPiece {
  readonly text: string;
  readonly isHidden: boolean;
}

/** Splits a text into visible pieces and hidden characters. Each hidden character is a separate piece. */
export function piecesOf(text: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    if (found === '\r' && text[index + 1] === '\n') continue;
    if (index > end) pieces.push({ text: text.slice(end, index), isHidden: false });
    pieces.push({ text: escapeOf(found), isHidden: true });
    end = index + found.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isHidden: false });
  return pieces;
}

/** Returns a text on one line with hidden characters escaped. Use `visibleText` for names and attributes. */
export function visibleText(text: string): string {
  return text.replace(/\r?\n/g, ' ').replace(HIDDEN, escapeOf);
}
