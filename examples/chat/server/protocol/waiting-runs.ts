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
  /** Under way. */
  claiming: Promise<void> | undefined;
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
    this.#next(threadId);
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
    for (const threadId of this.#queues.keys()) this.#next(threadId);
  }

  /** Gives the runs that wait no longer, and will not begin; one may have got its thread meanwhile. */
  async clear(): Promise<readonly CutRun[]> {
    const queues = [...this.#queues.values()];
    for (const { unwatch } of queues) unwatch();
    this.#queues.clear();
    await Promise.all(queues.map(({ claiming }) => claiming));
    return queues.flatMap(({ runs }) => runs);
  }

  #open(threadId: string): Queue {
    const unwatch = this.#sessions.watch(threadId, (what) => {
      if (what === 'run') this.#next(threadId);
    });
    const queue: Queue = { runs: [], unwatch, signs: 0, claiming: undefined };
    this.#queues.set(threadId, queue);
    return queue;
  }

  #next(threadId: string): void {
    const queue = this.#queues.get(threadId);
    if (queue === undefined) return;
    queue.signs += 1;
    queue.claiming ??= this.#claimAll(threadId, queue).finally(() => {
      queue.claiming = undefined;
    });
  }

  /** One claim at a time. A sign that comes meanwhile is of what its answer does not know yet, so that it is made once more. */
  async #claimAll(threadId: string, queue: Queue): Promise<void> {
    for (let seen = 0; seen !== queue.signs; ) {
      seen = queue.signs;
      await this.#claim(threadId, queue);
    }
  }

  async #claim(threadId: string, queue: Queue): Promise<void> {
    const [first] = queue.runs;
    if (first === undefined) return;
    try {
      if ((await this.#sessions.claim(threadId, first.runId)) !== first.runId) return;
    } catch {
      // The store is away: it is tried again.
      return;
    }
    // Nobody is to run it any more.
    if (this.#queues.get(threadId) !== queue) return;
    queue.runs.splice(queue.runs.indexOf(first), 1);
    if (queue.runs.length === 0) {
      queue.unwatch();
      this.#queues.delete(threadId);
    }
    first.begin();
  }
}
