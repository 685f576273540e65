import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

/**
 * Matches invisible characters and characters that change how others look. Joiners are not matched, because scripts and
 * emoji need them.
 */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: The expression looks for them.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}|[\u{e0000}-\u{e007f}]/gu;

const SHOWN_CHARS = 16_384;
const MORE_CHARS = 65_536;

/** Text from an untrusted source, with hidden characters made visible. */
export function Text({ value }: { value: string }): JSX.Element {
  return (
    <>
      {piecesOf(value).map(({ text, isHidden }, index) =>
        isHidden ? (
          <span key={index} class="hidden-character" title="Hidden character">
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </>
  );
}

/** The beginning of a long text, with a button that shows more. */
export function LongText({
  value,
  children = (shown) => <Text value={shown} />,
}: {
  value: string;
  children?: (shown: string) => JSX.Element;
}): JSX.Element {
  const [length, setLength] = useState(SHOWN_CHARS);
  const left = value.length - length;
  return (
    <>
      {children(left > 0 ? value.slice(0, length) : value)}
      {left > 0 && (
        <>
          {' '}
          <button type="button" class="link" onClick={() => setLength(length + MORE_CHARS)}>
            Show more ({left.toLocaleString('en')} characters left)
          </button>
        </>
      )}
    </>
  );
}

/** An error message, which screen readers read immediately. */
export function Problem({ text }: { text: string | undefined }): JSX.Element | null {
  return text ? (
    <p class="problem" role="alert">
      {text}
    </p>
  ) : null;
}

/** Splits a text into visible pieces and hidden characters. Hidden characters are returned as escapes. */
function piecesOf(text: string): { readonly text: string; readonly isHidden: boolean }[] {
  const pieces: { text: string; isHidden: boolean }[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    if (found === '\r' && text[index + 1] === '\n') continue;
    if (index > end) pieces.push({ text: text.slice(end, index), isHidden: false });
    pieces.push({ text: escaped(found), isHidden: true });
    end = index + found.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isHidden: false });
  return pieces;
}

/** Returns a text as one line with hidden characters escaped, for names and attributes. */
export function visible(text: string): string {
  return text.replace(/\r?\n/g, ' ').replace(HIDDEN, escaped);
}

export function isBlank(text: string): boolean {
  return /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]*$/u.test(text);
}

/** Returns the beginning of a text, followed by an ellipsis if the text is longer. Never splits a surrogate pair. */
export function beginningOf(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text
    .slice(0, charsMax - 1)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd()}…`;
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = (digits: number): string => code.toString(16).padStart(digits, '0');
  return code < 0x100 ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\u{${hex(5)}}`;
}
