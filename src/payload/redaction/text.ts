import { latePattern } from '../../base/late-pattern.ts';
import { isPlainText, type SecretNames, URL_NAMES } from './names.ts';
import type { Trail } from './paths.ts';
import { type Mask, UrlSecrets } from './urls.ts';

const SPACE = 0x20;
const QUOTE = 0x22;
const SLASH = 0x2f;
const COLON = 0x3a;
const CAPITAL_Z = 0x5a;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
const OPENING_BRACE = 0x7b;
const BYTE_ORDER_MARK = 0xfeff;

/** Minimum length of a string with the name and value of a secret. */
const CHARACTERS_MIN = 9;

/** Maximum number of characters examined at the end of a key in JSON text. */
const NAME_CHARACTERS_MAX = 128;

/** Maximum number of characters between a key's last letter and the next `"`, `=` or `:`. */
const GAP_MAX = 16;

/**
 * Whether a text may contain names of secrets. Returns true for JSON text, header lines, URL paths and any text with a
 * URL.
 */
export function mayHoldNames(text: string): boolean {
  if (text.length < CHARACTERS_MIN) return false;
  const start = startOf(text);
  if (start === PATH) return true;
  // Most ids and names contain no colon, and `includes` is faster than a loop.
  if (start === LETTER) return text.includes(':') && (startsLikeHead(text) || text.includes('://'));
  return text.includes('://') || (start === JSON_TEXT && isLikeJson(text));
}

// Kinds of text, determined by the first character.
const OTHER = 0;
const LETTER = 1;
const PATH = 2;
const JSON_TEXT = 3;

const STARTS = new Uint8Array(0x80).fill(JSON_TEXT, 0, SPACE + 1);
for (const character of '{["') STARTS[character.charCodeAt(0)] = JSON_TEXT;
for (const character of '/?') STARTS[character.charCodeAt(0)] = PATH;
for (let code = 0x41; code <= 0x5a; code++) STARTS.fill(LETTER, code, code + 1).fill(LETTER, code + 0x20, code + 0x21);

/**
 * Whether a string in JSON text may be masked, judged by its first characters. `start` and `end` are the indexes of its
 * characters. Ignores URLs inside the string.
 */
export function mayBeMasked(json: string, start: number, end: number): boolean {
  const kind = startOf(json, start);
  if (kind === LETTER) return startsLikeHead(json, start, end);
  if (kind === OTHER && json.charCodeAt(start) !== BACKSLASH) return false;
  return kind === PATH || mayStartJson(json, start, end);
}

/** Whether a string in JSON text may begin with JSON text, after white space and quotes. */
function mayStartJson(json: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = json.charCodeAt(at);
    if (code === BACKSLASH) {
      const escaped = json.charCodeAt(++at);
      if (escaped === BACKSLASH || escaped === SMALL_U || escaped === SLASH) return true;
    } else if (code !== SPACE) return code === OPENING_BRACE || code === OPENING_BRACKET || code >= 0x80;
  }
  return false;
}

function startOf(text: string, at = 0): number {
  const first = text.charCodeAt(at);
  if (first < 0x80) return STARTS[first] as number;
  return first === BYTE_ORDER_MARK ? JSON_TEXT : OTHER;
}

/** Lookup table by character code. An entry is 1 if header names may contain the character. */
const IN_NAME = new Uint8Array(0x80);
for (let code = 0; code < 0x80; code++) if (/[\w-]/.test(String.fromCharCode(code))) IN_NAME[code] = 1;

const HEADER_NAME_CHARACTERS_MAX = 64;

/** Whether a text begins with a header line or an HTTP start line. The text must begin with a letter. */
function startsLikeHead(text: string, start = 0, end: number = text.length): boolean {
  const stop = Math.min(end, start + HEADER_NAME_CHARACTERS_MAX + 1);
  let at = start + 1;
  let code = 0;
  for (; at < stop; at++) {
    code = text.charCodeAt(at);
    if (code >= 0x80 || IN_NAME[code] === 0) break;
  }
  if (code === COLON) return text.charCodeAt(at + 1) === SPACE;
  if ((code !== SPACE && code !== SLASH) || at - start < 3 || at - start > 7) return false;
  // The second letter of an HTTP method is upper-case. Checking this letter first rejects most strings quickly.
  return text.charCodeAt(start + 1) <= CAPITAL_Z && METHOD.test(text.slice(start, at));
}

const METHOD = /^[A-Z]+$/;

/** Whether a text starts like a JSON object or array, or like a JSON string with such JSON inside. */
function isLikeJson(text: string): boolean {
  const first = text.charCodeAt(0);
  if (first === OPENING_BRACE || first === OPENING_BRACKET) return true;
  const isBefore = first <= SPACE || first === QUOTE || first === BYTE_ORDER_MARK;
  return isBefore && /^(?:[\s"]|\\[nrt]?)+[{[]/.test(text);
}

const otherThanLetters = latePattern(String.raw`[^\p{L}]+$`, 'u');

/** Masks the values of secrets in JSON text, header lines and URLs. Runs in linear time. */
export class TextSecrets {
  readonly #names: SecretNames;
  readonly #mask: Mask;
  readonly #urls: UrlSecrets;
  /** Lookup table by the result of `endOf`. An entry is 1 if a secret's name may end with these three letters. */
  readonly #ends = new Uint8Array(0x8000);

  constructor(names: SecretNames, mask: Mask) {
    this.#names = names;
    this.#mask = mask;
    this.#urls = new UrlSecrets(names, mask);
    for (const word of [...names.lastWords, ...URL_NAMES]) {
      for (const spelling of [word, word.toUpperCase()]) this.#addEnd(spelling.replace(otherThanLetters(), ''));
    }
  }

  /** Masks the secrets in a text. Valid JSON text stays valid. */
  masked(text: string, trail: Trail): string {
    const json = isLikeJson(text) && this.isLikelyIn(text) ? this.#maskJson(text, trail) : undefined;
    return json ?? this.#urls.masked(this.#maskHead(text, trail), trail);
  }

  /**
   * Whether `masked` may change the text. Ignores URLs inside the text, because `hasSecretUrl` finds them. This check
   * must be fast, because it runs for every string.
   */
  mayMask(text: string): boolean {
    const start = startOf(text);
    if (start === OTHER) return false;
    if (start === LETTER) return text.includes(':') && startsLikeHead(text) && this.#maskHead(text, NO_TRAIL) !== text;
    if (start === PATH) return this.#urls.masked(text, NO_TRAIL) !== text;
    return isLikeJson(text) && this.isLikelyIn(text);
  }

  hasSecretUrl(json: string): boolean {
    return this.#urls.areIn(json);
  }

  /** Whether JSON text may contain a secret's name before `"`, `=` or `: `, or an escape within a name. */
  isLikelyIn(json: string): boolean {
    // Searching with `indexOf` is several times faster than a loop over the characters.
    for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at + 1)) {
      if (this.#isNameBefore(json, at)) return true;
    }
    for (let at = json.indexOf('='); at >= 0; at = json.indexOf('=', at + 1)) {
      if (this.#isEndBefore(json, at)) return true;
    }
    for (let at = json.indexOf(': '); at >= 0; at = json.indexOf(': ', at + 1)) {
      if (this.#isHeaderBefore(json, at)) return true;
    }
    for (let at = json.indexOf('\\'); at >= 0; at = json.indexOf('\\', at + 1)) {
      if (isEscapeOfName(json, at)) return true;
    }
    return false;
  }

  #addEnd(word: string): void {
    const code = endOf(word, word.length - 1);
    if (word.length >= 3) this.#ends[code] = 1;
    else
      for (let other = 0; other < 0x8000; other += word.length < 2 ? 0x20 : 0x400)
        this.#ends[other | (code & 0x3ff)] = 1;
  }

  #isNameBefore(json: string, quote: number): boolean {
    return this.#isEndBefore(json, quote) && this.#isName(nameBefore(json, nameEnd(json, quote)));
  }

  #isHeaderBefore(json: string, colon: number): boolean {
    if (json.charCodeAt(colon - 1) === QUOTE || !this.#isEndBefore(json, colon)) return false;
    return this.#isName(nameBefore(json, colon).replace(/^.*\\[nr]/, ''));
  }

  /** Whether a secret's name may end before the `"`, `=` or `:` at index `mark`. */
  #isEndBefore(text: string, mark: number): boolean {
    return this.#ends[endOf(text, nameEnd(text, mark) - 1)] === 1;
  }

  #isName(name: string): boolean {
    return this.#names.kindOf(name) !== undefined;
  }

  /** Returns masked JSON text, or undefined if the text is valid JSON without secrets. */
  #maskJson(text: string, trail: Trail): string | undefined {
    try {
      const value: unknown = JSON.parse(text.trimStart());
      const shown = this.#copy(value, [...trail]);
      return shown === value ? undefined : text.slice(0, text.search(/[[{"]/)) + JSON.stringify(shown);
    } catch {
      // The text is invalid JSON or is nested too deeply for the call stack.
      return this.#urls.masked(this.#maskQuoted(text, trail), trail);
    }
  }

  /** Returns a copy of a value with its secrets masked, or the value itself if it has no secrets. */
  #copy(value: unknown, trail: (string | number)[], parent?: object): unknown {
    if (typeof value === 'string') return mayHoldNames(value) ? this.masked(value, trail) : value;
    if (typeof value !== 'object' || value === null) return value;
    const isList = Array.isArray(value);
    const isNamed = isList && this.#names.isNamedList(value.length, parent, trail.at(-1));
    let copy: object | undefined;
    for (const [key, inner] of Object.entries(value)) {
      const index = Number(key);
      trail.push(isList ? index : key);
      const isHidden = isList
        ? isNamed && index % 2 === 1 && this.#names.hidesAfter(value[index - 1], inner)
        : this.#names.hides(key, inner, value);
      const shown = isHidden ? this.#mask(inner, trail) : this.#copy(inner, trail, value);
      trail.pop();
      if (shown === inner) continue;
      copy ??= isList ? [...value] : { ...value };
      Object.defineProperty(copy, key, { value: shown, enumerable: true, configurable: true, writable: true });
    }
    return copy ?? value;
  }

  /** Masks strings and numbers after quoted names in invalid JSON, for example in truncated JSON. */
  #maskQuoted(text: string, trail: Trail): string {
    let shown = '';
    let copied = 0;
    for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) {
      if (at < copied || !this.#isNameBefore(text, at)) continue;
      const [start, end] = valueAfter(text, at);
      const value = text.slice(start, end);
      const name = nameBefore(text, nameEnd(text, at));
      if (!this.#names.hides(name, value, {})) continue;
      const mask = JSON.stringify(this.#mask(value, [...trail, name]));
      shown += text.slice(copied, start) + (text.charCodeAt(start - 1) === QUOTE ? mask.slice(1, -1) : mask);
      copied = end;
    }
    return shown + text.slice(copied);
  }

  /** Masks secrets in header lines, up to the first empty line. The text may begin with a request or status line. */
  #maskHead(text: string, trail: Trail): string {
    START_LINE.lastIndex = 0;
    let at = START_LINE.test(text) ? START_LINE.lastIndex : 0;
    let shown = text.slice(0, at);
    while (at < text.length && !/[\r\n]/.test(text.charAt(at))) {
      HEADER_LINE.lastIndex = at;
      const [line, name = '', value = '', end = ''] = HEADER_LINE.exec(text) ?? [];
      if (line === undefined) return text;
      const isHidden = this.#isName(name) && isHeaderSecret(name, value);
      shown += isHidden ? `${name}: ${this.#mask(value, [...trail, name])}${end}` : line;
      at += line.length;
    }
    return shown + text.slice(at);
  }
}

const NO_TRAIL: Trail = [];

const START_LINE = /(?:[A-Z]{3,7} [^\r\n]* HTTP\/[\d.]{1,3}|HTTP\/[\d.]{1,3} [^\r\n]*)\r?\n/y;

const HEADER_LINE = /([A-Za-z][\w-]{0,63}): ([^\r\n]*)(\r?\n|$)/y;

/** Whether a header's value is a secret. Text that looks like prose is not a secret. */
function isHeaderSecret(name: string, value: string): boolean {
  if (isPlainText(value)) return false;
  return !/\s/.test(value) || /(?:authorization|cookie)$/i.test(name);
}

/** Matches the text from a name's closing `"` to the value's opening `"`, or to the end of a number. */
const VALUE = /"\s{0,64}:\s{0,64}(?:(\\{0,256}")|\d{1,64})/y;

/**
 * Returns the start and end index of the string or number after a secret's name. If a string has no closing quote, it
 * extends to the end of the text.
 */
function valueAfter(text: string, quote: number): readonly [start: number, end: number] {
  VALUE.lastIndex = quote;
  const found = VALUE.exec(text);
  if (found === null) return [quote, quote];
  const opening = found[1];
  if (opening === undefined) return [quote + found[0].search(/\d/), VALUE.lastIndex];
  const start = VALUE.lastIndex;
  for (let end = text.indexOf('"', start); end >= 0; end = text.indexOf('"', end + 1)) {
    // A quote with more backslashes than the opening quote is part of the string.
    let backslashes = 0;
    while (end - backslashes > start && text.charCodeAt(end - backslashes - 1) === BACKSLASH) backslashes++;
    if (backslashes < opening.length) return [start, end - backslashes];
  }
  return [start, text.length];
}

function nameBefore(text: string, end: number): string {
  const name = text.slice(Math.max(0, end - NAME_CHARACTERS_MAX), end);
  return name.slice(name.lastIndexOf('"') + 1);
}

/** Returns the index after the last letter before a `"`, `=` or `:`. Returns 0 if there is no letter. */
function nameEnd(text: string, mark: number): number {
  let end = mark;
  while (end > 0 && text.charCodeAt(end - 1) === BACKSLASH) end--;
  for (const stop = Math.max(0, end - GAP_MAX); end > stop; end--) {
    const code = text.charCodeAt(end - 1);
    if (code === QUOTE) return 0;
    if (!isNoLetter(code)) return end;
  }
  return 0;
}

/**
 * Packs the three letters up to index `last` into a number, with five bits per letter. The lower five bits of an ASCII
 * letter are the same in upper and lower case.
 */
function endOf(text: string, last: number): number {
  const code = (at: number): number => (at < 0 ? 0 : text.charCodeAt(at) & 0x1f);
  return (code(last - 2) << 10) | (code(last - 1) << 5) | code(last);
}

function isNoLetter(code: number): boolean {
  return code < 0x80 && ((code | 0x20) < 0x61 || (code | 0x20) > 0x7a);
}

/** Whether an escape may encode a letter in a name (`\u0041` to `\u007a`) or be part of a URL (`:\/\/`). */
function isEscapeOfName(json: string, at: number): boolean {
  if (json.charCodeAt(at + 1) === SMALL_U) return /^00[4-7]/.test(json.slice(at + 2, at + 5));
  return json.charCodeAt(at + 1) === SLASH && json.startsWith(':\\/\\/', at - 1);
}
