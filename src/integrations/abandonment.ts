const registry = new FinalizationRegistry<() => void>((abandoned) => abandoned());

/**
 * Tells when the object is collected that would have brought the end of a run: a response that nobody read, a stream that
 * was left.
 */
export class Abandonment {
  /** From now on it is this object, and no other. What is called when it is gone must not lead to it. */
  watch(object: object, abandoned: () => void): void {
    this.stop();
    registry.register(object, abandoned, this);
  }

  stop(): void {
    registry.unregister(this);
  }
}
