import { ignoreErrors } from '../../base/guard.ts';
import { isPiece, type SecretNames } from './names.ts';
import type { Trail } from './paths.ts';

export type Mask = (value: unknown, trail: Trail) => string;

export const SPACE = 0x20;
export const SLASH = 0x2f;
export const COLON = 0x3a;
export const QUESTION_MARK = 0x3f;

const NAME_CHARACTERS_MAX = 128;

/** Masks credentials and secret parameters in URLs. Runs in linear time. */
export class UrlSecrets {
  readonly #names: SecretNames;
  readonly #mask: Mask;

  constructor(names: SecretNames, mask: Mask) {
    this.#names = names;
    this.#mask = mask;
  }

  /**
   * Masks secrets in URLs inside a text. If the text starts with `/` or `?`, it is treated as a URL without an origin.
   */
  masked(text: string, trail: Trail): string {
    const first = text.charCodeAt(0);
    let at = first === SLASH || first === QUESTION_MARK ? 0 : text.indexOf('://');
    if (at < 0 || !(text.includes('=', at) || text.includes('@', at))) return text;
    let shown = '';
    let copied = 0;
    while (at >= 0) {
      const end = urlEnd(text, at);
      const url = text.slice(at, end);
      const masked = this.#maskUrl(url, trail);
      if (masked !== url) {
        shown += text.slice(copied, at) + masked;
        copied = end;
      }
      at = text.indexOf('://', end + 1);
    }
    return copied === 0 ? text : shown + text.slice(copied);
  }

  areIn(json: string): boolean {
    // Searching for `//` is several times faster than for `://`, because `/` is rarer than `:` in JSON.
    let end = 0;
    for (let at = json.indexOf('//'); at >= 0; at = json.indexOf('//', Math.max(end, at + 2))) {
      if (json.charCodeAt(at - 1) !== COLON) continue;
      end = urlEnd(json, at);
      const url = json.slice(at - 1, end);
      if (this.#maskUrl(url, []) !== url) return true;
    }
    return false;
  }

  #maskUrl(url: string, trail: Trail): string {
    let shown = url;
    if (url.includes('@')) shown = shown.replace(USER, (user) => (isCredential(user) ? this.#mask(user, trail) : user));
    return shown.includes('=') ? this.#maskParameters(shown, trail) : shown;
  }

  #maskParameters(url: string, trail: Trail): string {
    let shown = '';
    let copied = 0;
    let end = 0;
    for (let equals = url.indexOf('='); equals >= 0; equals = url.indexOf('=', Math.max(end, equals + 1))) {
      const stop = Math.max(end, equals - NAME_CHARACTERS_MAX);
      let start = equals;
      while (start > stop && !isSeparator(url.charCodeAt(start - 1))) start--;
      const encoded = url.slice(start, equals);
      const name = encoded.includes('%') ? (ignoreErrors(() => decodeURIComponent(encoded)) ?? encoded) : encoded;
      if (start === 0 || !this.#names.mayHideInUrl(name)) continue;
      VALUE_END.lastIndex = equals + 1;
      end = VALUE_END.exec(url)?.index ?? url.length;
      const value = url.slice(equals + 1, end);
      if (!this.#names.hidesInUrl(name, value)) continue;
      shown += url.slice(copied, equals + 1) + this.#mask(value, [...trail, name]);
      copied = end;
    }
    return copied === 0 ? url : shown + url.slice(copied);
  }
}

const AMPERSAND = 0x26;
const HASH = 0x23;
const SEMICOLON = 0x3b;

function isSeparator(code: number): boolean {
  return code === AMPERSAND || code === QUESTION_MARK || code === HASH || code === SEMICOLON;
}

const VALUE_END = /[?&#;]/g;

/** Matches a URL's user and password. */
const USER = /(?<=:\/\/)[^\s/?#]{1,4096}(?=@)/g;

/** Lookup table by character code. An entry is 1 if the character ends a URL in prose, JSON or HTML. */
const URL_ENDS = new Uint8Array(0x80).fill(1, 0, SPACE + 1);
for (const character of '"<>\\`') URL_ENDS[character.charCodeAt(0)] = 1;

function urlEnd(text: string, start: number): number {
  let end = start;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code < 0x80 && URL_ENDS[code] === 1) break;
  }
  return end;
}

/** Whether the user information in a URL contains a password or looks like a key. */
function isCredential(user: string): boolean {
  return /:./.test(user) || (user.length >= 16 && !isPiece(user));
}
