import type { SessionStore } from '../storage/session-store.ts';
import { CommandError } from './command-error.ts';

/** Runs of a thread that wait in one instance; more are refused. */
const WAITING_MAX = 10;

export interface WaitingRun {
  readonly threadId: string;
  readonly runId: string;
  begin(): void;
  /** Has it end at once when it begins. */
  cancel(): void;
}

interface Queue {
  readonly runs: WaitingRun[];
  readonly unwatch: () => void;
  isClaiming: boolean;
}

/** Runs that wait for the one before them, each thread's in the order in which they came; across instances in none. */
export class WaitingRuns {
  readonly #sessions: SessionStore;
  readonly #queues = new Map<string, Queue>();

  constructor(sessions: SessionStore) {
    this.#sessions = sessions;
  }

  add(run: WaitingRun, isFirst: boolean): void {
    const { threadId } = run;
    const queue = this.#queues.get(threadId) ?? this.#open(threadId);
    if (queue.runs.length >= WAITING_MAX) {
      throw new CommandError('invalid_argument', `${WAITING_MAX} runs wait in thread ${threadId} already.`);
    }
    if (isFirst) queue.runs.unshift(run);
    else queue.runs.push(run);
    // The thread may have been released since it was asked for.
    void this.#next(threadId);
  }

  /** Gives false where no such run waits. */
  cancel(threadId: string, runId: string): boolean {
    const run = this.#queues.get(threadId)?.runs.find((waiting) => waiting.runId === runId);
    run?.cancel();
    return run !== undefined;
  }

  cancelAll(threadId: string): void {
    for (const run of this.#queues.get(threadId)?.runs ?? []) run.cancel();
  }

  clear(): void {
    for (const { unwatch } of this.#queues.values()) unwatch();
    this.#queues.clear();
  }

  #open(threadId: string): Queue {
    const unwatch = this.#sessions.watch(threadId, (what) => {
      if (what === 'run') void this.#next(threadId);
    });
    const queue = { runs: [], unwatch, isClaiming: false };
    this.#queues.set(threadId, queue);
    return queue;
  }

  async #next(threadId: string): Promise<void> {
    const queue = this.#queues.get(threadId);
    const first = queue?.runs[0];
    if (queue === undefined || first === undefined || queue.isClaiming) return;
    queue.isClaiming = true;
    try {
      const holder = await this.#sessions.claim(threadId, first.runId);
      if (holder !== first.runId) return;
    } catch {
      // The store is away: its next sign tries again.
      return;
    } finally {
      queue.isClaiming = false;
    }
    queue.runs.splice(queue.runs.indexOf(first), 1);
    if (queue.runs.length === 0) {
      queue.unwatch();
      this.#queues.delete(threadId);
    }
    first.begin();
  }
}
