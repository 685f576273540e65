import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';

type Method = (...args: unknown[]) => unknown;

/** A method that was replaced: what took its place, and the property as it was; undefined where it was inherited. */
interface Patch {
  readonly wrapper: Method;
  readonly before: PropertyDescriptor | undefined;
}

const patches = new WeakMap<object, Map<PropertyKey, Patch>>();

/**
 * Puts `wrap(method)` in the place of one method of an object, on the object itself: its class, its identity and its
 * private fields stay as they are. A method that has been replaced is left alone, so that doing it again changes nothing.
 * False when there is no such method, or the object does not let it be replaced; that is told once per `place`.
 */
export function replaceMethod(
  place: string,
  owner: object,
  key: PropertyKey,
  wrap: (method: Method) => Method,
): boolean {
  const isReplaced = guard(place, () => {
    const method: unknown = (owner as Record<PropertyKey, unknown>)[key];
    const known = patches.get(owner) ?? new Map<PropertyKey, Patch>();
    if (known.has(key) && known.get(key)?.wrapper === method) return true;
    if (typeof method !== 'function') return false;
    const before = Object.getOwnPropertyDescriptor(owner, key);
    const wrapper = wrap(method as Method);
    const property = { configurable: true, writable: true, enumerable: before?.enumerable ?? false, value: wrapper };
    if (!Reflect.defineProperty(owner, key, property)) return false;
    patches.set(owner, known.set(key, { wrapper, before }));
    return true;
  });
  if (isReplaced !== true) {
    diagnostics.warnOnce(
      `${place}.${String(key)}`,
      `${place}: there is no method \`${String(key)}\` that can be traced.`,
    );
  }
  return isReplaced === true;
}

/** Undoes `replaceMethod` for all methods of an object; one that somebody else has replaced since is left as it is. */
export function restoreMethods(place: string, owner: object): void {
  guard(place, () => {
    for (const [key, { wrapper, before }] of patches.get(owner) ?? []) {
      if ((owner as Record<PropertyKey, unknown>)[key] !== wrapper) continue;
      if (before === undefined) Reflect.deleteProperty(owner, key);
      else Reflect.defineProperty(owner, key, before);
    }
    patches.delete(owner);
  });
}
