import { RunspanError } from '../../base/errors.ts';
import { DEFAULT_SCOPE, type Store, StoreError } from '../store/store.ts';

/** Time for which the outcome of the latest write is used, in milliseconds. */
const OUTCOME_MS = 10_000;

/** Knows from the latest write whether the store can write. Tests a write of its own if clients have not written. */
export class WriteCheck {
  readonly #apply: Store['apply'];
  #problem: string | undefined;
  #settledAtMs = Number.NEGATIVE_INFINITY;
  #testing: Promise<void> | undefined;

  constructor({ apply }: Pick<Store, 'apply'>) {
    this.#apply = apply;
  }

  /** Calls `apply` of the store. An operation that the store refuses tells nothing about other writes. */
  readonly apply: Store['apply'] = async (scope, operations) => {
    try {
      await this.#apply(scope, operations);
      this.#settle(undefined);
    } catch (error) {
      const isRefused = error instanceof StoreError ? error.reason === 'too_large' : operations.length > 0;
      if (!isRefused) this.#settle(reasonOf(error));
      throw error;
    }
  };

  /** Resolves with the reason why the store cannot write, or with undefined if it can. */
  async problem(): Promise<string | undefined> {
    if (performance.now() - this.#settledAtMs >= OUTCOME_MS) {
      this.#testing ??= this.apply(DEFAULT_SCOPE, [])
        .catch(() => {})
        .finally(() => {
          this.#testing = undefined;
        });
      await this.#testing;
    }
    return this.#problem;
  }

  /** Tests a write at the next request if a request has found that the store is damaged. */
  failed(error: unknown): void {
    if (error instanceof RunspanError && error.code === 'RUNSPAN_STORE_INVALID') {
      this.#settledAtMs = Number.NEGATIVE_INFINITY;
    }
  }

  #settle(problem: string | undefined): void {
    this.#problem = problem;
    this.#settledAtMs = performance.now();
  }
}

/** `/readyz` needs no key. The text after the first colon of an error may contain host names and paths. */
function reasonOf(error: unknown): string {
  return error instanceof StoreError ? (error.message.split(':', 1)[0] ?? '') : 'The store cannot write';
}
