import { MODEL_TYPES, sumOfUsage, USAGE_KEYS } from '../run-summary.ts';
import type { Usage } from '../run-view.ts';
import type { Contribution } from './counters.ts';
import { idBytes, type Row, type SqliteConnection } from './database.ts';
import { usageIn } from './run-row.ts';

/** SQL condition: the usage of a run counts in sums. */
export const COUNTS_USAGE: string = `(run_type IN (${MODEL_TYPES.map((type) => `'${type}'`).join(', ')}) OR below = 0)`;

/** A trace that is being changed. Its sums are updated run by run, so that a change costs the same in large traces. */
export class StoredTrace {
  readonly id: string;
  readonly n: number;
  readonly #idBytes: Uint8Array;
  #root: number | undefined;
  #runs: number;
  #pending: number;
  #errors: number;
  #endUs: number | undefined;
  #usage: Usage | undefined;
  /** Whether the end or the usage can only be found by reading all runs. */
  #isStale = false;

  /** Opens a trace, and creates it if it does not exist. */
  static open(connection: SqliteConnection, tenant: number, id: string): StoredTrace {
    const select = 'SELECT * FROM traces WHERE tenant = ? AND id = ?';
    const row = connection.one(select, tenant, idBytes(id));
    if (row !== undefined) return new StoredTrace(row, id);
    connection.run(INSERT, tenant, idBytes(id));
    return new StoredTrace(connection.one(select, tenant, idBytes(id)) ?? {}, id);
  }

  private constructor(row: Row, id: string) {
    this.id = id;
    this.#idBytes = idBytes(id);
    this.n = row.n as number;
    this.#root = (row.root as number | null) ?? undefined;
    this.#runs = row.runs as number;
    this.#pending = row.pending as number;
    this.#errors = row.errors as number;
    this.#endUs = (row.end_us as number | null) ?? undefined;
    this.#usage = usageIn(row);
  }

  /** Replaces what a run adds to the sums. */
  change(before: Contribution | undefined, after: Contribution | undefined): void {
    this.#runs += +(after !== undefined) - +(before !== undefined);
    this.#pending += +(after?.status === 'pending') - +(before?.status === 'pending');
    this.#errors += +(after?.status === 'error') - +(before?.status === 'error');
    if (before?.endUs !== undefined && before.endUs > (after?.endUs ?? 0)) this.#isStale = true;
    if (after?.endUs !== undefined) this.#endUs = Math.max(this.#endUs ?? 0, after.endUs);
    if (before?.usage === undefined) this.#usage = sumOfUsage(this.#usage, after?.usage);
    else if (USAGE_KEYS.some((key) => before.usage?.[key] !== after?.usage?.[key])) this.#isStale = true;
  }

  /** Writes the trace after its runs. Deletes it if it has no runs. */
  write(connection: SqliteConnection, seq: number, nowMs: number): void {
    const root = this.#findRoot(connection);
    if (root === undefined && connection.one('SELECT 1 FROM runs WHERE trace = ?', this.n) === undefined) {
      connection.run('DELETE FROM traces WHERE n = ?', this.n);
      return;
    }
    if (this.#isStale) this.#recount(connection);
    if (root !== this.#root) {
      connection.run('UPDATE runs SET is_root = 0 WHERE n = ? AND trace = ?', this.#root ?? null, this.n);
      this.#root = root;
    }
    connection.run('UPDATE runs SET is_root = 1 WHERE n = ? AND is_root = 0', root ?? null);
    const usage = USAGE_KEYS.map((key) => this.#usage?.[key] ?? null);
    const sums = [this.#runs, this.#pending, this.#errors, this.#endUs ?? null, ...usage];
    connection.run(UPDATE, seq, nowMs, root ?? null, ...sums, this.n);
  }

  /** The run with the id of the trace, or else the first run. */
  #findRoot(connection: SqliteConnection): number | undefined {
    const own = connection.one<{ n: number }>(OWN_ROOT, this.n, this.#idBytes);
    return (own ?? connection.one<{ n: number }>(FIRST_ROOT, this.n))?.n;
  }

  #recount(connection: SqliteConnection): void {
    const row = connection.one<{ end_us: number | null }>(LAST_END, this.n);
    this.#endUs = row?.end_us ?? undefined;
    this.#usage = usageIn(connection.one(SUMS, this.n) ?? {});
    this.#isStale = false;
  }
}

const INSERT = `INSERT INTO traces (tenant, id, seq, changed_ms, runs, pending, errors) VALUES (?, ?, 0, 0, 0, 0, 0)`;
const UPDATE = `UPDATE traces SET seq = ?, changed_ms = ?, root = ?, runs = ?, pending = ?, errors = ?, end_us = ?,
  ${USAGE_KEYS.map((key) => `${key} = ?`).join(', ')} WHERE n = ?`;
const OWN_ROOT = `SELECT runs.n AS n FROM traces JOIN runs ON runs.tenant = traces.tenant AND runs.id = traces.id
  WHERE traces.n = ?1 AND traces.id = ?2 AND runs.trace = ?1 AND start_us IS NOT NULL`;
const FIRST_ROOT = 'SELECT n FROM runs WHERE trace = ? AND start_us IS NOT NULL ORDER BY start_us, n LIMIT 1';
const LAST_END = 'SELECT max(end_us) AS end_us FROM runs WHERE trace = ?';
const SUMS = `SELECT ${USAGE_KEYS.map((key) => `sum(${key}) AS ${key}`).join(', ')}
  FROM runs WHERE trace = ? AND start_us IS NOT NULL AND ${COUNTS_USAGE}`;
