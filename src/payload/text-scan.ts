import { detached } from '../base/text.ts';
import { isEscaped } from './fields.ts';
import {
  CHARACTERS_HARMLESS,
  DATA_URI_CHARACTERS_MAX,
  KNOWN_KEY_CHARACTERS_MAX,
  KNOWN_KEYS_MAX,
  type PayloadLimits,
  type PlainCheck,
} from './plain.ts';
import { isHeaders, isPairValue, type SecretNames } from './redaction/names.ts';
import { mayBeMasked, mayHoldNames, type TextSecrets } from './redaction/text.ts';
import { plainCheckOf } from './serialize.ts';
import type { PayloadRules } from './truncate.ts';

/** What plain JSON text contains. `messages` is a list in which each item is an object with a role. */
export type RecordableKind = 'object' | 'list' | 'messages';

const NUMBER_CHARACTERS_MAX = 64;

/** Room for the key that a list is recorded under. */
const LIST_KEY_CHARACTERS = 64;

/** Text that is nested deeper is parsed. */
const LEVELS_MAX = 32;

/** Object ids start again at this number. */
const OBJECTS_MAX = 1_000_000_000;

// What a key tells about the value, as bits.
/** The text must be parsed. */
const REFUSED = 1;
/** The value must be empty, a boolean or null. */
const SECRET = 2;
/** The value must not be a list. */
const HEADERS = 8;
/** The value of a pair such as `{ name, value }`, and the name of such a pair. */
const PAIR_VALUE = 16;
const PAIR_NAME = 32;
const ROLE = 64;
/** The object has several keys that may be the name of a pair. */
const PAIR_NAMES = 128;

const scans = new WeakMap<PlainCheck, TextScan>();

/**
 * Returns what the JSON text of a payload contains if it can be recorded unchanged. `listKey` is the key for a list that
 * does not consist of messages.
 */
export function recordableKind(
  text: string,
  payload: 'inputs' | 'outputs',
  listKey: string,
  rules: PayloadRules,
): RecordableKind | undefined {
  const check = plainCheckOf(rules);
  if (check === undefined || check.isSpecial(payload)) return undefined;
  let scan = scans.get(check);
  if (scan === undefined) {
    scan = new TextScan(check);
    scans.set(check, scan);
  }
  const kind = scan.scan(text, rules);
  if (kind === undefined || kind === 'object') return kind;
  return check.isSpecial(kind === 'list' ? listKey : kind) ? undefined : kind;
}

class KnownKey {
  readonly key: string;
  readonly bits: number;
  /** The id of the last object on each level that has the key. */
  readonly objects: number[] = [];
  /** The key that followed this key in the most recent object. */
  next: KnownKey | undefined = undefined;
  /** The previous value of `next`, because two keys may alternate after this key. */
  other: KnownKey | undefined = undefined;

  constructor(key: string, bits: number) {
    this.key = key;
    this.bits = bits;
  }
}

/** An object or a list that has not ended. */
class Frame {
  isObject = false;
  size = 0;
  /** The bits of all keys, and `PAIR_NAMES`. */
  bits = 0;
  /** Number of the object, unlike that of any other object. */
  id = 0;
  /** Where the first string of a list is, or the string that may be the name of a pair. -1 if there is none. */
  nameAt = -1;
  nameEnd = -1;
}

/**
 * Recognizes JSON text that can be recorded unchanged: it is valid, within the limits, and contains no secret. Does not
 * parse the text, because parsing creates an object or a string for each value. In doubt, the text must be parsed: this
 * costs time, but loses nothing. These texts are parsed, too: text with white space other than single spaces, duplicate
 * keys, escaped keys, `\/`, escaped surrogates or escaped ASCII letters, and text with a URL and any `\u` escape.
 */
class TextScan {
  readonly #names: SecretNames | undefined;
  readonly #texts: TextSecrets | undefined;
  readonly #known = new Map<string, KnownKey>();
  readonly #frames: readonly Frame[] = Array.from({ length: LEVELS_MAX }, () => new Frame());
  #first = new KnownKey('', 0);
  #objects = 0;

  constructor({ names, texts }: Pick<PlainCheck, 'names' | 'texts'>) {
    this.#names = names;
    this.#texts = texts;
  }

  /** Returns what the text contains if it can be recorded unchanged. A list is recorded as the value of a key. */
  scan(text: string, { depth, width, nodes, bytes }: PayloadLimits): RecordableKind | undefined {
    const frames = this.#frames;
    const first = text.charCodeAt(0);
    if (first !== OPENING_BRACE && first !== OPENING_BRACKET) return undefined;
    const lowest = first === OPENING_BRACE ? 0 : 1;
    const levels = Math.min(depth, LEVELS_MAX);
    if (text.length + lowest * LIST_KEY_CHARACTERS > bytes || lowest >= levels || CONTROL.test(text)) return undefined;
    if (this.#known.size >= KNOWN_KEYS_MAX || this.#objects >= OBJECTS_MAX) this.#forget();
    let nodesLeft = nodes - 1 - lowest;
    let level = lowest;
    let frame = this.#open(level, first);
    // Similar objects have the same keys in the same order.
    let known = this.#first;
    let backslash = text.indexOf('\\');
    let messages = 0;
    let isMember = true;
    let at = 1;
    for (;;) {
      let code = text.charCodeAt(at);
      if (code === SPACE) code = text.charCodeAt(++at);
      if (!isMember) {
        if (code === COMMA) {
          isMember = true;
          at++;
          continue;
        }
        if (code !== (frame.isObject ? CLOSING_BRACE : CLOSING_BRACKET)) return undefined;
        nodesLeft -= frame.size;
        if (nodesLeft < 0 || this.#mayHideName(text, frame)) return undefined;
        if (level === lowest) break;
        if (level === 2 && lowest === 1 && (frame.bits & ROLE) !== 0) messages++;
        frame = frames[--level] as Frame;
        at++;
        continue;
      }
      if (frame.size === 0 && code === (frame.isObject ? CLOSING_BRACE : CLOSING_BRACKET)) {
        isMember = false;
        continue;
      }
      if (++frame.size > width) return undefined;
      let bits = 0;
      if (frame.isObject) {
        if (code !== QUOTE) return undefined;
        const { next } = known;
        if (next !== undefined && isKeyAt(text, next.key, at + 1)) known = next;
        else {
          const found = this.#keyAfter(known, text, at + 1);
          if (found === undefined) return undefined;
          known = found;
        }
        if (known.objects[level] === frame.id) return undefined;
        known.objects[level] = frame.id;
        bits = known.bits;
        if ((bits & REFUSED) !== 0) return undefined;
        if ((bits & frame.bits & PAIR_NAME) !== 0) frame.bits |= PAIR_NAMES;
        frame.bits |= bits;
        at += known.key.length + 2;
        if (text.charCodeAt(at) !== COLON) return undefined;
        code = text.charCodeAt(++at);
        if (code === SPACE) code = text.charCodeAt(++at);
      }
      isMember = false;
      if (code === QUOTE) {
        const start = at + 1;
        let end = text.indexOf('"', start);
        while (end >= 0 && text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end))
          end = text.indexOf('"', end + 1);
        if (end < 0) return undefined;
        if (backslash >= 0 && backslash < end) {
          backslash = afterEscapes(text, backslash, end);
          if (backslash === INVALID) return undefined;
        }
        if (end - start > CHARACTERS_HARMLESS && this.#mustBeCopied(text, start, end)) return undefined;
        if ((bits & SECRET) !== 0 && end > start) return undefined;
        if ((bits & PAIR_NAME) !== 0 || (frame.size === 1 && !frame.isObject)) {
          frame.nameAt = start;
          frame.nameEnd = end;
        }
        at = end + 1;
      } else if (code === OPENING_BRACE || code === OPENING_BRACKET) {
        if ((bits & SECRET) !== 0 || ((bits & HEADERS) !== 0 && code === OPENING_BRACKET)) return undefined;
        if (++level >= levels) return undefined;
        frame = this.#open(level, code);
        isMember = true;
        at++;
      } else if (code === SMALL_T && text.startsWith('true', at)) at += 4;
      else if (code === SMALL_F && text.startsWith('false', at)) at += 5;
      else if (code === SMALL_N && text.startsWith('null', at)) at += 4;
      else {
        if ((bits & SECRET) !== 0) return undefined;
        const end = numberEnd(text, at);
        if (end - at > NUMBER_CHARACTERS_MAX || end < 0) return undefined;
        at = end;
      }
    }
    if (!this.#isCleanFrom(at + 1, text)) return undefined;
    if (lowest === 0) return 'object';
    return frame.size > 0 && messages === frame.size ? 'messages' : 'list';
  }

  /** Whether only spaces follow the value, and the text contains no lone surrogate and no secret in a URL. */
  #isCleanFrom(end: number, text: string): boolean {
    let at = end;
    while (text.charCodeAt(at) === SPACE) at++;
    if (at !== text.length || !text.isWellFormed()) return false;
    // `hasSecretUrl` takes the backslash of an escape for the end of the URL.
    if (this.#texts !== undefined && text.includes('://') && text.includes('\\u')) return false;
    return this.#texts?.hasSecretUrl(text) !== true;
  }

  #open(level: number, code: number): Frame {
    const frame = this.#frames[level] as Frame;
    frame.isObject = code === OPENING_BRACE;
    frame.size = 0;
    frame.bits = 0;
    frame.id = ++this.#objects;
    frame.nameAt = -1;
    return frame;
  }

  /** Whether a value may be a secret because of the name beside it, as in `{ name, value }` and `[name, value]`. */
  #mayHideName(text: string, { isObject, size, bits, nameAt, nameEnd }: Frame): boolean {
    if (nameAt < 0 || (isObject ? (bits & PAIR_VALUE) === 0 : size !== 2)) return false;
    if ((bits & PAIR_NAMES) !== 0) return true;
    const name = text.slice(nameAt, nameEnd);
    return this.#names !== undefined && (name.includes('\\') || this.#names.kindOf(name) !== undefined);
  }

  /** Whether a string must be masked or becomes an attachment. Only few strings are decoded for this. */
  #mustBeCopied(text: string, start: number, end: number): boolean {
    if (end - start > DATA_URI_CHARACTERS_MAX && text.startsWith('data:', start)) return true;
    if (this.#texts === undefined || !mayBeMasked(text, start)) return false;
    return this.#texts.mayMask(JSON.parse(text.slice(start - 1, end + 1)));
  }

  #keyAfter(before: KnownKey, text: string, start: number): KnownKey | undefined {
    const { other } = before;
    if (other !== undefined && isKeyAt(text, other.key, start)) return other;
    const end = text.indexOf('"', start);
    if (end < 0 || end - start > KNOWN_KEY_CHARACTERS_MAX) return undefined;
    const key = text.slice(start, end);
    if (key.includes('\\')) return undefined;
    let known = this.#known.get(key);
    if (known === undefined) {
      // Keys are not forgotten within a text. Otherwise, the second of two equal keys would look new.
      if (this.#known.size >= KNOWN_KEYS_MAX) return undefined;
      known = new KnownKey(detached(key), this.#bitsOf(key));
      this.#known.set(known.key, known);
    }
    before.other = before.next;
    before.next = known;
    return known;
  }

  #bitsOf(key: string): number {
    const role = key === 'role' ? ROLE : 0;
    if (mayHoldNames(key)) return REFUSED;
    if (this.#names === undefined) return role;
    return (
      role |
      (this.#names.kindOf(key) === undefined ? 0 : SECRET) |
      (isHeaders(key) ? HEADERS : 0) |
      (isPairValue(key) ? PAIR_VALUE : 0) |
      (PAIR_NAME_KEYS.includes(key) ? PAIR_NAME : 0)
    );
  }

  #forget(): void {
    this.#known.clear();
    this.#first = new KnownKey('', 0);
    this.#objects = 0;
  }
}

const PAIR_NAME_KEYS: readonly string[] = ['name', 'key', 'Name', 'Key'];

const QUOTE = 0x22;
const SPACE = 0x20;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const SMALL_F = 0x66;
const SMALL_N = 0x6e;
const SMALL_T = 0x74;
const SMALL_U = 0x75;

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON text must not contain these characters.
const CONTROL = /[\0-\x1f]/;

const INVALID = -2;

/**
 * Returns the index of the first backslash after a string, or -1 if there is none. Returns INVALID if the string
 * contains an escape that is invalid or must be decoded: a surrogate, an ASCII character by its code, or a slash.
 */
function afterEscapes(text: string, first: number, end: number): number {
  let at = first;
  while (at >= 0 && at < end) {
    const code = text.charCodeAt(at + 1);
    if (code === SMALL_U) {
      if (!PLAIN_ESCAPE.test(text.slice(at + 2, at + 6))) return INVALID;
      at += 6;
    } else if (code < 0x80 && SHORT_ESCAPES[code] === 1) at += 2;
    else return INVALID;
    if (text.charCodeAt(at) !== BACKSLASH) at = text.indexOf('\\', at);
  }
  return at;
}

/** Matches the digits of a character that is neither a surrogate nor printable ASCII. */
const PLAIN_ESCAPE = /^(?:00[01][\da-f]|00[89a-f][\da-f]|0[1-9a-f][\da-f]{2}|[1-9abcef][\da-f]{3}|d[0-7][\da-f]{2})$/i;

const SHORT_ESCAPES = new Uint8Array(0x80);
for (const character of '"\\bfnrt') SHORT_ESCAPES[character.charCodeAt(0)] = 1;

function isKeyAt(text: string, key: string, start: number): boolean {
  return text.charCodeAt(start + key.length) === QUOTE && text.startsWith(key, start);
}

/** Returns the index after a number, or -1 if there is no valid number. */
function numberEnd(text: string, start: number): number {
  let at = text.charCodeAt(start) === MINUS ? start + 1 : start;
  const whole = at;
  at = digitsEnd(text, at);
  if (at === whole || (at > whole + 1 && text.charCodeAt(whole) === ZERO)) return -1;
  if (text.charCodeAt(at) === DOT) {
    const fraction = at + 1;
    at = digitsEnd(text, fraction);
    if (at === fraction) return -1;
  }
  if ((text.charCodeAt(at) | 0x20) !== SMALL_E) return at;
  const sign = text.charCodeAt(at + 1);
  const exponent = sign === MINUS || sign === PLUS ? at + 2 : at + 1;
  at = digitsEnd(text, exponent);
  // A number with a larger exponent may be infinite.
  return at === exponent || (sign !== MINUS && at > exponent + 2) ? -1 : at;
}

function digitsEnd(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code >= ZERO && code <= NINE; ) code = text.charCodeAt(++at);
  return at;
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const SMALL_E = 0x65;
