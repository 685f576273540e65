import { RunspanError } from '../base/errors.ts';
import { nearWord } from '../base/near.ts';
import { kindOf, safeText, shown } from '../base/text.ts';
import { type Hiding, hiddenBy, spellingOf, UNREADABLE } from './foreign-options.ts';

/**
 * Validates one option. `expected` describes valid values. `show` formats an invalid value for the error message. If
 * `show` is `secret`, the text is not shown.
 */
export type Check = readonly [
  expected: string,
  holds: (value: unknown) => boolean,
  show?: 'secret' | ((value: unknown) => string),
];

export type Checks<Options> = { readonly [Key in keyof Options]-?: Check };

/** An unknown, invalid or unreadable option. If the options are not an object, `name` is undefined. */
export interface OptionMistake {
  readonly name?: string;
  readonly value: unknown;
  /** The check that failed. Undefined if the option is unknown. */
  readonly check?: Check | undefined;
}

/**
 * Returns a copy of the valid options, and calls `onMistake` for each other option. If `given` is not an object, calls
 * `onMistake` once. Known options set to undefined are omitted.
 */
export function validOptions<Options extends object>(
  given: unknown,
  checks: Checks<Options>,
  onMistake: (mistake: OptionMistake) => void,
): Partial<Options> {
  const valid: Partial<Options> = {};
  if (!isObject(given)) {
    onMistake({ value: given });
    return valid;
  }
  for (const name of Object.keys(given) as (keyof Options & string)[]) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    let value: unknown = UNREADABLE;
    try {
      value = given[name];
      if (value === undefined && check !== undefined) continue;
      if (check?.[1](value)) {
        valid[name] = value as Options[typeof name];
        continue;
      }
    } catch {
      // The option's getter or check threw.
    }
    onMistake({ name, value, check });
  }
  return valid;
}

/**
 * Returns a copy of the valid options. Calls `report` with one line for each other option. The line does not contain the
 * value, which may be a secret. An invalid `hideInputs` or `hideOutputs`, and an unknown option that hides payloads in
 * another library, hide these payloads. `prefix` precedes the names of the options in the lines.
 */
export function reportedOptions<Options extends object>(
  given: unknown,
  checks: Checks<Options>,
  report: (line: string, name?: string) => void,
  prefix = '',
): Partial<Options> & Hiding {
  const hiding: Hiding = {};
  const isKnown = (name: string): boolean => Object.hasOwn(checks, name);
  const valid = validOptions(given, checks, ({ name, value, check }) => {
    if (name === undefined) {
      const what = prefix === '' ? 'the options' : `\`${prefix.slice(0, -1)}\``;
      report(`expected ${what} to be an object, got ${kindOf(value)}; the options are ignored`);
    } else if (check !== undefined) {
      // In doubt, payloads are hidden. `enabled` may be the text of an environment variable.
      const hidden = hiddenBy(name, name === 'enabled' ? parseFlag(value) : UNREADABLE, isKnown);
      Object.assign(hiding, hidden);
      const effect =
        hidden === undefined ? 'the option is ignored' : 'enabled' in hidden ? 'false is used' : 'true is used';
      report(`expected \`${prefix}${name}\` to be ${check[0]}; ${effect}`, name);
    } else if (value !== undefined) {
      const hidden = hiddenBy(name, value, isKnown);
      Object.assign(hiding, hidden);
      const known = Object.keys(checks);
      const similar = known.find((one) => spellingOf(one) === spellingOf(name)) ?? nearWord(name, known);
      const instead = similar === undefined ? '' : `; use \`${similar}\``;
      const off = isKnown('tracing') ? TURNS_ALL_OFF : TURNS_OFF;
      const hides = isKnown('enabled') && isKnown('hideInputs') ? HIDES_CALLS : HIDES;
      const isOff = hidden !== undefined && ('enabled' in hidden || 'tracing' in hidden);
      const effect = hidden === undefined ? ` is ignored${instead}` : isOff ? off : hides;
      report(`unknown option \`${prefix}${name}\`${effect}`, name);
    }
  });
  return Object.assign(valid, hiding);
}

const HIDES = ' hides what it hides in other libraries; in `configure`, use `hideInputs`, `hideOutputs` or `redact`';
const HIDES_CALLS = ' hides what it hides in other libraries; use `hideInputs` or `hideOutputs`';

const TURNS_OFF = ' leaves the calls untraced; use `enabled`';
const TURNS_ALL_OFF = ' leaves the calls untraced; use `tracing`';

/** Returns a copy of the options. Throws if one is unknown or invalid. `what` names them in the error message. */
export function checkedOptions<Options extends object>(
  what: string,
  options: unknown,
  checks: Checks<Options>,
): Partial<Options> {
  const valid = validOptions(options, checks, (mistake) => {
    throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${expectation(what, mistake, Object.keys(checks))}`);
  });
  return withoutPrototype(valid);
}

/** Copies options to an object without a prototype, so that properties of `Object.prototype` are no options. */
export function withoutPrototype<Options extends object>(options: Options): Options {
  return Object.assign(Object.create(null), options);
}

function expectation(what: string, { name, value, check }: OptionMistake, known: readonly string[]): string {
  // A string is not shown, because the caller may have passed an API key by mistake.
  if (name === undefined)
    return `${what} to be an object, got ${typeof value === 'string' ? 'a string' : shown(value)}`;
  if (check === undefined) return `${what} to contain only ${known.join(', ')}, got \`${name}\``;
  const [expected, , show = shown] = check;
  const got = show !== 'secret' ? show(value) : typeof value === 'string' ? 'another string' : shown(value);
  return `\`${name}\` to be ${expected}, got ${got}`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const TEXT: Check = ['a non-empty string', (value) => typeof value === 'string' && value !== ''];
export const TRUE_OR_FALSE: Check = ['true or false', (value) => typeof value === 'boolean'];

const ON: readonly string[] = ['true', '1', 'yes', 'on'];
const OFF: readonly string[] = ['false', '0', 'no', 'off'];

/** Parses a boolean. Returns undefined if the value is neither true nor false. */
export function parseFlag(value: unknown): boolean | undefined {
  const text = safeText(value).toLowerCase();
  if (ON.includes(text)) return true;
  return OFF.includes(text) ? false : undefined;
}

/** Returns a function that finds names. A listed name that ends with `*` stands for all names that begin with the rest. */
export function matcherOf(names: readonly string[]): (name: string) => boolean {
  const exact = new Set(names);
  const prefixes = names.flatMap((name) => (name.endsWith('*') ? name.slice(0, -1) : []));
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

export const NAMES_TO_KEEP: Check = [
  'a list of names, or of beginnings of names that end with *',
  (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && /^(?:[^*]+\*?|\*)$/.test(name)),
];

export const FUNCTION: Check = ['a function', (value) => typeof value === 'function'];

export function wholeFrom(least: number, most?: number): Check {
  const holds = (value: number): boolean => Number.isSafeInteger(value) && value >= least && value <= (most ?? value);
  return [`a whole number from ${least}${most === undefined ? '' : ` to ${most}`}`, (value) => holds(value as number)];
}

export const WHOLE_FROM_1: Check = wholeFrom(1);

/** Whether a host is `localhost`, in 127.0.0.0/8, `::1` or `[::1]`. Other host names are not resolved. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  if (name.startsWith('127.')) return LOOPBACK.test(name);
  return name === 'localhost' || name === '::1' || name === '[::1]';
}

/** Whether a value is the origin of a URL with the scheme http or https, without a slash at the end. */
export function isOrigin(value: unknown): value is string {
  return (
    typeof value === 'string' && /^https?:[^*]+$/.test(value) && URL.canParse(value) && new URL(value).origin === value
  );
}

/** Returns what is wrong with the URL of a service, or undefined if the URL can be used. */
export function endpointProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'is not an http or https URL';
  if (url.username !== '' || url.password !== '') return 'contains a user or password';
  return url.search !== '' || url.hash !== '' ? 'has a query or fragment' : undefined;
}

export const KEY_CHARACTERS_MAX = 8_192;

/** Whether a header can contain a key. The key has printable ASCII characters without spaces. */
export function isHeaderKey(text: string): boolean {
  return text.length <= KEY_CHARACTERS_MAX && /^[\x21-\x7e]+$/.test(text);
}

/** Returns an endpoint's URL without credentials, query and trailing slashes. */
export function shownAddress({ origin, pathname }: URL): string {
  return origin + pathname.replace(/(?<!\/)\/+$/, '');
}

/** Matches addresses in 127.0.0.0/8. Leading zeros are not allowed. */
const LOOPBACK = /^127(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
