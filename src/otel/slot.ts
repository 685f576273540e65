/** Gives back the object that it is asked to construct, so that the fields of a class below are put on that. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for.
    return object;
  }
}

/**
 * A place for one value on each object of others, frozen ones too. It is a private field, which nobody else sees or copies.
 * The garbage collector has nothing to do for it, where each entry of a WeakMap costs it more than a microsecond.
 */
export class Slot<Value> {
  readonly get: (object: object) => Value | undefined;
  readonly set: (object: object, value: Value) => void;

  constructor() {
    class Holder extends Given {
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
        else new Holder(object, value);
      }
    }
    this.get = Holder.get;
    this.set = Holder.set;
  }
}
