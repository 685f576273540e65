import type { Wake } from './session-store.ts';

/** Who is to be told when something happens to a thread. */
export class Wakers {
  readonly #byThread = new Map<string, Set<Wake>>();

  /** Gives what ends it. */
  add(threadId: string, wake: Wake): () => void {
    const wakers = this.#byThread.get(threadId) ?? new Set<Wake>();
    wakers.add(wake);
    this.#byThread.set(threadId, wakers);
    return () => {
      wakers.delete(wake);
      if (wakers.size === 0 && this.#byThread.get(threadId) === wakers) this.#byThread.delete(threadId);
    };
  }

  has(threadId: string): boolean {
    return this.#byThread.has(threadId);
  }

  wake(threadId: string, what: Parameters<Wake>[0]): void {
    for (const wake of [...(this.#byThread.get(threadId) ?? [])]) wake(what);
  }

  /** For when signs may have been missed. */
  wakeAll(): void {
    for (const threadId of [...this.#byThread.keys()]) {
      this.wake(threadId, 'events');
      this.wake(threadId, 'run');
    }
  }
}
