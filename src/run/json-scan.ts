import { type KeyForm, type KeyForms, plainKeys } from './key-forms.ts';
import type { PayloadRules } from './payload-rules.ts';
import type { Redaction } from './redaction.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const SPACE = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;

/** By its code, whether a character may stand behind a backslash; `u` is looked at closer. */
const ESCAPED = new Uint8Array(128);
for (const character of '"\\/bfnrt') ESCAPED[character.charCodeAt(0)] = 1;
const UNICODE = 0x75;
/** Not of one half of a pair: the other half may be missing. */
const UNPAIRED = /(?:[\da-cA-CefEF][\da-fA-F]|[dD][0-7])[\da-fA-F]{2}/y;

/** What JSON has no place for in a string. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant.
const CONTROL = /[\u0000-\u001f]/g;

/** So few digits that it is finite. */
const NUMBER = /-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?![\d.eE])/y;

const DATA_URI = 'data:';

// What is scanned now. A scan calls nobody, so that there is one at a time.
let text = '';
let at = 0;
/** The first backslash, and the first control character, from where they were last looked for on; -1 when there is none. */
let backslash = 0;
let control = 0;
let nodesLeft = 0;
let widthMax = 0;
let keys: KeyForms = plainKeys;
let patterns: Redaction | undefined;

/**
 * Whether JSON text of an object can stand in a payload as it is: it is valid, within the limits, and has nothing in it that
 * is to be hidden or attached. Where the answer is no that may still be so, and has to be found out by parsing it, which
 * takes twice as long and leaves a copy of the whole text to the garbage collector.
 */
export function isKeptText(given: string, rules: PayloadRules): boolean {
  const { redaction } = rules;
  if (redaction !== undefined && (redaction.root !== undefined || redaction.hidesAll)) return false;
  if (given.length > rules.bytes || !given.isWellFormed()) return false;
  text = given;
  at = 0;
  backslash = text.indexOf('\\');
  control = nextControl(0);
  nodesLeft = rules.nodes;
  widthMax = rules.width;
  keys = redaction?.keys ?? plainKeys;
  patterns = redaction?.hasPatterns === true ? redaction : undefined;
  const isKept = skipSpaces() === OPENING_BRACE && scanValue(rules.depth) && Number.isNaN(skipSpaces());
  text = '';
  return isKept;
}

/** Moves `at` behind a value; false where it is none, or none that is kept. */
function scanValue(depth: number): boolean {
  if (--nodesLeft < 0) return false;
  const code = text.charCodeAt(at);
  if (code === QUOTE) return scanString();
  if (code === OPENING_BRACE) return depth > 0 && scanItems(depth - 1, CLOSING_BRACE);
  if (code === OPENING_BRACKET) return depth > 0 && scanItems(depth - 1, CLOSING_BRACKET);
  if (code === MINUS || (code >= ZERO && code <= NINE)) return scanNumber();
  return scanWord('true') || scanWord('false') || scanWord('null');
}

/** The items of a list, or the properties of an object. */
function scanItems(depth: number, closing: number): boolean {
  at++;
  if (skipSpaces() === closing) {
    at++;
    return true;
  }
  let form: KeyForm | undefined = keys.start;
  for (let width = 0; width < widthMax; width++) {
    if (closing === CLOSING_BRACE) form = scanKey(form);
    if (form === undefined || !scanValue(depth)) return false;
    const code = skipSpaces();
    at++;
    if (code === closing) return true;
    if (code !== COMMA) return false;
    skipSpaces();
  }
  return false;
}

/** Moves `at` to the value of a property, and gives the form of its key; undefined where it is none, or none that is kept. */
function scanKey(before: KeyForm): KeyForm | undefined {
  const start = at + 1;
  if (text.charCodeAt(at) !== QUOTE || !scanString()) return undefined;
  const form = keys.after(before, text.slice(start, at - 1));
  if (form.isSpecial || form.key.includes('\\') || skipSpaces() !== COLON) return undefined;
  at++;
  skipSpaces();
  return form;
}

function scanString(): boolean {
  const start = ++at;
  if (text.startsWith(DATA_URI, at)) return false;
  let quote = text.indexOf('"', at);
  for (;;) {
    if (quote < 0) return false;
    if (backslash >= 0 && backslash < at) backslash = text.indexOf('\\', at);
    if (backslash < 0 || backslash > quote) break;
    if (patterns !== undefined || !isEscape(backslash + 1)) return false;
    at = backslash + 2;
    if (quote < at) quote = text.indexOf('"', at);
  }
  if (control >= 0 && control < start) control = nextControl(start);
  if (control >= 0 && control < quote) return false;
  at = quote + 1;
  return patterns?.finds(text.slice(start, quote)) !== true;
}

function isEscape(place: number): boolean {
  const code = text.charCodeAt(place);
  if (code !== UNICODE) return ESCAPED[code] === 1;
  UNPAIRED.lastIndex = place + 1;
  return UNPAIRED.test(text);
}

function nextControl(from: number): number {
  CONTROL.lastIndex = from;
  return CONTROL.test(text) ? CONTROL.lastIndex - 1 : -1;
}

function scanNumber(): boolean {
  NUMBER.lastIndex = at;
  if (!NUMBER.test(text)) return false;
  at = NUMBER.lastIndex;
  return true;
}

function scanWord(word: string): boolean {
  if (!text.startsWith(word, at)) return false;
  at += word.length;
  return true;
}

/** Moves on to what is no white space, and gives its code. */
function skipSpaces(): number {
  let code = text.charCodeAt(at);
  while (code === SPACE || code === TAB || code === LINE_FEED || code === RETURN) code = text.charCodeAt(++at);
  return code;
}
