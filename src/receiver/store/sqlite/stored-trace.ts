import { sumOfUsage, USAGE_KEYS } from '../run-summary.ts';
import type { Usage } from '../run-view.ts';
import { idBytes, type SqliteConnection } from './database.ts';
import { COUNTS_USAGE, countedUsageIn, type RunRow, usageIn } from './run-row.ts';

/** The columns of `traces` that depend on runs. */
type TraceRow = {
  readonly n: number;
  readonly root: number | null;
  runs: number;
  pending: number;
  errors: number;
  end_us: number | null;
};

/** A trace that is being changed. Its sums are updated run by run, so that a change costs the same in large traces. */
export class StoredTrace {
  readonly id: string;
  readonly n: number;
  readonly #row: TraceRow;
  #usage: Usage | undefined;
  /** Whether the end and the usage have to be read from all runs. */
  #isStale = false;

  /** Opens a trace, and creates it if it does not exist. */
  static open(connection: SqliteConnection, tenant: number, id: string): StoredTrace {
    const select = 'SELECT * FROM traces WHERE tenant = ? AND id = ?';
    const row = connection.one<TraceRow>(select, tenant, idBytes(id));
    if (row !== undefined) return new StoredTrace(row, id);
    connection.run(INSERT, tenant, idBytes(id));
    return StoredTrace.open(connection, tenant, id);
  }

  private constructor(row: TraceRow, id: string) {
    this.id = id;
    this.n = row.n;
    this.#row = { ...row };
    this.#usage = usageIn(row);
  }

  /** Updates the sums for a run whose row changes, arrives in the trace or leaves it. */
  change(before: RunRow | undefined, after: RunRow | undefined): void {
    const sums = this.#row;
    sums.runs += +isVisible(after) - +isVisible(before);
    sums.pending += +(after?.status === 'pending') - +(before?.status === 'pending');
    sums.errors += +(after?.status === 'error') - +(before?.status === 'error');
    const [endBefore, endAfter] = [before?.end_us ?? 0, after?.end_us ?? 0];
    if (endBefore > endAfter) this.#isStale = true;
    if (endAfter > 0) sums.end_us = Math.max(sums.end_us ?? 0, endAfter);
    const [usageBefore, usageAfter] = [before && countedUsageIn(before), after && countedUsageIn(after)];
    if (usageBefore === undefined) this.#usage = sumOfUsage(this.#usage, usageAfter);
    else if (USAGE_KEYS.some((key) => usageBefore[key] !== usageAfter?.[key])) this.#isStale = true;
  }

  /** Writes the trace after its runs. Deletes it if it has no runs. */
  write(connection: SqliteConnection, seq: number, nowMs: number): void {
    const { n } = this;
    const root = this.#findRoot(connection);
    if (root === undefined && connection.one('SELECT 1 FROM runs WHERE trace = ?', n) === undefined) {
      connection.run('DELETE FROM traces WHERE n = ?', n);
      return;
    }
    if (this.#isStale) {
      this.#row.end_us = connection.one<{ end_us: number | null }>(LAST_END, n)?.end_us ?? null;
      this.#usage = usageIn(connection.one(SUMS, n) ?? {});
    }
    if (root !== this.#row.root) {
      connection.run('UPDATE runs SET is_root = 0 WHERE n = ? AND trace = ?', this.#row.root, n);
    }
    connection.run('UPDATE runs SET is_root = 1 WHERE n = ? AND is_root = 0', root ?? null);
    const { runs, pending, errors, end_us } = this.#row;
    const usage = USAGE_KEYS.map((key) => this.#usage?.[key] ?? null);
    connection.run(UPDATE, seq, nowMs, root ?? null, runs, pending, errors, end_us, ...usage, n);
  }

  /** Finds the run with the id of the trace, or else the first run. */
  #findRoot(connection: SqliteConnection): number | undefined {
    const own = connection.one<{ n: number }>(OWN_ROOT, this.n, idBytes(this.id));
    return (own ?? connection.one<{ n: number }>(FIRST_ROOT, this.n))?.n;
  }
}

function isVisible(row: RunRow | undefined): boolean {
  return row !== undefined && row.start_us !== null;
}

const INSERT = 'INSERT INTO traces (tenant, id, seq, changed_ms, runs, pending, errors) VALUES (?, ?, 0, 0, 0, 0, 0)';
const UPDATE = `UPDATE traces SET seq = ?, changed_ms = ?, root = ?, runs = ?, pending = ?, errors = ?, end_us = ?,
  ${USAGE_KEYS.map((key) => `${key} = ?`).join(', ')} WHERE n = ?`;
const OWN_ROOT = `SELECT runs.n AS n FROM traces JOIN runs ON runs.tenant = traces.tenant AND runs.id = traces.id
  WHERE traces.n = ?1 AND traces.id = ?2 AND runs.trace = ?1 AND start_us IS NOT NULL`;
const FIRST_ROOT = 'SELECT n FROM runs WHERE trace = ? AND start_us IS NOT NULL ORDER BY start_us, n LIMIT 1';
const LAST_END = 'SELECT max(end_us) AS end_us FROM runs WHERE trace = ?';
const SUMS = `SELECT ${USAGE_KEYS.map((key) => `sum(${key}) AS ${key}`).join(', ')}
  FROM runs WHERE trace = ? AND start_us IS NOT NULL AND ${COUNTS_USAGE}`;
