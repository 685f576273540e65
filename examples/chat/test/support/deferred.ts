/** A promise, and what settles it. `Promise.withResolvers` is not there on Node 20. */
export class Deferred<Value = void> {
  readonly promise: Promise<Value>;
  resolve!: (value: Value) => void;
  reject!: (reason: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Who waits for it may come later.
    this.promise.catch(() => undefined);
  }
}
