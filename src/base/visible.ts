const EMOJI_JOINER = String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic})`;

/** ISO 15924 codes of scripts that use zero-width joiners inside words. */
const JOINED_SCRIPTS = 'Arab Beng Deva Gujr Guru Khmr Knda Mlym Mong Mymr Orya Sinh Syrc Taml Telu';

/** A function, so that bundles that use only `escapeOf` contain no call. */
const joinedLetter = (): string => JOINED_SCRIPTS.replace(/(\w+) ?/g, String.raw`\p{sc=$1}`);

/**
 * Matches control characters, line and paragraph separators, lone surrogates and format characters. Format characters
 * (Unicode category Cf) can hide or reorder text. Zero-width joiners inside emoji, and inside words in one of the
 * `JOINED_SCRIPTS`, do not match.
 */
function unsafePattern(): RegExp {
  compiledPattern ??= new RegExp(
    String.raw`[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?!${EMOJI_JOINER}|(?<=[${joinedLetter()}])[\u200c\u200d](?=[${joinedLetter()}]))\p{Cf}`,
    'gu',
  );
  return compiledPattern;
}

let compiledPattern: RegExp | undefined;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Escapes characters that control a terminal, hide text or reorder text. Applied to all log lines and terminal output.
 */
export function visible(text: string): string {
  return text.replace(unsafePattern(), (character) => SHORT_ESCAPES[character] ?? escapeOf(character));
}

/** Like `visible`, but uses JSON escapes, so that the JSON text still parses to the same value. */
export function visibleJson(json: string): string {
  return json.replace(unsafePattern(), (character) =>
    // Keeps line breaks, which are valid white space in JSON.
    character === '\n' ? character : character.split('').map(unitEscapeOf).join(''),
  );
}

export function escapeOf(character: string): string {
  const codePoint = character.codePointAt(0) ?? 0;
  const hex = codePoint.toString(16);
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
}

function unitEscapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
