import { MODEL_TYPES, sumOfUsage, USAGE_KEYS } from './run-summary.ts';
import type { Usage } from './run-view.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { idBytes } from './sqlite-id.ts';
import { type Share, usageIn } from './sqlite-run.ts';

interface TraceRow {
  n: number;
  root: number | null;
  root_id: Uint8Array | null;
  runs: number;
  pending: number;
  errors: number;
  end_us: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  total_tokens: number | null;
  total_cost: number | null;
}

/** A trace that is being changed. Its figures are kept up run by run, so that a large one costs no more than a small one. */
export class SqliteTrace {
  readonly id: string;
  readonly #bytes: Uint8Array;
  readonly #read: TraceRow | undefined;
  #runs: number;
  #pending: number;
  #errors: number;
  #endUs: number | undefined;
  #usage: Usage | undefined;
  /** Whether something was taken away that only a look at all runs can replace: an end, tokens. */
  #isStale = false;

  constructor(connection: SqliteConnection, id: string) {
    this.id = id;
    this.#bytes = idBytes(id);
    this.#read = connection.one<TraceRow>('SELECT * FROM traces WHERE id = ?', this.#bytes);
    this.#runs = this.#read?.runs ?? 0;
    this.#pending = this.#read?.pending ?? 0;
    this.#errors = this.#read?.errors ?? 0;
    this.#endUs = this.#read?.end_us ?? undefined;
    this.#usage = this.#read === undefined ? undefined : usageIn({ ...this.#read });
  }

  /**
   * Updates the sums after a run was written. `before` and `after` are the run's contributions to the sums, or
   * undefined if it has none.
   */
  change(connection: SqliteConnection, id: string, before: Share | undefined, after: Share | undefined): void {
    this.#runs += +(after !== undefined) - +(before !== undefined);
    this.#pending += +(after?.isPending ?? false) - +(before?.isPending ?? false);
    this.#errors += +(after?.isError ?? false) - +(before?.isError ?? false);
    if (before?.endUs !== undefined && before.endUs > (after?.endUs ?? 0)) this.#isStale = true;
    if (before?.usage !== undefined && !isSameUsage(before, after)) this.#isStale = true;
    if (after?.endUs !== undefined) this.#endUs = Math.max(this.#endUs ?? 0, after.endUs);
    if (before?.usage === undefined && after?.usage !== undefined) this.#add(connection, id, after);
  }

  /** Adds the usage of a run that previously had none. */
  #add(connection: SqliteConnection, id: string, { dottedOrder, usage }: Share): void {
    if (connection.number(COUNTS, idBytes(id)) === 0) return;
    this.#usage = sumOfUsage(this.#usage, usage);
    for (const order of ordersAbove(dottedOrder)) {
      const above = connection.one<{ counted: number }>(COUNTED_WITHOUT, idBytes(id), idBytes(order.slice(-36)), order);
      if (above?.counted === 1) this.#isStale = true;
      // This ancestor has usage of its own, so the usage of the runs above it was not counted before this change
      // either.
      if (above !== undefined) return;
    }
  }

  /** Called when all its runs have been written. A trace that no run is left of is gone. */
  write(connection: SqliteConnection, seq: number, nowMs: number): void {
    const root = this.#root(connection);
    if (root === undefined && !this.#hasRuns(connection)) {
      if (this.#read !== undefined) connection.run('DELETE FROM traces WHERE n = ?', this.#read.n);
      return;
    }
    if (this.#isStale) this.#recount(connection);
    if (root?.n !== (this.#read?.root ?? undefined)) {
      // A root that has left is no longer this trace's to change.
      connection.run('UPDATE runs SET is_root = 0 WHERE n = ? AND trace_id = ?', this.#read?.root ?? null, this.#bytes);
      connection.run('UPDATE runs SET is_root = 1 WHERE n = ?', root?.n ?? null);
    }
    const { input_tokens, output_tokens, total_tokens, total_cost } = this.#usage ?? {};
    const values = [seq, nowMs, root?.n ?? null, root?.id ?? null, this.#runs, this.#pending, this.#errors] as const;
    const sums = [input_tokens ?? null, output_tokens ?? null, total_tokens ?? null, total_cost ?? null] as const;
    if (this.#read === undefined) connection.run(INSERT, this.#bytes, ...values, this.#endUs ?? null, ...sums);
    else connection.run(UPDATE, ...values, this.#endUs ?? null, ...sums, this.#read.n);
  }

  /** The run that has the id of the trace, wherever its order stands, else the first. */
  #root(connection: SqliteConnection): { n: number; id: Uint8Array } | undefined {
    const own = 'SELECT n, id FROM runs WHERE id = ?1 AND trace_id = ?1 AND start_us IS NOT NULL';
    const first = 'SELECT n, id FROM runs WHERE trace_id = ? AND start_us IS NOT NULL ORDER BY dotted_order, n LIMIT 1';
    return connection.one<{ n: number; id: Uint8Array }>(own, this.#bytes) ?? connection.one(first, this.#bytes);
  }

  #hasRuns(connection: SqliteConnection): boolean {
    return connection.one('SELECT 1 FROM runs WHERE trace_id = ?', this.#bytes) !== undefined;
  }

  #recount(connection: SqliteConnection): void {
    const row = connection.one<{ end_us: number | null }>(LAST_END, this.#bytes);
    this.#endUs = row?.end_us ?? undefined;
    this.#usage = usageIn(connection.one(SUMS, this.#bytes) ?? {});
  }
}

const INSERT = `INSERT INTO traces
  (id, seq, changed_ms, root, root_id, runs, pending, errors, end_us, input_tokens, output_tokens, total_tokens, total_cost)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const UPDATE = `UPDATE traces SET seq = ?, changed_ms = ?, root = ?, root_id = ?, runs = ?, pending = ?, errors = ?,
  end_us = ?, input_tokens = ?, output_tokens = ?, total_tokens = ?, total_cost = ? WHERE n = ?`;

const usageColumnsOf = (table: string): string => USAGE_KEYS.map((key) => `${table}.${key}`).join(', ');
const hasUsage = (table: string): string => `coalesce(${usageColumnsOf(table)}) IS NOT NULL`;

const IS_MODEL_CALL = `runs.run_type IN (${MODEL_TYPES.map((type) => `'${type}'`).join(', ')})`;
const USAGE_BELOW = `SELECT 1 FROM runs AS below WHERE below.trace_id = runs.trace_id AND ${hasUsage('below')}
  AND below.dotted_order > runs.dotted_order || '.' AND below.dotted_order < runs.dotted_order || '/'`;

/** SQL condition that applies the rule of `countsUsage` to a row of `runs`. */
export const COUNTS_USAGE: string = `(${hasUsage('runs')} AND (${IS_MODEL_CALL} OR NOT EXISTS (${USAGE_BELOW})))`;

const COUNTS = `SELECT ${COUNTS_USAGE} FROM runs WHERE id = ?`;
/**
 * Selects whether the usage of a run would count if one given nested run had no usage. Returns no row if the run has no
 * usage.
 */
const COUNTED_WITHOUT = `SELECT NOT ${IS_MODEL_CALL} AND NOT EXISTS (${USAGE_BELOW} AND below.id <> ?) AS counted
  FROM runs WHERE id = ? AND dotted_order = ? AND ${hasUsage('runs')}`;
const LAST_END = 'SELECT max(end_us) AS end_us FROM runs WHERE trace_id = ?';
const SUMS = `SELECT ${USAGE_KEYS.map((key) => `sum(${key}) AS ${key}`).join(', ')}
  FROM runs WHERE trace_id = ? AND ${COUNTS_USAGE}`;

/** Yields the dotted orders of the ancestors of a run, parent first. Each ends with the id of the ancestor. */
function* ordersAbove(order: string): Iterable<string> {
  for (let end = order.lastIndexOf('.'); end !== -1; end = order.lastIndexOf('.', end - 1)) yield order.slice(0, end);
}

function isSameUsage(before: Share, after: Share | undefined): boolean {
  return (
    before.isModelCall === after?.isModelCall &&
    before.dottedOrder === after.dottedOrder &&
    USAGE_KEYS.every((key) => before.usage?.[key] === after.usage?.[key])
  );
}
