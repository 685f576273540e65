import { latePattern } from '../../base/late-pattern.ts';
import { exactJson, parseExact, put } from '../fields.ts';
import { isPlainText, type SecretNames, URL_NAMES } from './names.ts';
import type { Trail } from './paths.ts';
import { COLON, type Mask, QUESTION_MARK, SLASH, SPACE, UrlSecrets } from './urls.ts';

const QUOTE = 0x22;
const CAPITAL_A = 0x41;
const CAPITAL_Z = 0x5a;
const BACKSLASH = 0x5c;
const SMALL_A = 0x61;
const SMALL_Z = 0x7a;
const BYTE_ORDER_MARK = 0xfeff;

/** Minimum length of a string with the name and value of a secret. */
const CHARACTERS_MIN = 9;

/** Matches the start of text that may be JSON, or a JSON string with JSON inside. */
const JSON_TEXT = /^(?:[\s"]|\\[nrt]?)*[{[]/;

const HEADER_NAME_MAX = 64;

/** Matches the start of header lines, or of an HTTP request or status line. */
const HEAD = /^(?:[A-Za-z][\w-]{0,63}: |[A-Z]{3,7}[ /])/;

/** Matches the start of a string in JSON text that may be a URL path or JSON text, or any character after an escape. */
const IN_JSON_TEXT = /[/?]|(?:\s|\\["bfnrt])*(?:[{[]|\\[\\u])/y;

/** An entry is 1 for an ASCII character that the name of a header may contain. */
const IN_NAME = new Uint8Array(0x80);
for (let code = 0; code < IN_NAME.length; code++) if (/[\w-]/.test(String.fromCharCode(code))) IN_NAME[code] = 1;

/**
 * Whether a text may contain names of secrets. Returns true for JSON text, header lines, URL paths and any text with a
 * URL.
 */
export function mayHoldNames(text: string): boolean {
  return text.length >= CHARACTERS_MIN && (text.includes('://') || mayStart(text));
}

/**
 * Whether the string at index `start` of JSON text may be masked. Ignores URLs inside the string. Runs for every string,
 * most of which begin with a letter. Comparing characters is faster than a pattern.
 */
export function mayBeMasked(json: string, start: number): boolean {
  const first = json.charCodeAt(start);
  const small = first | 0x20;
  if (small < SMALL_A || small > SMALL_Z) {
    // None of the texts begins with a digit, an underscore or a hyphen.
    if (IN_NAME[first] === 1) return false;
    IN_JSON_TEXT.lastIndex = start;
    return IN_JSON_TEXT.test(json);
  }
  const last = start + HEADER_NAME_MAX;
  let at = start;
  let code = first;
  while (at < last && code >= CAPITAL_A && code <= CAPITAL_Z) code = json.charCodeAt(++at);
  if (at - start >= 3 && at - start <= 7 && (code === SPACE || code === SLASH)) return true;
  while (at < last && IN_NAME[code] === 1) code = json.charCodeAt(++at);
  return code === COLON && json.charCodeAt(at + 1) === SPACE;
}

/** Runs for every string. Looking at the first character is several times faster than the patterns. */
function mayStart(text: string): boolean {
  const first = text.charCodeAt(0);
  const small = first | 0x20;
  if (small >= SMALL_A && small <= SMALL_Z) {
    const colon = text.indexOf(':');
    const second = text.charCodeAt(1);
    // Only a request or status line, which begins with capitals, may be longer than the name of a header.
    const mayBeHead = colon <= HEADER_NAME_MAX || (second >= CAPITAL_A && second <= CAPITAL_Z);
    return colon > 0 && mayBeHead && HEAD.test(text);
  }
  if (first >= 0x80 && first !== BYTE_ORDER_MARK) return false;
  return first === SLASH || first === QUESTION_MARK || JSON_TEXT.test(text);
}

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
    const json = JSON_TEXT.test(text) && this.#isLikelyIn(text) ? this.#maskJson(text, trail) : undefined;
    return json ?? this.#urls.masked(this.#maskHead(text, trail), trail);
  }

  /**
   * Whether `masked` changes the text. Ignores URLs inside the text, because `hasSecretUrl` finds them. This check must
   * be fast, because it runs for every string.
   */
  mayMask(text: string): boolean {
    return mayStart(text) && this.masked(text, NO_TRAIL) !== text;
  }

  hasSecretUrl(json: string): boolean {
    return this.#urls.areIn(json);
  }

  /**
   * Whether JSON text may contain a secret's name before `"`, `=` or `: `, or an escape within a name or before a URL.
   * Parsing the text instead takes several times as long.
   */
  #isLikelyIn(json: string): boolean {
    for (const mark of MARKS) {
      for (let at = json.indexOf(mark); at >= 0; at = json.indexOf(mark, at + 1)) {
        const end = nameEnd(json, at);
        const before = json.slice(Math.max(0, end - NAME_CHARACTERS_MAX), end).replace(/^.*(?:["?&]|\\[nr])/s, '');
        if (this.#ends[endOf(json, end)] === 1 && this.#names.mayHideInUrl(before)) return true;
      }
    }
    return json.includes('\\') && /\\u00[4-7]|:\\\//.test(json);
  }

  #addEnd(word: string): void {
    const code = endOf(word);
    const letters = Math.min(word.length, 3);
    // The letters before a shorter word may be any letters.
    for (let other = 0; other < 0x8000; other += 1 << (5 * letters)) this.#ends[other | code] = 1;
  }

  /** Returns masked JSON text, or undefined if the text is valid JSON without secrets. */
  #maskJson(text: string, trail: Trail): string | undefined {
    try {
      const value: unknown = parseExact(text.trimStart());
      const shown = this.#copy(value, [...trail]);
      return shown === value ? undefined : text.slice(0, text.search(/[[{"]/)) + exactJson(shown);
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
      put(copy, key, shown);
    }
    return copy ?? value;
  }

  /** Masks strings and numbers after quoted names in invalid JSON, for example in truncated JSON. */
  #maskQuoted(text: string, trail: Trail): string {
    let shown = '';
    let copied = 0;
    for (const found of text.matchAll(QUOTED)) {
      const [head, name = '', , string, digits = ''] = found;
      const value = string ?? digits;
      const start = found.index + head.length;
      if (start < copied || !this.#names.hides(name, value, {})) continue;
      const mask = JSON.stringify(this.#mask(value, [...trail, name]));
      shown += text.slice(copied, start) + (string === undefined ? mask : mask.slice(1, -1));
      copied = start + value.length;
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
      const isHidden = this.#names.kindOf(name) !== undefined && isHeaderSecret(name, value);
      shown += isHidden ? `${name}: ${this.#mask(value, [...trail, name])}${end}` : line;
      at += line.length;
    }
    return shown + text.slice(at);
  }
}

const NO_TRAIL: Trail = [];

const MARKS: readonly string[] = ['"', '=', ': '];

const otherThanLetters = latePattern(String.raw`[^\p{L}]+$`, 'u');

/** Maximum number of characters examined at the end of a name in JSON text. */
const NAME_CHARACTERS_MAX = 128;

/** Maximum number of characters between a name's last letter and the next `"`, `=` or `:`. */
const GAP_MAX = 16;

/** Returns the index after the last letter before a `"`, `=` or `:`. Returns 0 if there is no letter. */
function nameEnd(text: string, mark: number): number {
  let end = mark;
  while (end > 0 && text.charCodeAt(end - 1) === BACKSLASH) end--;
  for (const stop = Math.max(0, end - GAP_MAX); end > stop; end--) {
    const code = text.charCodeAt(end - 1);
    if (code === QUOTE) return 0;
    if (code >= 0x80 || ((code | 0x20) >= SMALL_A && (code | 0x20) <= SMALL_Z)) return end;
  }
  return 0;
}

/**
 * Packs the three letters before an index into a number, with five bits per letter. The lower five bits of an ASCII
 * letter are the same in upper and lower case.
 */
function endOf(text: string, end = text.length): number {
  const code = (at: number): number => (at < 0 ? 0 : text.charCodeAt(at) & 0x1f);
  return (code(end - 3) << 10) | (code(end - 2) << 5) | code(end - 1);
}

/**
 * Matches a quoted name from its last escape, the colon, and the opening quote of a string. Nested JSON text has
 * backslashes before its quotes. The last two groups hold the string, or the digits of a number. A string without a
 * closing quote extends to the end of the text.
 */
const QUOTED = /(?<=["\\])([^"\\]*)(\\{0,64})"\s{0,64}:\s{0,64}(?:\2"(?=([\s\S]*?)(?:(?<!\\)\2"|$))|(?=(\d{1,64})))/g;

const START_LINE = /(?:[A-Z]{3,7} [^\r\n]* HTTP\/[\d.]{1,3}|HTTP\/[\d.]{1,3} [^\r\n]*)\r?\n/y;

const HEADER_LINE = /([A-Za-z][\w-]{0,63}): ([^\r\n]*)(\r?\n|$)/y;

/** Whether a header's value is a secret. Text that looks like prose is not a secret. */
function isHeaderSecret(name: string, value: string): boolean {
  if (isPlainText(value)) return false;
  return !/\s/.test(value) || /(?:authorization|cookie)$/i.test(name);
}
