import { types } from './node.ts';

export { visible, visibleJson } from './visible.ts';

/**
 * Converts any value to text for a message. Never throws: if the conversion fails, for example for a revoked proxy,
 * returns a placeholder. An array is described by its length, because the text of nested arrays could be arbitrarily
 * long.
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
 * Describes a thrown value on one line with at most 300 characters. For an error, uses the message, else the code, else
 * the name. For an AggregateError, which Node throws if it cannot connect to any address of a host, describes the first
 * error.
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

/** Describes a value for a message. Shows only an object's kind, not its content. */
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

/** Whether the character at index `at` in JSON text is escaped, because it follows an odd number of backslashes. */
export function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
