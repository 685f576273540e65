import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import { HttpError } from '../http-error.ts';
import { Family, type Kin, settle } from './family.ts';
import type { Prices } from './prices.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { idBytes, idText } from './sqlite-id.ts';
import { SqliteRun } from './sqlite-run.ts';
import { SqliteTrace } from './sqlite-trace.ts';
import type { StoreChange } from './store.ts';
import type { ToldRun } from './told-run.ts';

/** Of one run. A request that brings more is refused with 413, at which senders leave attachments out. */
const ATTACHMENTS_MAX = 100;
/** Beyond it the oldest are forgotten. */
const TOKENS_MAX = 10_000;

/** What is written, within a transaction that is the caller's to begin and to end. */
export class SqliteWriter {
  readonly #connection: SqliteConnection;
  readonly #prices: Prices;
  readonly #nowMs: () => number;

  constructor(connection: SqliteConnection, prices: Prices, nowMs: () => number) {
    this.#connection = connection;
    this.#prices = prices;
    this.#nowMs = nowMs;
  }

  /** The change that the operations of a request come to; undefined when there were none. */
  apply(operations: readonly ToldRun[]): StoreChange | undefined {
    if (operations.length === 0) return undefined;
    const family = new CallFamily(this.#connection, this.#prices);
    // Settled when all has been told, so that a parent which moves often in one request moves all below it once.
    const told = new Set(operations.map((operation) => this.#take(family, operation)));
    const changed = new Set(told);
    const leftTraceIds: string[] = [];
    for (const run of told) {
      settle(run, family, (moving, to) => {
        if (moving.place !== undefined) leftTraceIds.push(moving.place.traceId);
        moving.place = to;
        changed.add(moving);
      });
    }
    const traces = new Traces(this.#connection);
    for (const traceId of leftTraceIds) traces.get(traceId);
    for (const run of changed) traces.change(run);
    for (const run of told) this.#connection.run('INSERT OR IGNORE INTO unindexed VALUES (?)', run.n ?? null);
    this.#attach(operations, family);
    return this.#written(traces);
  }

  /** False, and no change, when the run is not known. */
  addFeedback(feedback: Feedback): StoreChange | undefined {
    const run = this.#connection.one<{ n: number; trace_id: Uint8Array }>(
      'SELECT n, trace_id FROM runs WHERE id = ?',
      idBytes(feedback.run_id),
    );
    if (run === undefined) return undefined;
    const earlier = this.#connection.one<{ n: number; created_at: string }>(
      'SELECT n, created_at FROM feedback WHERE run = ? AND id = ?',
      run.n,
      feedback.id,
    );
    const { id, key, score, created_at } = { ...feedback, created_at: earlier?.created_at ?? feedback.created_at };
    this.#connection.run(
      'INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      earlier?.n ?? null,
      id,
      run.n,
      run.trace_id,
      created_at,
      key,
      score === undefined ? null : Number(score),
      JSON.stringify({ ...feedback, created_at }),
    );
    const traces = new Traces(this.#connection);
    traces.get(idText(run.trace_id));
    return this.#written(traces);
  }

  addTokens(tokens: readonly FeedbackToken[]): void {
    for (const token of tokens) {
      const values = [token.id, idBytes(token.run_id), JSON.stringify(token)] as const;
      this.#connection.run('INSERT OR REPLACE INTO tokens (id, run_id, json) VALUES (?, ?, ?)', ...values);
    }
    const isBeyond = 'n <= (SELECT n FROM tokens ORDER BY n DESC LIMIT 1 OFFSET ?)';
    this.#connection.run(`DELETE FROM tokens WHERE ${isBeyond}`, TOKENS_MAX);
  }

  /** The count of the change that is being made. */
  nextSeq(): number {
    this.#connection.run("UPDATE meta SET value = value + 1 WHERE key = 'seq'");
    return this.#connection.number("SELECT value FROM meta WHERE key = 'seq'");
  }

  #take(family: CallFamily, operation: ToldRun): SqliteRun {
    const run = family.findOrMake(operation.id);
    family.leave(run);
    run.take(this.#connection, operation);
    family.enter(run);
    return run;
  }

  #attach(operations: readonly ToldRun[], family: CallFamily): void {
    for (const { id, attachments } of operations) {
      if (attachments.length === 0) continue;
      const n = family.find(id)?.n ?? null;
      for (const { name, mimeType, bytes } of attachments)
        this.#connection.run(ATTACH, n, name, mimeType, bytes.length, bytes);
      if (this.#connection.number('SELECT count(*) FROM attachments WHERE run = ?', n) > ATTACHMENTS_MAX)
        throw new HttpError(413, `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
    }
  }

  #written(traces: Traces): StoreChange {
    const seq = this.nextSeq();
    traces.write(seq, this.#nowMs());
    return { seq, traceIds: traces.ids };
  }
}

/** Node 22 takes bytes of which there are none for NULL. */
const ATTACH = `INSERT INTO attachments (run, name, mime_type, size, bytes) VALUES (?, ?, ?, ?, coalesce(?, x''))
  ON CONFLICT (run, name) DO UPDATE SET mime_type = excluded.mime_type, size = excluded.size, bytes = excluded.bytes`;

/** The runs that one call has to do with, and by the file all others: each is read once. */
class CallFamily implements Kin<SqliteRun> {
  readonly #connection: SqliteConnection;
  readonly #prices: Prices;
  readonly #runs = new Map<string, SqliteRun>();
  /** Of the runs that the call tells of, whose parents the file may not know yet. */
  readonly #told = new Family<SqliteRun>(this.#runs);
  /** Whether any run of the file waits for another; most files have none, and then nobody need look for each run. */
  readonly #hasWaiting: boolean;

  constructor(connection: SqliteConnection, prices: Prices) {
    this.#connection = connection;
    this.#prices = prices;
    this.#hasWaiting = connection.one('SELECT 1 FROM runs WHERE waits_for IS NOT NULL LIMIT 1') !== undefined;
  }

  find(id: string): SqliteRun | undefined {
    const known = this.#runs.get(id) ?? SqliteRun.read(this.#connection, id, this.#prices);
    if (known !== undefined) this.#runs.set(id, known);
    return known;
  }

  findOrMake(id: string): SqliteRun {
    const run = this.find(id) ?? new SqliteRun(id, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  enter(run: SqliteRun): void {
    this.#told.enter(run);
  }

  leave(run: SqliteRun): void {
    this.#told.leave(run);
  }

  children(id: string): Iterable<SqliteRun> {
    if (!this.#hasWaiting) return this.#told.children(id);
    const children = new Set(this.#told.children(id));
    const rows = this.#connection.all<{ id: Uint8Array }>('SELECT id FROM runs WHERE waits_for = ?', idBytes(id));
    for (const row of rows) {
      // It may have left since, within this call: then it stays where it is.
      const child = this.find(idText(row.id));
      if (child !== undefined) children.add(child);
    }
    return children;
  }
}

/** The traces that a call changes. */
class Traces {
  readonly #connection: SqliteConnection;
  readonly #traces = new Map<string, SqliteTrace>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  get ids(): string[] {
    return [...this.#traces.keys()];
  }

  get(id: string): SqliteTrace {
    const trace = this.#traces.get(id) ?? new SqliteTrace(this.#connection, id);
    this.#traces.set(id, trace);
    return trace;
  }

  /** Writes the run, and what it is to its trace now, and to the one that it has left. */
  change(run: SqliteRun): void {
    const before = run.writtenShare;
    const isKnown = run.n !== undefined;
    run.write(this.#connection);
    const after = run.writtenShare;
    const traceId = run.place?.traceId ?? run.id;
    if (before !== undefined && before.traceId !== traceId) {
      this.get(before.traceId).change(this.#connection, run.id, before, undefined);
      this.get(traceId).change(this.#connection, run.id, undefined, after);
    } else {
      this.get(traceId).change(this.#connection, run.id, before, after);
    }
    if (isKnown) this.#connection.run(MOVE_FEEDBACK, idBytes(traceId), run.n ?? null, idBytes(traceId));
  }

  write(seq: number, nowMs: number): void {
    for (const trace of this.#traces.values()) trace.write(this.#connection, seq, nowMs);
  }
}

const MOVE_FEEDBACK = 'UPDATE feedback SET trace_id = ? WHERE run = ? AND trace_id <> ?';
