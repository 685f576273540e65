import { DEFAULT_SCOPE, type Store, StoreError } from '../store/store.ts';

/** Minimum interval between tests, in milliseconds. */
const INTERVAL_MS = 10_000;

export class WriteCheck {
  readonly #store: Pick<Store, 'apply'>;
  #testedAtMs = Number.NEGATIVE_INFINITY;
  #problem: Promise<string | undefined> = Promise.resolve(undefined);

  constructor(store: Pick<Store, 'apply'>) {
    this.#store = store;
  }

  /** Resolves with the reason why the store could not write in the latest test, or with undefined if it could. */
  problem(): Promise<string | undefined> {
    const nowMs = performance.now();
    if (nowMs - this.#testedAtMs >= INTERVAL_MS) {
      this.#testedAtMs = nowMs;
      this.#problem = this.#store.apply(DEFAULT_SCOPE, []).then(() => undefined, reasonOf);
    }
    return this.#problem;
  }
}

/** `/readyz` needs no key. The text after the first colon of an error may contain host names and paths. */
function reasonOf(error: unknown): string {
  return error instanceof StoreError ? (error.message.split(':', 1)[0] ?? '') : 'The store cannot write';
}
