import { createHash } from 'node:crypto';
import type { ClientConfig, Pool, QueryResultRow } from 'pg';
import { PostgresListener } from './postgres-listener.ts';
import {
  type CutRun,
  type EventPage,
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
import { headOf, storedEvent } from './stored-event.ts';
import { Wakers } from './wakers.ts';

const CHANNEL = 'chat_wake';
/** The part of its bound by which a thread may have too many events for a while: they are not counted at each append. */
const TRIM_SHARE = 1 / 40;

/** Sessions that instances share through PostgreSQL, whose clock is the one for leases and for the first numbers. */
export class PostgresSessions implements SessionStore {
  readonly #pool: Pool;
  readonly #limits: SessionLimits;
  /** By the name that a thread has in notices. */
  readonly #wakers: Wakers;
  readonly #listener: PostgresListener;
  readonly #idleCheck: NodeJS.Timeout;

  /** The pool stays the caller's; `config` is for the connection on which notices are heard. */
  static async open(pool: Pool, config: ClientConfig, limits: Partial<SessionLimits> = {}): Promise<PostgresSessions> {
    const wakers = new Wakers();
    const listener = await PostgresListener.open({
      config,
      channel: CHANNEL,
      onNotice: (notice) => wakers.wake(notice.slice(1), notice.startsWith('e') ? 'events' : 'run'),
      onGap: () => wakers.wakeAll(),
    });
    return new PostgresSessions(pool, { ...SESSION_LIMITS, ...limits }, wakers, listener);
  }

  private constructor(pool: Pool, limits: SessionLimits, wakers: Wakers, listener: PostgresListener) {
    this.#pool = pool;
    this.#limits = limits;
    this.#wakers = wakers;
    this.#listener = listener;
    this.#idleCheck = setInterval(() => void this.#forgetIdle().catch(() => {}), IDLE_CHECK_MS).unref();
  }

  get renewMs(): number {
    return this.#limits.renewMs;
  }

  async append(threadId: string, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    const [row] = await this.#rows<{ last_seq: string; dropped_through: string; bytes: string }>(
      APPEND,
      threadId,
      events.map(headOf),
      events.map(({ body }) => body),
      events.map(({ body }) => body.length),
      notice('e', threadId),
    );
    const [lastSeq, dropped, bytes] = [Number(row?.last_seq), Number(row?.dropped_through), Number(row?.bytes)];
    const { eventsMax, bytesMax } = this.#limits;
    const step = Math.ceil(eventsMax * TRIM_SHARE);
    const isRound = Math.floor(lastSeq / step) > Math.floor((lastSeq - events.length) / step);
    // The events are there, whatever comes of it; a later append trims again.
    if (bytes > bytesMax || (isRound && lastSeq - dropped > eventsMax)) await this.#trim(threadId).catch(() => {});
  }

  async read(threadId: string, after: number, limit: number): Promise<EventPage> {
    const rows = await this.#rows<{ dropped_through: string; seq: string | null; head: string; body: string }>(
      READ,
      threadId,
      after,
      limit,
    );
    const events = rows.flatMap(({ seq, head, body }) => (seq === null ? [] : [storedEvent(Number(seq), head, body)]));
    return { events, droppedThrough: Number(rows[0]?.dropped_through ?? 0) };
  }

  async lastSeq(threadId: string): Promise<number> {
    const sql = 'SELECT last_seq FROM chat.sessions WHERE thread_id = $1';
    return Number((await this.#rows<{ last_seq: string }>(sql, threadId))[0]?.last_seq ?? 0);
  }

  watch(threadId: string, wake: Wake): () => void {
    return this.#wakers.add(nameOf(threadId), wake);
  }

  async claim(threadId: string, runId: string, place?: Place): Promise<string | undefined> {
    const { leaseMs } = this.#limits;
    const [row] = await this.#rows<{ run_id: string }>(CLAIM, threadId, runId, leaseMs, place, WAITING_MAX);
    return row?.run_id;
  }

  async renew(threadId: string, runId: string): Promise<Lease> {
    const [row] = await this.#rows<{ has_thread: boolean; is_cancelled: boolean }>(
      RENEW,
      threadId,
      runId,
      this.#limits.leaseMs,
    );
    if (row === undefined) return 'lost';
    if (!row.has_thread) return 'waiting';
    return row.is_cancelled ? 'cancelled' : 'held';
  }

  async end(threadId: string, runId: string, event: NewEvent): Promise<boolean> {
    const { body } = event;
    return (await this.#rows(END, threadId, runId, headOf(event), body, body.length, notice('r', threadId))).length > 0;
  }

  async activeRun(threadId: string): Promise<string | undefined> {
    const sql = 'SELECT run_id FROM chat.sessions WHERE thread_id = $1';
    return (await this.#rows<{ run_id: string | null }>(sql, threadId))[0]?.run_id ?? undefined;
  }

  async cancel(threadId: string, runId: string): Promise<boolean> {
    return (await this.#rows(CANCEL, threadId, runId, notice('r', threadId))).length > 0;
  }

  async takeCutRuns(): Promise<readonly CutRun[]> {
    const { leaseMs, renewMs } = this.#limits;
    const rows = await this.#rows<{ thread_id: string; run_id: string }>(TAKE_CUT, leaseMs, renewMs);
    return rows.map(({ thread_id, run_id }) => ({ threadId: thread_id, runId: run_id }));
  }

  async delete(threadId: string): Promise<void> {
    await this.#rows(DELETE, threadId, notice('r', threadId));
  }

  async close(): Promise<void> {
    clearInterval(this.#idleCheck);
    await this.#listener.close();
  }

  async #trim(threadId: string): Promise<void> {
    await this.#rows(TRIM, threadId, this.#limits.eventsMax, this.#limits.bytesMax);
  }

  async #forgetIdle(): Promise<void> {
    await this.#rows(FORGET_IDLE, this.#limits.idleMs);
  }

  async #rows<Row extends QueryResultRow>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return (await this.#pool.query<Row>(sql, values)).rows;
  }
}

/** What follows is heard on one channel, whose notices are short; the id of a thread may not be. */
function notice(what: 'e' | 'r', threadId: string): string {
  return `${what}${nameOf(threadId)}`;
}

function nameOf(threadId: string): string {
  return createHash('sha256').update(threadId).digest('base64url');
}

/** As `firstSeq` has it. */
const FIRST_SEQ = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
const LEASE_UNTIL = (ms: string): string => `clock_timestamp() + ${ms} * interval '1 millisecond'`;

/**
 * The row of the thread is locked until all of it can be seen, so that nobody gets the next numbers before: a reader that has seen a number has
 * seen all before it.
 */
const APPEND = `
  WITH session AS (
    INSERT INTO chat.sessions AS s (thread_id, last_seq, bytes)
    SELECT $1, ${FIRST_SEQ} + cardinality($3::text[]), (SELECT sum(b) FROM unnest($4::int[]) AS b)
    ON CONFLICT (thread_id) DO UPDATE
      SET last_seq = s.last_seq + cardinality($3::text[]), bytes = s.bytes + excluded.bytes, used_at = clock_timestamp()
    RETURNING last_seq, dropped_through, bytes
  ), added AS (
    INSERT INTO chat.events (thread_id, seq, head, body, bytes)
    SELECT $1, session.last_seq - cardinality($3::text[]) + event.place, event.head, event.body, event.bytes
    FROM session, unnest($2::text[], $3::text[], $4::int[]) WITH ORDINALITY AS event (head, body, bytes, place)
  )
  SELECT last_seq, dropped_through, bytes, pg_notify('${CHANNEL}', $5) FROM session`;

const READ = `
  SELECT s.dropped_through, e.seq, e.head, e.body FROM chat.sessions s
  LEFT JOIN LATERAL (
    SELECT seq, head, body FROM chat.events WHERE thread_id = s.thread_id AND seq > $2 ORDER BY seq LIMIT $3
  ) e ON true
  WHERE s.thread_id = $1 ORDER BY e.seq`;

const CLAIM = `
  INSERT INTO chat.sessions AS s (thread_id, last_seq, run_id, lease_until)
  VALUES ($1, ${FIRST_SEQ}, $2, ${LEASE_UNTIL('$3')})
  ON CONFLICT (thread_id) DO UPDATE SET
    run_id = coalesce(s.run_id, excluded.run_id),
    lease_until = CASE WHEN s.run_id IS NULL THEN excluded.lease_until ELSE s.lease_until END,
    waiting = CASE
      WHEN s.run_id IS NULL OR $4::text IS NULL THEN s.waiting
      WHEN $4 = 'next' THEN excluded.run_id || s.waiting
      ELSE s.waiting || excluded.run_id
    END,
    waits = CASE
      WHEN s.run_id IS NULL OR $4 IS NULL THEN s.waits
      ELSE s.waits || jsonb_build_object(excluded.run_id, jsonb_build_object('until', excluded.lease_until))
    END,
    used_at = clock_timestamp()
  WHERE s.run_id IS NULL OR $4 IS NULL OR cardinality(s.waiting) < $5
  RETURNING run_id`;

const RENEW = `
  UPDATE chat.sessions SET
    lease_until = CASE WHEN run_id = $2 THEN ${LEASE_UNTIL('$3')} ELSE lease_until END,
    waits = jsonb_set(waits, ARRAY[$2, 'until'], to_jsonb(${LEASE_UNTIL('$3')})),
    used_at = clock_timestamp()
  WHERE thread_id = $1 AND (run_id = $2 AND NOT is_cut OR waits ? $2)
  RETURNING run_id = $2 AS has_thread, is_cancelled`;

/** The thread goes to the first that waits, with the lease that it has had. What is of none of those stays as it was. */
const END = `
  WITH session AS (
    UPDATE chat.sessions SET
      run_id = CASE WHEN run_id = $2 THEN waiting[1] ELSE run_id END,
      lease_until = CASE WHEN run_id = $2 THEN (waits -> waiting[1] ->> 'until')::timestamptz ELSE lease_until END,
      is_cancelled = CASE WHEN run_id = $2 THEN coalesce(waits -> waiting[1] ? 'cancelled', false) ELSE is_cancelled END,
      is_cut = is_cut AND run_id <> $2,
      waiting = CASE WHEN run_id = $2 THEN waiting[2:] ELSE array_remove(waiting, $2) END,
      waits = waits - CASE WHEN run_id = $2 THEN coalesce(waiting[1], '') ELSE $2 END,
      last_seq = last_seq + 1, bytes = bytes + $5::int, used_at = clock_timestamp()
    WHERE thread_id = $1 AND (run_id = $2 OR waits ? $2) RETURNING last_seq
  ), added AS (
    INSERT INTO chat.events (thread_id, seq, head, body, bytes) SELECT $1, last_seq, $3, $4, $5::int FROM session
  )
  SELECT pg_notify('${CHANNEL}', $6) FROM session`;

const CANCEL = `
  WITH cancelled AS (
    UPDATE chat.sessions SET
      is_cancelled = is_cancelled OR run_id = $2,
      waits = jsonb_set(waits, ARRAY[$2, 'cancelled'], 'true')
    WHERE thread_id = $1 AND (run_id = $2 OR waits ? $2) RETURNING 1
  )
  SELECT pg_notify('${CHANNEL}', $3) FROM cancelled`;

const TAKE_CUT = `
  WITH cut AS (
    UPDATE chat.sessions SET is_cut = true, lease_until = ${LEASE_UNTIL('$1')}
    WHERE thread_id IN (
      SELECT thread_id FROM chat.sessions WHERE run_id IS NOT NULL AND lease_until < clock_timestamp()
      FOR UPDATE SKIP LOCKED
    )
    RETURNING thread_id, run_id, 0 AS place
  ), left_waiting AS (
    SELECT thread_id, w.run_id, place FROM chat.sessions s, unnest(waiting) WITH ORDINALITY AS w (run_id, place)
    WHERE waits <> '{}' AND NOT is_cut AND lease_until >= clock_timestamp()
      AND (waits -> w.run_id ->> 'until')::timestamptz < clock_timestamp() - $2 * interval '1 millisecond'
  )
  SELECT * FROM cut UNION ALL SELECT * FROM left_waiting ORDER BY place`;

const DELETE = `
  WITH gone AS (DELETE FROM chat.sessions WHERE thread_id = $1 RETURNING thread_id),
    events AS (DELETE FROM chat.events WHERE thread_id IN (SELECT thread_id FROM gone))
  SELECT pg_notify('${CHANNEL}', $2)`;

/** Up to where events have to go is found from the oldest on, without a look at those that stay: numbers have no gaps. */
const TRIM = `
  WITH session AS (
    SELECT thread_id, last_seq, bytes FROM chat.sessions WHERE thread_id = $1 FOR UPDATE
  ), cut AS (
    SELECT greatest(session.last_seq - $2, coalesce((
      SELECT seq FROM (
        SELECT seq, sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS through
        FROM chat.events WHERE thread_id = session.thread_id
      ) AS counted WHERE session.bytes > $3 AND through >= session.bytes - $3 ORDER BY seq LIMIT 1
    ), 0)) AS seq FROM session
  ), gone AS (
    DELETE FROM chat.events USING cut WHERE thread_id = $1 AND events.seq <= cut.seq RETURNING bytes
  )
  UPDATE chat.sessions SET
    dropped_through = greatest(dropped_through, cut.seq),
    bytes = bytes - (SELECT coalesce(sum(bytes), 0) FROM gone)
  FROM cut WHERE thread_id = $1 AND EXISTS (SELECT 1 FROM gone)`;

const FORGET_IDLE = `
  WITH idle AS (
    UPDATE chat.sessions SET dropped_through = last_seq, bytes = 0
    WHERE used_at < clock_timestamp() - $1 * interval '1 millisecond' AND run_id IS NULL AND dropped_through < last_seq
    RETURNING thread_id
  )
  DELETE FROM chat.events WHERE thread_id IN (SELECT thread_id FROM idle)`;
