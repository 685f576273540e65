import { exactJson, parseExact } from '../../../payload/fields.ts';
import type { PriceList } from '../../domain/cost/prices.ts';
import type { Feedback } from '../../domain/feedback.ts';
import { identitiesIn } from '../../domain/identity.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import type { Deletion } from '../../domain/retention/deletion.ts';
import { ATTACHMENTS_MAX, StoreError, type TokenSecret } from '../store.ts';
import type { TenantChange } from '../subscribers.ts';
import { remove, storedTraces } from './deletion.ts';
import { idBytes, type SqliteConnection } from './file/database.ts';
import type { EncodedOperation } from './payloads.ts';
import { TracePlacement } from './placement.ts';
import type { SqliteRun } from './sqlite-run.ts';

export class SqliteWriter {
  readonly #connection: SqliteConnection;
  readonly #prices: PriceList;
  readonly #nowMs: () => number;

  constructor(connection: SqliteConnection, prices: PriceList, nowMs: () => number) {
    this.#connection = connection;
    this.#prices = prices;
    this.#nowMs = nowMs;
  }

  /**
   * Applies the operations in a request. Discards those of deleted traces. Returns no change if nothing changes.
   * Without operations, writes as much as a small run needs, because fewer bytes may fit into the WAL of a full disk.
   */
  apply(tenant: string, operations: readonly EncodedOperation[]): { discarded: number; change?: TenantChange } {
    if (operations.length === 0) {
      this.#connection.run(TEST_WRITE);
      return { discarded: 0 };
    }
    const placement = this.#placement(tenant);
    const received = new Set<SqliteRun>();
    const traces = storedTraces(this.#connection, identitiesIn(operations), placement);
    const accepted = operations.filter(({ id }) => traces.has(id));
    for (const operation of accepted) {
      const run = placement.findOrCreate(operation.id);
      run.take(operation);
      received.add(run);
    }
    if (received.size === 0) return { discarded: operations.length };
    placement.write(received, traces);
    const keys = JSON.stringify([...received].map(({ row }) => row?.n));
    this.#connection.run('INSERT OR IGNORE INTO unindexed SELECT value FROM json_each(?)', keys);
    this.#attach(accepted, placement);
    const change = this.#finish(tenant, placement);
    return { discarded: operations.length - accepted.length, change };
  }

  /** Adds feedback, which is JSON text. Returns the change, or undefined if the run is unknown. */
  addFeedback(tenant: string, text: string): TenantChange | undefined {
    const feedback: Feedback = parseExact(text);
    const placement = this.#placement(tenant);
    const run = placement.find(feedback.run_id);
    if (run?.row === undefined) return undefined;
    const { n, trace } = run.row;
    const select = 'SELECT n, created_at FROM feedback WHERE run = ? AND id = ?';
    const earlier = this.#connection.one<{ n: number; created_at: string }>(select, n, feedback.id);
    const { id, key, score, created_at } = { ...feedback, created_at: earlier?.created_at ?? feedback.created_at };
    const values = [created_at, key, score === undefined ? null : Number(score)] as const;
    const json = exactJson({ ...feedback, created_at });
    this.#connection.run(REPLACE_FEEDBACK, earlier?.n ?? null, id, n, trace, ...values, json);
    run.trace?.addProjects(run.row);
    return this.#finish(tenant, placement);
  }

  removeFeedback(tenant: string, { id, run_id }: Pick<Feedback, 'id' | 'run_id'>): TenantChange | undefined {
    const placement = this.#placement(tenant);
    const run = placement.find(run_id);
    const n = run?.row?.n ?? null;
    const count = this.#connection.number('SELECT count(*) FROM feedback WHERE run = ? AND id = ?', n, id);
    if (run === undefined || count === 0) return undefined;
    this.#connection.run('DELETE FROM feedback WHERE run = ? AND id = ?', n, id);
    run.trace?.addProjects(run.row);
    return this.#finish(tenant, placement);
  }

  addTokenSecret({ secret, createdMs }: TokenSecret): void {
    this.#connection.run('INSERT OR IGNORE INTO token_secrets VALUES (?, ?)', secret, createdMs);
  }

  revokeTokens(tenant: string, id: string, revokedMs: number): void {
    this.#connection.run(REVOKE, this.#tenant(tenant), idBytes(id), revokedMs);
  }

  /** Deletes what is stored now. Later messages for it are ignored. */
  remove(deletion: Deletion): { counts: RunCounts; change: TenantChange } {
    const placement = this.#placement(deletion.tenant);
    const { counts, traces } = remove(this.#connection, deletion, placement);
    const change = this.#finish(deletion.tenant, placement);
    return { counts, change: { ...change, traces: [...traces, ...change.traces] } };
  }

  #tenant(name: string): number {
    const row = this.#connection.one<{ n: number }>('SELECT n FROM tenants WHERE name = ?', name);
    return row?.n ?? this.#connection.insert('INSERT INTO tenants (name) VALUES (?)', name);
  }

  #placement(tenant: string): TracePlacement {
    return new TracePlacement(this.#connection, this.#prices, this.#tenant(tenant));
  }

  #attach(operations: readonly EncodedOperation[], placement: TracePlacement): void {
    for (const { id, attachments } of operations) {
      if (attachments.length === 0) continue;
      const n = placement.find(id)?.row?.n ?? null;
      for (const { name, mimeType, bytes } of attachments)
        this.#connection.run(ATTACH, n, name, mimeType, bytes.length, bytes);
      if (this.#connection.number('SELECT count(*) FROM attachments WHERE run = ?', n) > ATTACHMENTS_MAX) {
        throw new StoreError('too_large', `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
      }
    }
  }

  #finish(tenant: string, placement: TracePlacement): TenantChange {
    const seq = this.#connection.number("UPDATE meta SET value = value + 1 WHERE key = 'seq' RETURNING value");
    return { tenant, traces: placement.finish(seq, this.#nowMs()) };
  }
}

/** SQLite writes no page whose bytes stay the same, so the value is random. */
const TEST_WRITE = "REPLACE INTO meta VALUES ('test', randomblob(262144))";

const REVOKE = `INSERT INTO revoked_tokens VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET revoked_ms = max(revoked_ms, excluded.revoked_ms)`;

const REPLACE_FEEDBACK = 'INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?)';

/** `coalesce` is needed because Node 22 binds empty bytes as NULL. */
const ATTACH = `INSERT INTO attachments (run, name, mime_type, size, bytes) VALUES (?, ?, ?, ?, coalesce(?, x''))
  ON CONFLICT (run, name) DO UPDATE SET mime_type = excluded.mime_type, size = excluded.size, bytes = excluded.bytes`;
