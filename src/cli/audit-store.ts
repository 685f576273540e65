import type { RunOperation, Store, StoreChange } from '../receiver/store.ts';
import { recordBytes } from './audit-text.ts';

/** Hands on each record as it comes, counts it, and keeps none. */
export class AuditStore implements Store {
  readonly counts = { posts: 0, patches: 0, attachments: 0, bytes: 0 };
  readonly #show: (operation: RunOperation) => void;
  readonly #listeners = new Set<(change: StoreChange) => void>();

  constructor(show: (operation: RunOperation) => void) {
    this.#show = show;
  }

  async apply(operations: readonly RunOperation[]): Promise<void> {
    for (const operation of operations) {
      this.counts[operation.kind === 'post' ? 'posts' : 'patches'] += 1;
      this.counts.attachments += operation.attachments.length;
      this.counts.bytes += recordBytes(operation);
      this.#show(operation);
    }
    for (const listener of this.#listeners) listener({ traceIds: [] });
  }

  async runs(): Promise<[]> {
    return [];
  }

  async trace(): Promise<[]> {
    return [];
  }

  async attachment(): Promise<undefined> {
    return undefined;
  }

  subscribe(listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
