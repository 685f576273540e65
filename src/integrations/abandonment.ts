const registry = new FinalizationRegistry<() => void>((abandoned) => abandoned());

/**
 * Tells when the object is collected that would have brought the end of a run: a response that nobody read, a stream that
 * was left. What is called then must not lead to the object.
 */
export class Abandonment {
  readonly #abandoned: () => void;

  constructor(abandoned: () => void) {
    this.#abandoned = abandoned;
  }

  /** From now on it is this object, and no other. */
  watch(object: object): void {
    this.stop();
    registry.register(object, this.#abandoned, this);
  }

  stop(): void {
    registry.unregister(this);
  }
}
