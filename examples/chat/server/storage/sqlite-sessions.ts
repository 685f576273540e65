import {
  type CutRun,
  type EventPage,
  firstSeq,
  IDLE_CHECK_MS,
  type Lease,
  type NewEvent,
  type Place,
  SESSION_LIMITS,
  type SessionLimits,
  type SessionStore,
  WAITING_MAX,
  type Wake,
} from './session-store.ts';
import type { SqliteDatabase } from './sqlite-database.ts';
import { headOf, storedEvent } from './stored-event.ts';
import { Wakers } from './wakers.ts';

interface SessionRow {
  readonly n: number;
  readonly last_seq: number;
  readonly dropped_through: number;
  readonly bytes: number;
}

/**
 * Sessions of one process that outlast it. No lease runs out while the process lives, and all that are there when the file is opened have:
 * nobody else can hold them.
 */
export class SqliteSessions implements SessionStore {
  readonly #database: SqliteDatabase;
  readonly #limits: SessionLimits;
  readonly #wakers = new Wakers();
  readonly #idleCheck: NodeJS.Timeout;

  constructor(database: SqliteDatabase, limits: Partial<SessionLimits> = {}) {
    this.#database = database;
    this.#limits = { ...SESSION_LIMITS, ...limits };
    this.#database.run('UPDATE sessions SET is_cut = 1, told_until_ms = 0 WHERE run_id IS NOT NULL');
    this.#database.run('UPDATE waiting SET is_cut = 1');
    this.#forgetIdle();
    this.#idleCheck = setInterval(() => this.#tidy(), IDLE_CHECK_MS).unref();
  }

  get renewMs(): number {
    return this.#limits.renewMs;
  }

  async append(threadId: string, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    this.#database.transaction(() => this.#add(threadId, events));
    this.#wakers.wake(threadId, 'events');
  }

  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    const session = this.#find(threadId);
    if (session === undefined) return { events: [], droppedThrough: 0 };
    const rows = this.#database.all<{ seq: number; head: string; body: string }>(
      'SELECT seq, head, body FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?',
      session.n,
      after,
      limit,
    );
    return {
      events: rows.map(({ seq, head, body }) => storedEvent(seq, head, body)),
      droppedThrough: session.dropped_through,
    };
  }

  async lastSeq(threadId: string): Promise<number> {
    return this.#find(threadId)?.last_seq ?? 0;
  }

  watch(threadId: string, wake: Wake): () => void {
    return this.#wakers.add(threadId, wake);
  }

  async claim(threadId: string, runId: string, place?: Place): Promise<string | undefined> {
    return this.#database.transaction(() => {
      const { n } = this.#sessionOf(threadId);
      this.#database.run(
        'UPDATE sessions SET run_id = ?, is_cancelled = 0, is_cut = 0 WHERE n = ? AND run_id IS NULL',
        runId,
        n,
      );
      const holder = this.#database.one<{ run_id: string }>('SELECT run_id FROM sessions WHERE n = ?', n)?.run_id;
      if (holder === runId || place === undefined || this.#wait(n, runId, place)) return holder;
      return undefined;
    });
  }

  async renew(threadId: string, runId: string): Promise<Lease> {
    const row = this.#database.one<{ is_cancelled: number }>(
      'SELECT is_cancelled FROM sessions WHERE thread_id = ? AND run_id = ? AND is_cut = 0',
      threadId,
      runId,
    );
    if (row !== undefined) return row.is_cancelled === 1 ? 'cancelled' : 'held';
    const sql = 'SELECT 1 FROM sessions JOIN waiting ON session = n WHERE thread_id = ? AND waiting.run_id = ?';
    return this.#database.one(sql, threadId, runId) === undefined ? 'lost' : 'waiting';
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<boolean> {
    const isEnded = this.#database.transaction(() => {
      const session = this.#find(threadId);
      if (session === undefined || !(this.#passOn(session.n, runId) || this.#leave(session.n, runId))) return false;
      this.#add(threadId, [event]);
      return true;
    });
    if (isEnded) this.#wakers.wake(threadId, 'run');
    return isEnded;
  }

  async activeRun(threadId: string): Promise<string | undefined> {
    const sql = 'SELECT run_id FROM sessions WHERE thread_id = ?';
    return this.#database.one<{ run_id: string | null }>(sql, threadId)?.run_id ?? undefined;
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    const n = this.#find(threadId)?.n ?? null;
    const isCancelled =
      this.#database.run('UPDATE sessions SET is_cancelled = 1 WHERE n = ? AND run_id = ?', n, runId) > 0 ||
      this.#database.run('UPDATE waiting SET is_cancelled = 1 WHERE session = ? AND run_id = ?', n, runId) > 0;
    if (isCancelled) this.#wakers.wake(threadId, 'run');
    return isCancelled;
  }

  async takeCutRuns(): Promise<readonly CutRun[]> {
    const now = Date.now();
    const rows = this.#database.all<{ thread_id: string; run_id: string }>(
      'UPDATE sessions SET told_until_ms = ? WHERE is_cut = 1 AND told_until_ms <= ? RETURNING thread_id, run_id',
      now + this.#limits.leaseMs,
      now,
    );
    return rows.map(({ thread_id, run_id }) => ({ threadId: thread_id, runId: run_id }));
  }

  async delete(threadId: string): Promise<void> {
    this.#database.transaction(() => {
      const session = this.#find(threadId);
      if (session === undefined) return;
      this.#database.run('DELETE FROM events WHERE session = ?', session.n);
      this.#database.run('DELETE FROM waiting WHERE session = ?', session.n);
      this.#database.run('DELETE FROM sessions WHERE n = ?', session.n);
      // The clock may not have got so far yet.
      this.#database.run('UPDATE numbering SET forgotten_seq = max(forgotten_seq, ?)', session.last_seq);
    });
    this.#wakers.wake(threadId, 'run');
  }

  /** The file is closed by whoever has opened it. */
  async close(): Promise<void> {
    clearInterval(this.#idleCheck);
  }

  #wait(n: number, runId: string, place: Place): boolean {
    const { count, first, last } = this.#database.one<{ count: number; first: number; last: number }>(
      'SELECT count(*) AS count, ifnull(min(place), 0) AS first, ifnull(max(place), 0) AS last FROM waiting WHERE session = ?',
      n,
    ) as { count: number; first: number; last: number };
    if (count >= WAITING_MAX) return false;
    const sql = 'INSERT INTO waiting (session, place, run_id) VALUES (?, ?, ?)';
    this.#database.run(sql, n, place === 'next' ? first - 1 : last + 1, runId);
    return true;
  }

  /** Gives the thread of a run to the first of those that wait; false where the run has it not. */
  #passOn(n: number, runId: string): boolean {
    const next = this.#database.one<{ run_id: string; is_cancelled: number; is_cut: number }>(
      'SELECT run_id, is_cancelled, is_cut FROM waiting WHERE session = ? ORDER BY place LIMIT 1',
      n,
    );
    const given = [next?.run_id ?? null, next?.is_cancelled ?? 0, next?.is_cut ?? 0];
    const sql =
      'UPDATE sessions SET run_id = ?, is_cancelled = ?, is_cut = ?, told_until_ms = 0 WHERE n = ? AND run_id = ?';
    if (this.#database.run(sql, ...given, n, runId) === 0) return false;
    if (next !== undefined) this.#leave(n, next.run_id);
    return true;
  }

  #leave(n: number, runId: string): boolean {
    return this.#database.run('DELETE FROM waiting WHERE session = ? AND run_id = ?', n, runId) > 0;
  }

  #add(threadId: string, events: readonly NewEvent[]): void {
    const { n, last_seq } = this.#sessionOf(threadId);
    let seq = last_seq;
    let bytes = 0;
    for (const event of events) {
      seq += 1;
      bytes += event.body.length;
      const row = [n, seq, headOf(event), event.body, event.body.length];
      this.#database.run('INSERT INTO events VALUES (?, ?, ?, ?, ?)', ...row);
    }
    this.#database.run('UPDATE sessions SET last_seq = ?, bytes = bytes + ? WHERE n = ?', seq, bytes, n);
    this.#trim(this.#sessionOf(threadId));
  }

  #find(threadId: string): SessionRow | undefined {
    const sql = 'SELECT n, last_seq, dropped_through, bytes FROM sessions WHERE thread_id = ?';
    return this.#database.one<SessionRow>(sql, threadId);
  }

  #sessionOf(threadId: string): SessionRow {
    const now = Date.now();
    this.#database.run(
      `INSERT INTO sessions (thread_id, last_seq, used_ms) SELECT ?, max(?, forgotten_seq), ? FROM numbering WHERE true
        ON CONFLICT (thread_id) DO UPDATE SET used_ms = excluded.used_ms`,
      threadId,
      firstSeq(now),
      now,
    );
    return this.#find(threadId) as SessionRow;
  }

  #trim({ n, last_seq, dropped_through, bytes }: SessionRow): void {
    const { eventsMax, bytesMax } = this.#limits;
    const beyondCount = last_seq - eventsMax;
    const cut = bytes > bytesMax ? Math.max(beyondCount, this.#beyondBytes(n, bytes - bytesMax)) : beyondCount;
    if (cut <= dropped_through) return;
    const { gone } = this.#database.one<{ gone: number | null }>(
      'SELECT sum(bytes) AS gone FROM events WHERE session = ? AND seq <= ?',
      n,
      cut,
    ) as { gone: number | null };
    if (this.#database.run('DELETE FROM events WHERE session = ? AND seq <= ?', n, cut) === 0) return;
    this.#database.run('UPDATE sessions SET dropped_through = ?, bytes = bytes - ? WHERE n = ?', cut, gone ?? 0, n);
  }

  /** The number up to which events have to go for so many bytes. Only those are looked at: each lies behind a body that has to be passed over. */
  #beyondBytes(n: number, bytes: number): number {
    let [seq, left] = [0, bytes];
    while (left > 0) {
      const oldest = this.#database.one<{ seq: number; bytes: number }>(
        'SELECT seq, bytes FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT 1',
        n,
        seq,
      );
      if (oldest === undefined) break;
      seq = oldest.seq;
      left -= oldest.bytes;
    }
    return seq;
  }

  #tidy(): void {
    try {
      this.#forgetIdle();
    } catch {
      // Of a disk that is full, runs tell that cannot go on.
    }
  }

  #forgetIdle(): void {
    const before = Date.now() - this.#limits.idleMs;
    this.#database.transaction(() => {
      const isIdle = 'used_ms < ? AND run_id IS NULL AND last_seq > dropped_through';
      this.#database.run(`DELETE FROM events WHERE session IN (SELECT n FROM sessions WHERE ${isIdle})`, before);
      this.#database.run(`UPDATE sessions SET dropped_through = last_seq, bytes = 0 WHERE ${isIdle}`, before);
    });
  }
}
