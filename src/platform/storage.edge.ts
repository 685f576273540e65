/** Replaces `AsyncLocalStorage`. The stored value is lost at the first `await`. */
export class SynchronousStorage {
  #store: unknown;

  getStore(): unknown {
    return this.#store;
  }

  run(store: unknown, fn: (...args: unknown[]) => unknown, ...args: unknown[]): unknown {
    const before = this.#store;
    this.#store = store;
    try {
      return fn(...args);
    } finally {
      this.#store = before;
    }
  }
}

/** Replaces Node's `AsyncResource`. `runInAsyncScope` calls the function without changing the async context. */
export class AsyncResource {
  runInAsyncScope<Result, Args extends unknown[]>(fn: (...args: Args) => Result, self: unknown, ...args: Args): Result {
    return Reflect.apply(fn, self, args);
  }
}
