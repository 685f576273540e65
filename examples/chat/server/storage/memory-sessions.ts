import { EventLog } from './event-log.ts';
import {
  type CutRun,
  type EventPage,
  firstSeq,
  type NewEvent,
  SESSION_LIMITS,
  type SessionLimits,
  type SessionStore,
  type Wake,
} from './session-store.ts';
import { Wakers } from './wakers.ts';

/** Of threads that nobody works on or reads: those unused for longest are forgotten. */
const IDLE_THREADS_MAX = 1_000;

interface Session {
  readonly log: EventLog;
  run?: { readonly id: string; isCancelled: boolean };
}

/** Sessions of one process, gone with it. */
export class MemorySessions implements SessionStore {
  /** By thread, the last used at the end. */
  readonly #sessions = new Map<string, Session>();
  readonly #wakers = new Wakers();
  readonly #limits: SessionLimits;
  /** The highest number of threads that are forgotten: the clock may not have got so far yet. */
  #forgottenSeq = 0;

  constructor(limits: Partial<SessionLimits> = {}) {
    this.#limits = { ...SESSION_LIMITS, ...limits };
  }

  get renewMs(): number {
    return this.#limits.renewMs;
  }

  async append(threadId: string, events: readonly NewEvent[]): Promise<void> {
    this.#sessionOf(threadId).log.append(events);
    this.#wakers.wake(threadId, 'events');
  }

  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    return this.#sessions.get(threadId)?.log.read(after, limit) ?? { events: [], droppedThrough: 0 };
  }

  async lastSeq(threadId: string): Promise<number> {
    return this.#sessions.get(threadId)?.log.lastSeq ?? 0;
  }

  watch(threadId: string, wake: Wake): () => void {
    return this.#wakers.add(threadId, wake);
  }

  async claim(threadId: string, runId: string): Promise<string> {
    const session = this.#sessionOf(threadId);
    session.run ??= { id: runId, isCancelled: false };
    return session.run.id;
  }

  async renew(threadId: string, runId: string): Promise<'held' | 'cancelled' | 'lost'> {
    const run = this.#sessions.get(threadId)?.run;
    if (run?.id !== runId) return 'lost';
    return run.isCancelled ? 'cancelled' : 'held';
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<boolean> {
    const session = this.#sessions.get(threadId);
    if (session?.run?.id !== runId) return false;
    session.log.append([event]);
    delete session.run;
    this.#wakers.wake(threadId, 'run');
    return true;
  }

  async activeRun(threadId: string): Promise<string | undefined> {
    return this.#sessions.get(threadId)?.run?.id;
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    const run = this.#sessions.get(threadId)?.run;
    if (run?.id !== runId) return false;
    run.isCancelled = true;
    this.#wakers.wake(threadId, 'run');
    return true;
  }

  /** A run of this process ends by itself. */
  async takeCutRuns(): Promise<readonly CutRun[]> {
    return [];
  }

  async delete(threadId: string): Promise<void> {
    this.#forget(threadId);
    this.#wakers.wake(threadId, 'run');
  }

  async close(): Promise<void> {
    this.#sessions.clear();
  }

  #sessionOf(threadId: string): Session {
    const session = this.#sessions.get(threadId) ?? { log: this.#newLog() };
    this.#sessions.delete(threadId);
    this.#sessions.set(threadId, session);
    if (this.#sessions.size > IDLE_THREADS_MAX) this.#forgetIdle();
    return session;
  }

  #newLog(): EventLog {
    return new EventLog(this.#limits, Math.max(firstSeq(Date.now()), this.#forgottenSeq));
  }

  #forget(threadId: string): void {
    this.#forgottenSeq = Math.max(this.#forgottenSeq, this.#sessions.get(threadId)?.log.lastSeq ?? 0);
    this.#sessions.delete(threadId);
  }

  #forgetIdle(): void {
    for (const [threadId, { run }] of this.#sessions) {
      if (this.#sessions.size <= IDLE_THREADS_MAX) return;
      if (run === undefined && !this.#wakers.has(threadId)) this.#forget(threadId);
    }
  }
}
