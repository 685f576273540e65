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

/** Threads that are started on demand and execute one call at a time. Calls above the maximum number wait. */
export class ThreadPool<Calls> {
  readonly #open: (ended: Int32Array) => Promise<Thread<Calls>>;
  readonly #max: number;
  /** The threads, by the number that ends their call. */
  readonly #threads = new Map<Int32Array, Promise<Thread<Calls>>>();
  readonly #idle: Member<Calls>[] = [];
  /** Functions that let a waiting call continue, in the order of the calls. */
  readonly #waiting = new Set<(member: Member<Calls> | undefined) => void>();
  #isClosed = false;

  constructor(open: (ended: Int32Array) => Promise<Thread<Calls>>, max: number) {
    this.#open = open;
    this.#max = max;
  }

  /** If the signal aborts, rejects at once if the call waits, or else as soon as the thread is free. */
  async call<Name extends keyof Calls & string>(
    signal: AbortSignal | undefined,
    name: Name,
    ...args: ArgumentsOf<Calls[Name]>
  ): Promise<ResultOf<Calls[Name]>> {
    const member = await this.#take(signal);
    const end = (): void => void Atomics.store(member.ended, 0, 1);
    try {
      if (signal?.aborted) throw new EndedError();
      Atomics.store(member.ended, 0, 0);
      signal?.addEventListener('abort', end);
      return await member.thread.call(name, ...args);
    } finally {
      signal?.removeEventListener('abort', end);
      this.#give(member);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const wake of this.#waiting) wake(undefined);
    const closed = [...this.#threads].map(async ([ended, opening]) => {
      const thread = await opening;
      Atomics.store(ended, 0, 1);
      await thread.close();
    });
    await Promise.allSettled(closed);
  }

  /** Waits for a thread. Throws once the pool is closed, because nobody would close another thread. */
  async #take(signal: AbortSignal | undefined): Promise<Member<Calls>> {
    if (this.#isClosed || signal?.aborted) throw new EndedError();
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#threads.size >= this.#max) return (await this.#wait(signal)) ?? this.#take(signal);
    const ended = new Int32Array(new SharedArrayBuffer(4));
    const opening = this.#open(ended);
    this.#threads.set(ended, opening);
    try {
      return { thread: await opening, ended };
    } catch (error) {
      this.#forget(ended);
      throw error;
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<Member<Calls> | undefined> {
    return new Promise((resolve) => {
      const wake = (member: Member<Calls> | undefined): void => {
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', leave);
        resolve(member);
      };
      const leave = (): void => wake(undefined);
      this.#waiting.add(wake);
      signal?.addEventListener('abort', leave);
    });
  }

  #give(member: Member<Calls>): void {
    const [next] = this.#waiting;
    if (member.thread.hasEnded) this.#forget(member.ended);
    else if (next === undefined) this.#idle.push(member);
    else next(member);
  }

  /** Lets a waiting call open a thread in place of one that could not be opened, or that has ended. */
  #forget(ended: Int32Array): void {
    this.#threads.delete(ended);
    const [next] = this.#waiting;
    next?.(undefined);
  }
}
