import { types } from './node.ts';

export { visible, visibleJson } from './visible.ts';

/**
 * Converts any value to text for a message. Never throws. Returns a placeholder if the conversion fails, for example
 * for a revoked proxy. For an array, the text contains only the length, because the text of nested arrays could be
 * arbitrarily long.
 */
export function safeText(value: unknown): string {
  try {
    if (typeof value === 'string') return value;
    return Array.isArray(value) ? `[object Array(${value.length})]` : String(value);
  } catch {
    return `[unprintable ${typeof value}]`;
  }
}

/**
 * Describes a thrown value on one line with at most 300 characters: an error by its message, else its code, else its
 * name, and any other value by its text. For an AggregateError, which Node throws if the connections to all addresses
 * of a host fail, describes the first error.
 */
export function messageOf(thrown: unknown): string {
  let message: unknown;
  try {
    const error = thrown instanceof AggregateError && thrown.errors.length > 0 ? thrown.errors[0] : thrown;
    message = error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code || error.name : error;
  } catch {
    message = '[an error that cannot be read]';
  }
  return safeText(message)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, 300);
}

/** Describes a value for a message. An object is described by its kind only, without its content. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value, 80));
  if (value === null) return 'null';
  if (types.isPromise(value)) return 'a promise';
  if (typeof value === 'object') return isList(value) ? 'an array' : 'an object';
  if (typeof value === 'function') return 'a function';
  return typeof value === 'number' ? `the number ${value}` : safeText(value);
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return typeof value === 'object' && isList(value) ? 'a list' : typeof value;
}

export function cut(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
}

/** Like `Array.isArray`, but returns false for a revoked proxy instead of throwing. */
function isList(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** The key of the method that Node's `util.inspect` and `console.log` call to format an object. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

const BACKSLASH = 0x5c;

/**
 * Whether the character at index `at` of JSON text is escaped, which means that it follows an odd number of
 * backslashes.
 */
export function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
