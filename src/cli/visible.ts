/**
 * Everything that steers a terminal or hides what it shows: control characters (ANSI sequences start with one), line
 * and paragraph separators, lone surrogates, and format characters such as those that reverse the direction of text.
 * The joiners stay, since emoji and several scripts are written with them.
 */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200c\u200d])\p{Cf}/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Text from outside in a form that a terminal only shows: what would steer it is written as an escape. */
export function visible(text: string): string {
  return text.replace(STEERING, (character) => SHORT[character] ?? escapeOf(character.codePointAt(0) ?? 0));
}

function escapeOf(codePoint: number): string {
  const hex = codePoint.toString(16);
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
}
