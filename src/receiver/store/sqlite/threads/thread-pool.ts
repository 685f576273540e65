import { SharedLimit } from '../../../domain/shared-limit.ts';
import { StoreError } from '../../store.ts';
import type { ArgumentsOf, ResultOf, Thread } from './thread.ts';

/** Thrown by a query that was ended. Nobody waits for its result. */
export class EndedError extends StoreError {
  constructor() {
    super('unavailable', 'The query was ended: its client left, or the store closes');
  }
}

/** A thread, and a number that is 1 if its call must end. */
interface Member<Calls> {
  readonly thread: Thread<Calls>;
  readonly ended: Int32Array;
}

/** Whose call it is, see `Scope`. The tenant of the store's own calls is `''`. */
export interface Caller {
  readonly tenant: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Threads that are started on demand and execute one call at a time. Calls above the maximum number, or above the share of
 * their tenant, wait. Tenants with the fewest calls in threads come first, and take turns.
 */
export class ThreadPool<Calls> {
  readonly #open: (ended: Int32Array) => Promise<Thread<Calls>>;
  /** Calls that have a thread, or open one. A thread is idle or not open for each of the others. */
  readonly #running: SharedLimit;
  /** The threads, by the number that ends their call. */
  readonly #threads = new Map<Int32Array, Promise<Thread<Calls>>>();
  readonly #idle: Member<Calls>[] = [];
  /** Functions that let a waiting call run or end, with its tenant. */
  readonly #waiting = new Map<(mayRun: boolean) => void, string>();
  #isClosed = false;

  constructor(open: (ended: Int32Array) => Promise<Thread<Calls>>, max: number) {
    this.#open = open;
    this.#running = new SharedLimit(max);
  }

  /** If the signal aborts, rejects at once if the call waits, or else as soon as the thread is free. */
  async call<Name extends keyof Calls & string>(
    { tenant, signal }: Caller,
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<ResultOf<Calls[Name]>> {
    if (this.#isClosed || signal?.aborted || !(await this.#turn(tenant, signal))) throw new EndedError();
    let member: Member<Calls> | undefined;
    const end = (): void => void (member && Atomics.store(member.ended, 0, 1));
    try {
      // Once the pool is closed, nobody would close another thread.
      if (!this.#isClosed) member = this.#idle.pop() ?? (await this.#opened());
      if (member === undefined || signal?.aborted) throw new EndedError();
      Atomics.store(member.ended, 0, 0);
      signal?.addEventListener('abort', end);
      return await member.thread.call(name, ...args);
    } finally {
      signal?.removeEventListener('abort', end);
      if (member?.thread.hasEnded) this.#threads.delete(member.ended);
      else if (member) this.#idle.push(member);
      this.#running.add(tenant, -1);
      this.#startWaiting();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const settle of this.#waiting.keys()) settle(false);
    const closed = [...this.#threads].map(async ([ended, opening]) => {
      const thread = await opening;
      Atomics.store(ended, 0, 1);
      await thread.close();
    });
    await Promise.allSettled(closed);
  }

  /** Resolves with true when a call may run, which then counts as running, or with false if it ends before. */
  #turn(tenant: string, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (mayRun: boolean): void => {
        this.#waiting.delete(settle);
        signal?.removeEventListener('abort', leave);
        resolve(mayRun);
      };
      const leave = (): void => settle(false);
      this.#waiting.set(settle, tenant);
      signal?.addEventListener('abort', leave);
      this.#startWaiting();
    });
  }

  #startWaiting(): void {
    const usedBy = (tenant: string): number => this.#running.usedBy(tenant);
    for (const [settle, tenant] of [...this.#waiting].sort(([, one], [, other]) => usedBy(one) - usedBy(other))) {
      if (!this.#running.take(tenant, 1)) continue;
      settle(true);
      // The tenant's other calls go behind those of tenants with as many calls in threads.
      for (const own of [...this.#waiting].filter(([, name]) => name === tenant)) {
        this.#waiting.delete(own[0]);
        this.#waiting.set(...own);
      }
    }
  }

  async #opened(): Promise<Member<Calls>> {
    const ended = new Int32Array(new SharedArrayBuffer(4));
    const opening = this.#open(ended);
    this.#threads.set(ended, opening);
    try {
      return { thread: await opening, ended };
    } catch (error) {
      this.#threads.delete(ended);
      throw error;
    }
  }
}
