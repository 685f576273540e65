import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { type Method, putOwn } from './own-method.ts';

/** A method that was replaced: what took the place of which, and the property as it was; undefined where it was inherited. */
interface Patch {
  readonly wrapper: unknown;
  readonly original: unknown;
  readonly before: PropertyDescriptor | undefined;
}

const patches = new WeakMap<object, Map<PropertyKey, Patch>>();

/**
 * Puts `wrap(method)` in the place of one method of an object, on the object itself: its class, its identity and its
 * private fields stay as they are. A method that has been replaced is left alone, so that doing it again changes nothing,
 * also where somebody else has replaced it since: theirs may call ours. False when there is no such method, or the
 * object does not let it be replaced; that is told once per `place`.
 */
export function replaceMethod(
  place: string,
  owner: object,
  key: PropertyKey,
  wrap: (method: Method) => Method,
): boolean {
  const isReplaced = guard(place, () => {
    const original: unknown = (owner as Record<PropertyKey, unknown>)[key];
    const known = patches.get(owner) ?? new Map<PropertyKey, Patch>();
    const patch = known.get(key);
    if (patch !== undefined && patch.original !== original) return true;
    if (typeof original !== 'function') return false;
    const before = Object.getOwnPropertyDescriptor(owner, key);
    const wrapper = wrap(original as Method);
    if (!putOwn(owner, key, wrapper)) return false;
    patches.set(owner, known.set(key, { wrapper, original, before }));
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
    const known = patches.get(owner);
    for (const [key, { wrapper, before }] of known ?? []) {
      if ((owner as Record<PropertyKey, unknown>)[key] !== wrapper) continue;
      if (before === undefined) Reflect.deleteProperty(owner, key);
      else Reflect.defineProperty(owner, key, before);
      known?.delete(key);
    }
  });
}
