import type { CutRun, SessionStore } from '../storage/session-store.ts';
import { CommandError } from './command-error.ts';

/** Runs of a thread that wait in one instance; more are refused. */
const WAITING_MAX = 10;

export interface WaitingRun extends CutRun {
  begin(): void;
  /** Has it end at once when it begins. */
  cancel(): void;
}

interface Queue {
  readonly runs: WaitingRun[];
  readonly unwatch: () => void;
  /** Counts what may have left the thread free. */
  signs: number;
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

  /** Tries again: the store may have been away when there was a sign. */
  tryAll(): void {
    for (const threadId of this.#queues.keys()) void this.#next(threadId);
  }

  /** Gives the runs that wait no longer, and will not begin. */
  clear(): readonly CutRun[] {
    const queues = [...this.#queues.values()];
    for (const { unwatch } of queues) unwatch();
    this.#queues.clear();
    return queues.flatMap(({ runs }) => runs);
  }

  #open(threadId: string): Queue {
    const unwatch = this.#sessions.watch(threadId, (what) => {
      if (what === 'run') void this.#next(threadId);
    });
    const queue = { runs: [], unwatch, signs: 0, isClaiming: false };
    this.#queues.set(threadId, queue);
    return queue;
  }

  /** One claim at a time. A sign that comes meanwhile is of what its answer does not know yet, so that it is made once more. */
  async #next(threadId: string): Promise<void> {
    const queue = this.#queues.get(threadId);
    if (queue === undefined) return;
    queue.signs += 1;
    if (queue.isClaiming) return;
    queue.isClaiming = true;
    for (let seen = 0; seen !== queue.signs; ) {
      seen = queue.signs;
      await this.#claim(threadId, queue);
    }
    queue.isClaiming = false;
  }

  async #claim(threadId: string, queue: Queue): Promise<void> {
    const [first] = queue.runs;
    if (first === undefined) return;
    try {
      if ((await this.#sessions.claim(threadId, first.runId)) !== first.runId) return;
      // Nobody is to run it any more.
      if (this.#queues.get(threadId) !== queue) return await this.#sessions.release(threadId, first.runId);
    } catch {
      // The store is away: it is tried again.
      return;
    }
    queue.runs.splice(queue.runs.indexOf(first), 1);
    if (queue.runs.length === 0) {
      queue.unwatch();
      this.#queues.delete(threadId);
    }
    first.begin();
  }
}
