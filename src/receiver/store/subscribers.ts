import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import type { StoreChange } from './store.ts';

/** Who wants to hear of the changes of a store. */
export class Subscribers {
  readonly #listeners = new Set<(change: StoreChange) => void>();

  add(listener: (change: StoreChange) => void): () => void {
    // One of its own for each call, so that a function given twice is called twice and each call undoes itself alone.
    const own = (change: StoreChange): void => listener(change);
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  tell(change: StoreChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        diagnostics.error(`a listener of the receiver's store failed: ${messageOf(error)}`);
      }
    }
  }
}
