import { guard } from '../base/guard.ts';

/**
 * Calls `observe` with the object in a property. Each later assignment of an object calls `observe` again, even with
 * the same object.
 */
export function watchProperty(place: string, holder: object, key: PropertyKey, observe: (value: object) => void): void {
  let value: unknown = Reflect.get(holder, key);
  const observeValue = () => {
    if (typeof value === 'object' && value !== null) observe(value);
  };
  observeValue();
  Object.defineProperty(holder, key, {
    configurable: true,
    // The property must be enumerable, because Sentry copies the properties of a watched object.
    enumerable: true,
    get: () => value,
    set(assigned: unknown) {
      value = assigned;
      guard(place, observeValue);
    },
  });
}
