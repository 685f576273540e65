import { EventEmitter } from 'node:events';
import { type EventPage, LIMITS, type NewEvent, type RunRow, type StartRequest, type StoredEvent } from './schema.ts';
import { placeOf, RunLostError, type ThreadStore } from './store.ts';

type Run = { -readonly [Field in keyof RunRow]: RunRow[Field] };

interface Thread {
  title: string;
  updatedMs: number;
  lastSeq: number;
  droppedThrough: number;
  events: StoredEvent[];
  /** The run in progress, then the others in the order of their turns. */
  runs: Run[];
}

/** Stores threads and runs in memory. No other process sees them, so leases never expire. */
export class MemoryStore implements ThreadStore {
  readonly limits = LIMITS;
  /** The thread that changed last is the last one. */
  readonly #threads = new Map<string, Thread>();
  readonly #wakers = new EventEmitter().setMaxListeners(0);

  watch(kind: 'events' | 'runs', threadId: string, wake: () => void): () => void {
    const name = `${kind}:${threadId}`;
    this.#wakers.on(name, wake);
    return () => void this.#wakers.off(name, wake);
  }

  async threads(limit: number, offset: number) {
    const newest = [...this.#threads].reverse().slice(offset, offset + limit);
    return newest.map(([id, { title, updatedMs }]) => ({ id, title, updatedAt: new Date(updatedMs).toISOString() }));
  }

  async touch(threadId: string): Promise<void> {
    this.#touched(threadId);
  }

  async deleteThread(threadId: string): Promise<void> {
    this.#threads.delete(threadId);
    this.#wakers.emit(`runs:${threadId}`);
  }

  async append(threadId: string, runId: string, events: readonly NewEvent[]): Promise<void> {
    if (this.#run(threadId, runId) === undefined)
      throw new RunLostError(`Run ${runId} of thread ${threadId} is no longer in the store.`);
    this.#add(threadId, events);
  }

  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    const { events = [], droppedThrough = 0 } = this.#threads.get(threadId) ?? {};
    // The numbers of a thread's events are consecutive.
    const start = Math.max(0, after + 1 - (events[0]?.seq ?? 0));
    return { events: events.slice(start, start + limit), droppedThrough };
  }

  async start({ threadId, runId, title, strategy }: StartRequest) {
    const rows = await this.runs(threadId);
    const place = placeOf({ threadId, runId, strategy }, rows);
    const thread = this.#touched(threadId);
    thread.title ||= title;
    const running = rows[0]?.id ?? runId;
    thread.runs.push({ id: runId, state: running === runId ? 'running' : 'waiting', place, isCancelled: false });
    thread.runs.sort((one, other) => one.state.localeCompare(other.state) || one.place - other.place);
    return { afterSeq: thread.lastSeq, running };
  }

  async claim(threadId: string, runId: string): Promise<RunRow | undefined> {
    const [first] = this.#threads.get(threadId)?.runs ?? [];
    if (first?.id === runId) first.state = 'running';
    return this.#run(threadId, runId);
  }

  async runs(threadId: string): Promise<readonly RunRow[]> {
    return [...(this.#threads.get(threadId)?.runs ?? [])];
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    const run = this.#run(threadId, runId);
    if (run === undefined) return false;
    run.isCancelled = true;
    this.#wakers.emit(`runs:${threadId}`);
    return true;
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<void> {
    const thread = this.#threads.get(threadId);
    if (thread === undefined || this.#run(threadId, runId) === undefined) return;
    thread.runs = thread.runs.filter(({ id }) => id !== runId);
    this.#add(threadId, [event]);
    this.#wakers.emit(`runs:${threadId}`);
  }

  async renew(runIds: readonly string[]): Promise<ReadonlyMap<string, RunRow>> {
    const rows = [...this.#threads.values()].flatMap(({ runs }) => runs);
    return new Map(rows.filter(({ id }) => runIds.includes(id)).map((row) => [row.id, row]));
  }

  async endLost(): Promise<void> {}

  async close(): Promise<void> {}

  #run(threadId: string, runId: string): Run | undefined {
    return this.#threads.get(threadId)?.runs.find(({ id }) => id === runId);
  }

  /** Returns a thread as the last one. Numbers of a new thread begin at the current time, as in `Store`. */
  #touched(threadId: string): Thread {
    const now = Date.now();
    const first = { title: '', updatedMs: now, lastSeq: now * 1_000, droppedThrough: 0, events: [], runs: [] };
    const thread: Thread = this.#threads.get(threadId) ?? first;
    thread.updatedMs = now;
    this.#threads.delete(threadId);
    this.#threads.set(threadId, thread);
    return thread;
  }

  #add(threadId: string, events: readonly NewEvent[]): void {
    const thread = this.#touched(threadId);
    for (const event of events) {
      thread.lastSeq += 1;
      thread.events.push({ ...event, seq: thread.lastSeq });
    }
    if (thread.events.length > this.limits.eventsMax) {
      const dropped = thread.events.splice(0, Math.ceil(thread.events.length / 2));
      thread.droppedThrough = dropped.at(-1)?.seq ?? 0;
    }
    this.#wakers.emit(`events:${threadId}`);
  }
}
