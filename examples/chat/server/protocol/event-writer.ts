import type { NewEvent, SessionStore } from '../storage/session-store.ts';

/** Events that wait for the store; a run waits for it then. */
const PENDING_MAX = 1_000;
const BATCH_MAX = 500;

/**
 * Takes the events of a run to the store, in order: those that come while it is at work go together next. What the store fails with is final,
 * since nobody knows then whether the events are there, and none is to come twice.
 */
export class EventWriter {
  readonly #sessions: SessionStore;
  readonly #threadId: string;
  #pending: NewEvent[] = [];
  #draining: Promise<void> | undefined;
  #failure: Error | undefined;

  constructor(sessions: SessionStore, threadId: string) {
    this.#sessions = sessions;
    this.#threadId = threadId;
  }

  /** Throws what the store has failed with, if it has. */
  write(...events: readonly NewEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (events.length === 0) return;
    this.#pending.push(...events);
    this.#draining ??= this.#drain();
  }

  /** Waits where the store is far behind. */
  async room(): Promise<void> {
    while (this.#pending.length > PENDING_MAX) await this.#draining;
  }

  /** Waits until all of it is stored. */
  async flush(): Promise<void> {
    await this.#draining;
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #drain(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        await this.#sessions.append(this.#threadId, this.#pending.splice(0, BATCH_MAX));
      }
    } catch (error) {
      this.#failure = error as Error;
      this.#pending = [];
    } finally {
      this.#draining = undefined;
    }
  }
}
