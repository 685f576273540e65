/** Keeps a value with each of many objects, like a `WeakMap`. */
export interface Slot<Value> {
  get(object: object): Value | undefined;
  set(object: object, value: Value): void;
}

/**
 * Creates a slot: a private field on the objects themselves, which other code neither sees nor copies. For each object, a
 * `WeakMap` costs several times as much, mostly in the garbage collector.
 */
export function makeSlot<Value>(): Slot<Value> {
  return class Field extends Identity {
    #value: Value;

    constructor(object: object, value: Value) {
      super(object);
      this.#value = value;
    }

    static get(object: object): Value | undefined {
      return #value in object ? object.#value : undefined;
    }

    static set(object: object, value: Value): void {
      if (#value in object) object.#value = value;
      else new Field(object, value);
    }
  };
}

class Identity {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: a subclass adds its private field to this object.
    return object;
  }
}
