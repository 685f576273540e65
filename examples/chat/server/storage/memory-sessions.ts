import { EventLog } from './event-log.ts';
import {
  type CutRun,
  type EventPage,
  firstSeq,
  type Lease,
  type NewEvent,
  type Place,
  SESSION_LIMITS,
  type SessionLimits,
  type SessionStore,
  WAITING_MAX,
  type Wake,
} from './session-store.ts';
import { Wakers } from './wakers.ts';

/** Of threads that nobody works on or reads: those unused for longest are forgotten. */
const IDLE_THREADS_MAX = 1_000;

interface Session {
  readonly log: EventLog;
  /** The first has the thread, the others wait. */
  readonly runs: { readonly id: string; isCancelled: boolean }[];
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

  async claim(threadId: string, runId: string, place?: Place): Promise<string | undefined> {
    const { runs } = this.#sessionOf(threadId);
    if (runs.length === 0 || place !== undefined) {
      if (runs.length > WAITING_MAX) return undefined;
      runs.splice(place === 'next' ? 1 : runs.length, 0, { id: runId, isCancelled: false });
    }
    return runs[0]?.id;
  }

  async renew(threadId: string, runId: string): Promise<Lease> {
    const runs = this.#sessions.get(threadId)?.runs ?? [];
    const at = runs.findIndex(({ id }) => id === runId);
    if (at > 0) return 'waiting';
    if (at < 0) return 'lost';
    return runs[at]?.isCancelled ? 'cancelled' : 'held';
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<boolean> {
    const session = this.#sessions.get(threadId);
    const at = session?.runs.findIndex(({ id }) => id === runId) ?? -1;
    if (session === undefined || at < 0) return false;
    session.log.append([event]);
    session.runs.splice(at, 1);
    this.#wakers.wake(threadId, 'run');
    return true;
  }

  async activeRun(threadId: string): Promise<string | undefined> {
    return this.#sessions.get(threadId)?.runs[0]?.id;
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    const run = this.#sessions.get(threadId)?.runs.find(({ id }) => id === runId);
    if (run === undefined) return false;
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
    const session = this.#sessions.get(threadId) ?? { log: this.#newLog(), runs: [] };
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
    for (const [threadId, { runs }] of this.#sessions) {
      if (this.#sessions.size <= IDLE_THREADS_MAX) return;
      if (runs.length === 0 && !this.#wakers.has(threadId)) this.#forget(threadId);
    }
  }
}
