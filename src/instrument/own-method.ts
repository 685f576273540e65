import { bare } from '../base/bare.ts';

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Puts `make(method)` in the place of a method for good, on the object itself and not among its keys: for results, which
 * are given to one call. What an application holds for longer takes `replaceMethod`. False when there is no such method, or
 * the object does not let it be replaced; nothing has changed then.
 */
export function replaceOwn(object: object, key: PropertyKey, make: (method: Method) => Method): boolean {
  try {
    const method = (object as Record<PropertyKey, unknown>)[key];
    if (typeof method !== 'function') return false;
    return putOwn(object, key, make(method as Method));
  } catch {
    return false;
  }
}

/** The same where the method has been read before. */
export function putOwn(object: object, key: PropertyKey, method: Method): boolean {
  try {
    return Reflect.defineProperty(object, key, bare({ configurable: true, writable: true, value: method }));
  } catch {
    return false;
  }
}
