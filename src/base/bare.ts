/** Inherits nothing. As a prototype it costs a look-up nothing, which an object without a prototype would. */
const nothing: object = Object.freeze(Object.create(null));

/**
 * The own properties of one object or two in another that inherits nothing: an option that was not given is not there,
 * whatever the host has put on all objects.
 */
export function bare<Own extends object, More extends object = object>(own: Own, more?: More): Own & More {
  return Object.assign(Object.create(nothing), own, more);
}

/** A property's description for `defineProperty`, which would take a `get` or `set` of all objects for a part of it. */
export function bareDescriptor(object: object, key: PropertyKey): PropertyDescriptor | undefined {
  const descriptor = Object.getOwnPropertyDescriptor(object, key);
  return descriptor && Object.setPrototypeOf(descriptor, null);
}
