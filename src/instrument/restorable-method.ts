import { bareDescriptor } from '../base/bare.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { type Method, putOwn } from './own-method.ts';

/** A method that was replaced: what took the place of which, and the property as it was; undefined where it was inherited. */
interface Replacement {
  readonly wrapper: unknown;
  readonly original: unknown;
  readonly before: PropertyDescriptor | undefined;
}

const replacements = new WeakMap<object, Map<PropertyKey, Replacement>>();

/**
 * Puts `wrap(method)` in the place of one method of an object, on the object itself: its class, its identity and its
 * private fields stay as they are. A method that has been replaced is left alone, so that doing it again changes nothing,
 * also where somebody else has replaced it since: theirs may call ours. False when there is no such method, or the
 * object does not let it be replaced; that is told once per `place` and `name`, which says more than the key where
 * several objects of one owner have a method of the same key.
 */
export function replaceMethod(
  place: string,
  owner: object,
  key: PropertyKey,
  wrap: (method: Method) => Method,
  name: string = String(key),
): boolean {
  const isReplaced = guard(place, () => {
    const original: unknown = (owner as Record<PropertyKey, unknown>)[key];
    const known = replacements.get(owner) ?? new Map<PropertyKey, Replacement>();
    const earlier = known.get(key);
    if (earlier !== undefined && earlier.original !== original) return true;
    if (typeof original !== 'function') return false;
    const before = bareDescriptor(owner, key);
    const wrapper = wrap(original as Method);
    if (!putOwn(owner, key, wrapper)) return false;
    replacements.set(owner, known.set(key, { wrapper, original, before }));
    return true;
  });
  if (isReplaced !== true) {
    diagnostics.warnOnce(
      `${place}.${name}`,
      `${place}: expected \`${name}\` to be a method that can be replaced; it is not traced.`,
    );
  }
  return isReplaced === true;
}

/** Undoes `replaceMethod` for all methods of an object; one that somebody else has replaced since is left as it is. */
export function restoreMethods(place: string, owner: object): void {
  guard(place, () => {
    const known = replacements.get(owner);
    for (const [key, { wrapper, before }] of known ?? []) {
      if ((owner as Record<PropertyKey, unknown>)[key] !== wrapper) continue;
      if (before === undefined) Reflect.deleteProperty(owner, key);
      else Reflect.defineProperty(owner, key, before);
      known?.delete(key);
    }
  });
}
