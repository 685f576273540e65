import { guard } from '../base/guard.ts';

/**
 * Calls `observe` with the object in a property. Each later assignment of an object calls `observe` again, even with
 * the same object. Until `observe` returns, the property has its previous value. If `observe` loads modules, a tracer
 * provider that is about to be assigned records nothing of that.
 */
export function watchProperty(place: string, holder: object, key: PropertyKey, observe: (value: object) => void): void {
  let value: unknown = Reflect.get(holder, key);
  const observeObject = (assigned: unknown) => {
    if (typeof assigned === 'object' && assigned !== null) observe(assigned);
  };
  observeObject(value);
  Object.defineProperty(holder, key, {
    configurable: true,
    // The property must be enumerable, because Sentry copies the properties of a watched object.
    enumerable: true,
    get: () => value,
    set(assigned: unknown) {
      guard(place, () => observeObject(assigned));
      value = assigned;
    },
  });
}
