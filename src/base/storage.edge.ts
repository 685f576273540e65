/** Without an `AsyncLocalStorage`, a store is current only until the first `await`. */
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

/**
 * Calls the function in the current context. Browsers have no contexts. On edge runtimes, the context belongs to the
 * request that delivers.
 */
export class AsyncResource {
  runInAsyncScope<Result, Args extends unknown[]>(fn: (...args: Args) => Result, self: unknown, ...args: Args): Result {
    return Reflect.apply(fn, self, args);
  }
}
