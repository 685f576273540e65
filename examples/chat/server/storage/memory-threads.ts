import type { ThreadIndex, ThreadSummary } from './thread-index.ts';

export class MemoryThreads implements ThreadIndex {
  /** By id, the last changed at the end. */
  readonly #threads = new Map<string, ThreadSummary>();

  async touch(thread: ThreadSummary, how?: 'renamed'): Promise<void> {
    const known = this.#threads.get(thread.id)?.title ?? '';
    const title = how === 'renamed' ? thread.title || known : known || thread.title;
    this.#threads.delete(thread.id);
    this.#threads.set(thread.id, { ...thread, title });
  }

  async list(limit: number, offset: number): Promise<ThreadSummary[]> {
    return [...this.#threads.values()].reverse().slice(offset, offset + limit);
  }

  async delete(id: string): Promise<void> {
    this.#threads.delete(id);
  }
}
