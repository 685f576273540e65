import { MemoryStore } from '../receiver/store/memory-store.ts';
import type { RunOperation, StoreChange } from '../receiver/store/store.ts';
import { recordBytes } from './audit-text.ts';

/** Hands on each record as it comes, counts it, and keeps none. */
export class AuditStore extends MemoryStore {
  readonly counts = { posts: 0, patches: 0, attachments: 0, bytes: 0 };
  readonly #show: (operation: RunOperation) => void;
  readonly #arrivals = new Set<(change: StoreChange) => void>();

  constructor(show: (operation: RunOperation) => void) {
    super();
    this.#show = show;
  }

  override async apply(operations: readonly RunOperation[]): Promise<void> {
    for (const operation of operations) {
      this.counts[operation.kind === 'post' ? 'posts' : 'patches'] += 1;
      this.counts.attachments += operation.attachments.length;
      this.counts.bytes += recordBytes(operation);
      this.#show(operation);
    }
    for (const listener of this.#arrivals) listener({ seq: 0, traceIds: [] });
  }

  override subscribe(listener: (change: StoreChange) => void): () => void {
    this.#arrivals.add(listener);
    return () => void this.#arrivals.delete(listener);
  }
}
