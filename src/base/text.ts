import { types } from '../platform/node.ts';
import { latePattern } from './late-pattern.ts';

export { visible, visibleJson } from './visible.ts';

/**
 * Converts any value to text for a message. Never throws. If the conversion fails, for example for a revoked proxy,
 * returns a placeholder. Shows only an array's length, because nested arrays could produce very long text.
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
 * Describes a thrown value on one line with at most 300 characters. Uses an error's message. If the message is empty,
 * uses the error's code or name. For an `AggregateError`, describes the first error. Node throws an `AggregateError` if
 * all addresses of a host are unreachable.
 */
export function messageOf(thrown: unknown): string {
  let message: unknown;
  try {
    const error = thrown instanceof AggregateError && thrown.errors.length > 0 ? thrown.errors[0] : thrown;
    message = error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code || error.name : error;
  } catch {
    message = '[an error that cannot be read]';
  }
  return safeText(message).replace(controlsAndSpaces(), ' ').slice(0, 300);
}

const controlsAndSpaces = latePattern(String.raw`[\p{Cc}\s]+`, 'gu');

/** Describes a value for an error message. The content of an object is not shown. */
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

export function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}

/** Like `Array.isArray`, but returns false for a revoked proxy instead of throwing. */
function isList(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** The method name with which an object customizes its output in Node's `util.inspect` and `console.log`. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/** Copies part of a string. A cached slice would keep the whole string in memory. */
export function detached(part: string): string {
  return Object.keys({ [part]: true })[0] as string;
}
