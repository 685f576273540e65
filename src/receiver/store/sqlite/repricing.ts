import { addCost, type PriceList } from '../../domain/cost/prices.ts';
import { factsIn, type StoredRunFacts, summaryOf, USAGE_KEYS } from '../../domain/summary.ts';
import { idText, type SqliteConnection } from './file/database.ts';
import { COUNTS_USAGE, rowFields, SELECT_RUNS, type SelectedRun, type UsageColumns } from './run-row.ts';
import { factsJson } from './sqlite-run.ts';

/** Duration of a transaction, in milliseconds. A receiver that writes to the same file waits for this long. */
const STEP_MS = 20;
const BATCH = 100;

/** Numbers of runs so far, and where the next step continues. */
export interface Repriced {
  /** Key of the last run that was read. */
  readonly last: number;
  /** Number of runs with usage that report no cost. */
  readonly runs: number;
  readonly changed: number;
  /** Number of runs by the reason why their cost is unknown. */
  readonly unknown: Readonly<Record<string, number>>;
  readonly isDone: boolean;
}

/** Calculates the costs of stored runs again, in short transactions beside a receiver that writes to the file. */
export class SqliteRepricing {
  readonly #connection: SqliteConnection;
  readonly #prices: PriceList;

  constructor(connection: SqliteConnection, prices: PriceList) {
    this.#connection = connection;
    this.#prices = prices;
  }

  /** Calculates the costs of the runs after `last` for about `STEP_MS`. */
  step(last: number): Repriced {
    const untilMs = performance.now() + STEP_MS;
    const unknown: Unknown = {};
    const traces = new Set<number>();
    const done = { last, runs: 0, changed: 0, unknown, isDone: false };
    this.#connection.exec('BEGIN IMMEDIATE');
    try {
      while (!done.isDone && performance.now() < untilMs) {
        const rows = this.#connection.all<SelectedRun>(WITH_USAGE, done.last, BATCH);
        for (const row of rows) {
          done.last = row.n;
          this.#reprice(row, traces, done);
          // The outputs of one run may take long to read.
          if (performance.now() >= untilMs) break;
        }
        done.isDone = rows.length < BATCH && done.last === (rows.at(-1)?.n ?? last);
      }
      for (const trace of traces) this.#connection.run(SUM_USAGE, trace);
      this.#connection.exec('COMMIT');
    } catch (error) {
      this.#connection.exec('ROLLBACK');
      throw error;
    }
    return done;
  }

  #reprice(row: SelectedRun, traces: Set<number>, done: { runs: number; changed: number; unknown: Unknown }): void {
    const { cost: _, ...facts }: StoredRunFacts = JSON.parse(row.facts ?? '{}');
    const summary = summaryOf(idText(row.id), idText(row.trace_id), rowFields(row), factsIn(facts));
    if (summary === undefined) return;
    const source = addCost(summary, this.#prices);
    const { price_table, no_cost } = source;
    if (price_table !== undefined || no_cost !== undefined) done.runs += 1;
    if (no_cost !== undefined) done.unknown[no_cost] = (done.unknown[no_cost] ?? 0) + 1;
    const json = factsJson(facts, source);
    if (json !== row.facts) this.#connection.run('UPDATE details SET facts = ? WHERE n = ?', json, row.n);
    const { usage } = summary;
    const columns = Object.fromEntries(USAGE_KEYS.map((key) => [key, usage?.[key] ?? null])) as UsageColumns;
    if (USAGE_KEYS.every((key) => columns[key] === row[key])) return;
    if (columns.total_cost !== row.total_cost) done.changed += 1;
    this.#connection.update('runs', row.n, row, columns);
    traces.add(row.trace);
  }
}

type Unknown = Record<string, number>;

const WITH_USAGE = `${SELECT_RUNS} WHERE runs.n > ? AND start_us IS NOT NULL
  AND coalesce(runs.input_tokens, runs.output_tokens, runs.total_tokens) IS NOT NULL ORDER BY runs.n LIMIT ?`;
/** Leaves the time of the last change, by which traces expire. */
const SUM_USAGE = `UPDATE traces SET (${USAGE_KEYS.join(', ')}) = (
    SELECT ${USAGE_KEYS.map((key) => `sum(${key})`).join(', ')} FROM runs
      WHERE trace = traces.n AND start_us IS NOT NULL AND ${COUNTS_USAGE}
  ) WHERE n = ?`;
