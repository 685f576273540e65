/** Stores one value per object, like a `WeakMap` does. */
export interface Slot<Value> {
  get(object: object): Value | undefined;
  set(object: object, value: Value): void;
}

/**
 * Creates a slot that stores each value in a private field of the object. Other code can neither read nor copy a
 * private field. A `WeakMap` would be several times slower, mainly because of garbage collection.
 */
export function makeSlot<Value>(): Slot<Value> {
  /** Values for objects that are not extensible. */
  const others = new WeakMap<object, Value>();
  return class Field extends Identity {
    #value: Value;

    constructor(object: object, value: Value) {
      super(object);
      this.#value = value;
    }

    static get(object: object): Value | undefined {
      return #value in object ? object.#value : others.get(object);
    }

    static set(object: object, value: Value): void {
      if (#value in object) object.#value = value;
      else if (Object.isExtensible(object)) new Field(object, value);
      else others.set(object, value);
    }
  };
}

class Identity {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: a subclass adds its private field to this object.
    return object;
  }
}
