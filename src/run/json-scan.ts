import { ESCAPE_BYTES_MAX, plainBytes, WIDE } from './json-output.ts';
import { type KeyForm, plainKeys } from './key-forms.ts';
import type { PayloadRules } from './payload-rules.ts';
import type { Redaction } from './redaction.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const SMALL_D = 0x64;
const SMALL_E = 0x65;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const SPACE = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;

/** By its code, whether a character may stand behind a backslash; `u` is looked at closer. */
const ESCAPED = new Uint8Array(256);
for (const character of '"\\/bfnrt') ESCAPED[character.charCodeAt(0)] = 1;
const UNICODE = 0x75;
/** Not of one half of a pair: the other half may be missing. */
const UNPAIRED = /^(?:[\da-cA-CefEF][\da-fA-F]|[dD][0-7])[\da-fA-F]{2}$/;

/** So many digits before the point, and after it, make a finite number. */
const DIGITS_MAX = 100;

const DATA_URI = Buffer.from('data:');
const WORDS = ['true', 'false', 'null'].map((word) => Buffer.from(word));

/**
 * What is looked over stands here, as bytes, which are several times as fast to look at as characters. No more than what is used
 * of it takes memory, and a text that has no room is looked over by others.
 */
const PAGE_BYTES = 4 * 1024 * 1024;
const bytes = Buffer.allocUnsafeSlow(PAGE_BYTES);
const words = new DataView(bytes.buffer);

/** A zero behind the bytes ends whatever they are a part of; a word may begin at it. */
const END_BYTES = 4;

// What is scanned now. A scan calls nobody, so that there is one at a time.
let encoding: 'latin1' | 'utf8' = 'latin1';
let end = 0;
let at = 0;
let nodesLeft = 0;
let widthMax = 0;
let patterns: Redaction | undefined;

/**
 * Whether JSON text of an object can stand in a payload as it is: it is valid, within the limits, and has nothing in it that
 * is to be hidden or attached. Where the answer is no that may still be so, and has to be found out by parsing it, which
 * takes several times as long and leaves a copy of the whole text to the garbage collector.
 */
export function isKeptText(text: string, rules: PayloadRules): boolean {
  const { redaction } = rules;
  if (redaction !== undefined && (redaction.root !== undefined || redaction.hidesAll)) return false;
  if (text.length > rules.bytes || !text.isWellFormed() || !take(text)) return false;
  if (redaction?.mayHideIn(text) === true) return false;
  nodesLeft = rules.nodes;
  widthMax = rules.width;
  patterns = redaction?.hasPatterns === true ? redaction : undefined;
  skipSpaces();
  if (bytes[at] !== OPENING_BRACE || !scanValue(rules.depth, plainKeys.start)) return false;
  skipSpaces();
  return at === end;
}

/** Puts the text on the page; false when it has no room there. */
function take(text: string): boolean {
  const isWide = WIDE.test(text);
  if ((isWide ? 3 : 1) * text.length > PAGE_BYTES - END_BYTES) return false;
  encoding = isWide ? 'utf8' : 'latin1';
  end = bytes.write(text, encoding);
  bytes[end] = 0;
  at = 0;
  return true;
}

/** Moves `at` behind a value; false where it is none, or none that is kept. `start` is for the first key of an object in it. */
function scanValue(depth: number, start: KeyForm): boolean {
  if (--nodesLeft < 0) return false;
  const code = bytes[at] as number;
  if (code === QUOTE) return scanString();
  if (code === OPENING_BRACE) return depth > 0 && scanItems(depth - 1, CLOSING_BRACE, start);
  if (code === OPENING_BRACKET) return depth > 0 && scanItems(depth - 1, CLOSING_BRACKET, start);
  if (code === MINUS || isDigit(code)) return scanNumber();
  return WORDS.some(scanWord);
}

/** The items of a list, or the properties of an object. */
function scanItems(depth: number, closing: number, start: KeyForm): boolean {
  at++;
  skipSpaces();
  if (bytes[at] === closing) {
    at++;
    return true;
  }
  let form = start;
  for (let width = 0; width < widthMax; width++) {
    if (closing === CLOSING_BRACKET) {
      if (!scanValue(depth, start)) return false;
    } else {
      const found = scanKey(form);
      if (found === undefined) return false;
      form = found;
      if (!scanValue(depth, plainKeys.below(form))) return false;
    }
    skipSpaces();
    const code = bytes[at++];
    if (code === closing) return true;
    if (code !== COMMA) return false;
    skipSpaces();
  }
  return false;
}

/** Moves `at` to the value of a property, and gives the form of its key; undefined where it is none, or none that is kept. */
function scanKey(before: KeyForm): KeyForm | undefined {
  const { next } = before;
  if (next?.bytes !== undefined && patterns === undefined && startsWith(next.bytes, 1)) {
    at += next.bytes.length - 1;
    skipSpaces();
    return next;
  }
  const start = at + 1;
  if (bytes[at] !== QUOTE || !scanString()) return undefined;
  const form = plainKeys.after(before, bytes.toString(encoding, start, at - 1));
  skipSpaces();
  if (form.isSpecial || form.key.includes('\\') || bytes[at] !== COLON) return undefined;
  at++;
  skipSpaces();
  return form;
}

function scanString(): boolean {
  const start = ++at;
  if (bytes[at] === SMALL_D && startsWith(DATA_URI, 0)) return false;
  for (let code = skipPlain(); code !== QUOTE; code = skipPlain()) {
    if (code !== BACKSLASH || patterns !== undefined || !skipEscape()) return false;
  }
  at++;
  return patterns?.finds(bytes.toString(encoding, start, at - 1)) !== true;
}

/** Moves on to what is not simply a character of a string, and gives it. */
function skipPlain(): number {
  let from = at;
  let plain = plainBytes(words.getInt32(from, true));
  while (plain === 4) {
    from += 4;
    plain = plainBytes(words.getInt32(from, true));
  }
  at = from + plain;
  return bytes[at] as number;
}

function skipEscape(): boolean {
  const code = bytes[at + 1] as number;
  const isUnicode = code === UNICODE;
  const isEscape = isUnicode
    ? UNPAIRED.test(bytes.toString('latin1', at + 2, Math.min(at + ESCAPE_BYTES_MAX, end)))
    : ESCAPED[code] === 1;
  at += isUnicode ? ESCAPE_BYTES_MAX : 2;
  return isEscape;
}

function scanNumber(): boolean {
  if (bytes[at] === MINUS) at++;
  const isZero = bytes[at] === ZERO;
  const whole = skipDigits();
  if (whole === 0 || whole > (isZero ? 1 : DIGITS_MAX)) return false;
  if (bytes[at] === POINT) {
    at++;
    const after = skipDigits();
    if (after === 0 || after >= DIGITS_MAX) return false;
  }
  return ((bytes[at] as number) | SPACE) !== SMALL_E;
}

function skipDigits(): number {
  const start = at;
  while (isDigit(bytes[at] as number)) at++;
  return at - start;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function scanWord(word: Buffer): boolean {
  if (!startsWith(word, 0)) return false;
  at += word.length;
  return true;
}

/** Whether what comes now is this, but for its first bytes. */
function startsWith(what: Buffer, from: number): boolean {
  for (let index = from; index < what.length; index++) if (bytes[at + index - from] !== what[index]) return false;
  return true;
}

function skipSpaces(): void {
  let code = bytes[at];
  while (code === SPACE || code === TAB || code === LINE_FEED || code === RETURN) code = bytes[++at];
}
