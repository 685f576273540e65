import type { CutRun, Lease, SessionStore } from '../storage/session-store.ts';
import { Bell } from './bell.ts';

export interface WaitingRun extends CutRun {
  begin(): void;
  /** Has it end at once when it begins. */
  cancel(): void;
}

interface Wait {
  readonly bell: Bell;
  readonly over: Promise<void>;
}

/** Runs of this instance that wait for the one before them. Their order is that of the store, across instances. */
export class WaitingRuns {
  readonly #sessions: SessionStore;
  readonly #log: (line: string) => void;
  readonly #waits = new Map<WaitingRun, Wait>();
  #isOver = false;

  constructor(sessions: SessionStore, log: (line: string) => void) {
    this.#sessions = sessions;
    this.#log = log;
  }

  /** To be called when the store has it wait. */
  add(run: WaitingRun): void {
    const bell = new Bell();
    this.#waits.set(run, { bell, over: this.#wait(run, bell) });
  }

  /** Has those of a thread end as soon as they begin. */
  cancelAll(threadId: string): void {
    for (const run of this.#waits.keys()) if (run.threadId === threadId) run.cancel();
  }

  /** Gives the runs that wait no longer, and will not begin; the store may have given its thread to one. */
  async clear(): Promise<readonly CutRun[]> {
    this.#isOver = true;
    const waits = [...this.#waits.values()];
    for (const { bell } of waits) bell.ring();
    await Promise.all(waits.map(({ over }) => over));
    return [...this.#waits.keys()];
  }

  async #wait(run: WaitingRun, bell: Bell): Promise<void> {
    const unwatch = this.#sessions.watch(run.threadId, (what) => {
      if (what === 'run') bell.ring();
    });
    // The thread may have been left since it was asked for.
    bell.ring();
    const lease = await this.#untilTurn(run, bell);
    unwatch();
    if (this.#isOver) return;
    this.#waits.delete(run);
    if (lease === 'lost') {
      this.#log(`run ${run.runId} waits no longer in thread ${run.threadId}: the store has it no more`);
      return;
    }
    if (lease === 'cancelled') run.cancel();
    run.begin();
  }

  async #untilTurn({ threadId, runId }: WaitingRun, bell: Bell): Promise<Lease> {
    let lease: Lease = 'waiting';
    while (lease === 'waiting') {
      await bell.rung(this.#sessions.renewMs);
      if (this.#isOver) return lease;
      // A store that is away is asked again.
      lease = await this.#sessions.renew(threadId, runId).catch(() => 'waiting');
    }
    return lease;
  }
}
