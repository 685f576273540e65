import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { RequestError } from '../errors.ts';
import type { Database, Query, SqlValue } from './database.ts';
import {
  type EventPage,
  LIMITS,
  type NewEvent,
  type RunRow,
  type StartRequest,
  type StoreLimits,
  type ThreadSummary,
} from './schema.ts';

const WAITING_MAX = 10;
const IDLE_CHECK_MS = 3_600_000;

/**
 * The run is no longer in the store, because its lease expired and another process ended it, or because its thread was
 * deleted.
 */
export class RunLostError extends Error {
  override readonly name: string = 'RunLostError';
}

/**
 * Stores threads, their event logs, and the runs in progress. Instances that share a database see the same threads and
 * runs. Each instance renews the leases of its own runs. If a run's lease expires, any instance may end the run.
 */
export class Store {
  readonly limits: StoreLimits;
  readonly #database: Database;
  readonly #instance = randomUUID();
  readonly #wakers = new EventEmitter().setMaxListeners(0);
  readonly #idleCheck: NodeJS.Timeout;

  constructor(database: Database, limits: Partial<StoreLimits> = {}) {
    this.#database = database;
    this.limits = { ...LIMITS, ...limits };
    database.listen((message) => {
      if (message !== undefined) this.#wakers.emit(message);
      else for (const name of this.#wakers.eventNames()) this.#wakers.emit(name);
    });
    this.#idleCheck = setInterval(() => void this.deleteIdleEvents().catch(() => {}), IDLE_CHECK_MS).unref();
  }

  /**
   * Calls `wake` after events were added to the thread (`events`), or after runs were cancelled or ended (`runs`).
   * Returns a function that stops the calls.
   */
  watch(kind: 'events' | 'runs', threadId: string, wake: () => void): () => void {
    const name = `${kind}:${threadId}`;
    this.#wakers.on(name, wake);
    return () => void this.#wakers.off(name, wake);
  }

  async threads(limit: number, offset: number): Promise<ThreadSummary[]> {
    const rows = await this.#database.query<{ id: string; title: string; updated_ms: number }>(
      'SELECT id, title, updated_ms FROM threads ORDER BY updated_ms DESC, id DESC LIMIT $1 OFFSET $2',
      limit,
      offset,
    );
    return rows.map(({ id, title, updated_ms }) => ({ id, title, updatedAt: new Date(updated_ms).toISOString() }));
  }

  /** Adds a thread to the list, or moves it to the top. */
  async touch(threadId: string): Promise<void> {
    await this.#touch(this.#database.query, threadId, '');
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#database.transaction(async (query) => {
      await query('DELETE FROM runs WHERE thread_id = $1', threadId);
      await query('DELETE FROM events WHERE thread_id = $1', threadId);
      await query('DELETE FROM threads WHERE id = $1', threadId);
      await this.#database.notify(`runs:${threadId}`, query);
    });
  }

  /**
   * Adds all of the events in this order, or none of them. Rejects with a RunLostError if the run is no longer in the
   * store.
   */
  async append(threadId: string, runId: string, events: readonly NewEvent[]): Promise<void> {
    await this.#database.transaction(async (query) => {
      await this.#add(query, threadId, events, runId);
      await this.#database.notify(`events:${threadId}`, query);
    });
  }

  /** Returns at most `limit` events that follow the event with the number `after`, oldest first. */
  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    const rows = await this.#database.query<{
      dropped_seq: number;
      seq: number | null;
      channel: string;
      namespace: string;
      body: string;
    }>(
      `SELECT t.dropped_seq, e.seq, e.channel, e.namespace, e.body FROM threads t
        LEFT JOIN events e ON e.thread_id = t.id AND e.seq > $2 WHERE t.id = $1 ORDER BY e.seq LIMIT $3`,
      threadId,
      after,
      limit,
    );
    const events = rows.flatMap(({ seq, channel, namespace, body }) => {
      return seq === null ? [] : [{ seq, channel, namespace: JSON.parse(namespace), body }];
    });
    return { events, droppedThrough: rows[0]?.dropped_seq ?? 0 };
  }

  /**
   * Adds a run to a thread. If another run of the thread is in progress, the new run waits. Returns the number of the
   * last event before the run, and the id of the run that is in progress. Rejects with a RequestError if the run cannot
   * be added.
   */
  async start(request: StartRequest): Promise<{ readonly afterSeq: number; readonly running: string }> {
    const { threadId, runId, title } = request;
    return this.#database.transaction(async (query) => {
      // This statement locks the thread's row until the transaction ends.
      const afterSeq = await this.#touch(query, threadId, title);
      const rows = await this.#runs(query, threadId);
      const running = rows[0]?.id ?? runId;
      const place = placeOf(request, rows);
      await query(
        `INSERT INTO runs (id, thread_id, state, place, instance, lease_ms)
          VALUES ($1, $2, $3, $4, $5, ${this.#leaseEnd})`,
        runId,
        threadId,
        running === runId ? 'running' : 'waiting',
        place,
        this.#instance,
      );
      return { afterSeq, running };
    });
  }

  /**
   * Marks a waiting run as in progress if it is its turn. Returns the run, or undefined if the run is no longer in the
   * store.
   */
  async claim(threadId: string, runId: string): Promise<RunRow | undefined> {
    await this.#database.query(
      `UPDATE runs SET state = 'running' WHERE id = $2 AND id =
        (SELECT id FROM runs WHERE thread_id = $1 ORDER BY state, place LIMIT 1)`,
      threadId,
      runId,
    );
    return (await this.runs(threadId)).find(({ id }) => id === runId);
  }

  /** Returns the runs of a thread: first the run in progress, then the waiting runs in order. */
  runs(threadId: string): Promise<readonly RunRow[]> {
    return this.#runs(this.#database.query, threadId);
  }

  /** Marks a run as cancelled, and the run's instance then ends it. Returns false if the thread has no such run. */
  async cancel(threadId: string, runId: string): Promise<boolean> {
    const sql = 'UPDATE runs SET is_cancelled = 1 WHERE id = $1 AND thread_id = $2 RETURNING id';
    const rows = await this.#database.query(sql, runId, threadId);
    if (rows.length > 0) await this.#database.notify(`runs:${threadId}`);
    return rows.length > 0;
  }

  /** Adds the last event of a run and removes the run. Does nothing if the run is no longer in the store. */
  async end(threadId: string, runId: string, event: NewEvent): Promise<void> {
    await this.#end(threadId, runId, event, '');
  }

  /** Renews the leases of these runs. Returns the runs that are still in the store. */
  async renew(runIds: readonly string[]): Promise<ReadonlyMap<string, RunRow>> {
    if (runIds.length === 0) return new Map();
    const rows = await this.#database.query<DatabaseRun>(
      `UPDATE runs SET lease_ms = ${this.#leaseEnd} WHERE id IN (${runIds.map((_, index) => `$${index + 1}`)})
        RETURNING id, state, place, is_cancelled`,
      ...runIds,
    );
    return new Map(rows.map((row) => [row.id, runOf(row)]));
  }

  /**
   * Ends the runs whose leases have expired, in order. A run that waits for a run with a valid lease is not ended yet.
   */
  async endLost(lastEvent: (runId: string) => NewEvent): Promise<void> {
    const expired = `lease_ms < ${this.#database.nowMs}`;
    const lost = await this.#database.query<{ id: string; thread_id: string }>(
      `SELECT id, thread_id FROM runs r WHERE ${expired} AND NOT EXISTS (SELECT 1 FROM runs o
        WHERE o.thread_id = r.thread_id AND o.state = 'running' AND NOT o.${expired}) ORDER BY state, place`,
    );
    for (const { id, thread_id } of lost) await this.#end(thread_id, id, lastEvent(id), `AND ${expired}`);
  }

  /** Makes the leases of all runs expire. Call this only if no other process uses the database. */
  async expireAll(): Promise<void> {
    await this.#database.query('UPDATE runs SET lease_ms = 0');
  }

  async deleteIdleEvents(): Promise<void> {
    const idle = `updated_ms < ${this.#database.nowMs} - $1 AND dropped_seq < last_seq`;
    await this.#database.transaction(async (query) => {
      await query(`DELETE FROM events WHERE thread_id IN (SELECT id FROM threads WHERE ${idle})`, this.limits.idleMs);
      await query(`UPDATE threads SET dropped_seq = last_seq, kept = 0, chars = 0 WHERE ${idle}`, this.limits.idleMs);
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#idleCheck);
    await this.#database.close();
  }

  get #leaseEnd(): string {
    return `${this.#database.nowMs} + ${this.limits.leaseMs}`;
  }

  /**
   * Adds or updates a thread. Returns the number of the thread's last event. Numbers start at the current time in
   * microseconds, so that a new thread with the id of a deleted one does not reuse its numbers.
   */
  async #touch(query: Query, threadId: string, title: string): Promise<number> {
    const now = this.#database.nowMs;
    const [row] = await query<{ last_seq: number }>(
      `INSERT INTO threads (id, title, updated_ms, last_seq) VALUES ($1, $2, ${now}, ${now} * 1000)
        ON CONFLICT (id) DO UPDATE SET updated_ms = excluded.updated_ms,
          title = CASE WHEN threads.title = '' THEN excluded.title ELSE threads.title END
        RETURNING last_seq`,
      threadId,
      title,
    );
    return row?.last_seq ?? 0;
  }

  async #runs(query: Query, threadId: string): Promise<readonly RunRow[]> {
    const rows = await query<DatabaseRun>(
      'SELECT id, state, place, is_cancelled FROM runs WHERE thread_id = $1 ORDER BY state, place',
      threadId,
    );
    return rows.map(runOf);
  }

  async #end(threadId: string, runId: string, event: NewEvent, condition: string): Promise<void> {
    await this.#database.transaction(async (query) => {
      const rows = await query(`DELETE FROM runs WHERE id = $1 ${condition} RETURNING id`, runId);
      if (rows.length === 0) return;
      await this.#add(query, threadId, [event]);
      await this.#database.notify(`runs:${threadId}`, query);
      await this.#database.notify(`events:${threadId}`, query);
    });
  }

  /**
   * Adds events. The update locks the thread's row, so a reader that sees an event also sees all events with lower
   * numbers.
   */
  async #add(query: Query, threadId: string, events: readonly NewEvent[], runId?: string): Promise<void> {
    const chars = events.reduce((sum, { body }) => sum + body.length, 0);
    const [thread] = await query<{ last_seq: number; kept: number; chars: number }>(
      `UPDATE threads SET last_seq = last_seq + $2, kept = kept + $2, chars = chars + $3, updated_ms = ${this.#database.nowMs}
        WHERE id = $1 ${runId === undefined ? '' : 'AND EXISTS (SELECT 1 FROM runs WHERE id = $4)'}
        RETURNING last_seq, kept, chars`,
      threadId,
      events.length,
      chars,
      ...(runId === undefined ? [] : [runId]),
    );
    if (thread === undefined) throw new RunLostError(`Run ${runId} of thread ${threadId} is no longer in the store.`);
    const values: SqlValue[] = [];
    const rows = events.map(({ channel, namespace, body }, index) => {
      const seq = thread.last_seq - events.length + index + 1;
      const row = [threadId, seq, channel, JSON.stringify(namespace), body, body.length];
      values.push(...row);
      return `(${row.map((_, column) => `$${values.length - row.length + column + 1}`)})`;
    });
    await query(`INSERT INTO events VALUES ${rows}`, ...values);
    const { eventsMax, charsMax } = this.limits;
    if (thread.kept > eventsMax || thread.chars > charsMax)
      await this.#dropThrough(query, threadId, thread.last_seq - Math.floor(thread.kept / 2));
  }

  async #dropThrough(query: Query, threadId: string, seq: number): Promise<void> {
    await query('DELETE FROM events WHERE thread_id = $1 AND seq <= $2', threadId, seq);
    await query(
      `UPDATE threads SET dropped_seq = $2, (kept, chars) =
        (SELECT count(*), coalesce(sum(chars), 0) FROM events WHERE thread_id = $1) WHERE id = $1`,
      threadId,
      seq,
    );
  }
}

/** The part of a store that a chat needs. */
export type ThreadStore = Omit<Store, 'deleteIdleEvents' | 'expireAll'>;

/** Returns the place of a new run after or before these runs. Throws a RequestError if it cannot be added. */
export function placeOf(
  { threadId, runId, strategy }: Omit<StartRequest, 'title'>,
  rows: readonly Pick<RunRow, 'id' | 'place'>[],
): number {
  const running = rows[0]?.id ?? runId;
  if (running !== runId && strategy === 'reject')
    throw new RequestError(
      'busy',
      `Run ${running} of thread ${threadId} is in progress. Wait for its end, or cancel it.`,
    );
  if (rows.length > WAITING_MAX)
    throw new RequestError('busy', `${WAITING_MAX} runs already wait in thread ${threadId}. Try again later.`);
  const places = rows.map(({ place }) => place);
  return strategy === 'interrupt' ? Math.min(0, ...places) - 1 : Math.max(0, ...places) + 1;
}

type DatabaseRun = Omit<RunRow, 'isCancelled'> & { readonly is_cancelled: number };

function runOf({ is_cancelled, ...row }: DatabaseRun): RunRow {
  return { ...row, isCancelled: is_cancelled === 1 };
}
