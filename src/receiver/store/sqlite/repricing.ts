import { addCost, type PriceList } from '../../domain/cost/prices.ts';
import { factsIn, type StoredRunFacts, summaryOf, USAGE_KEYS } from '../../domain/summary.ts';
import { idText, type SqliteConnection } from './file/database.ts';
import type { OwnFigures } from './reads/stored-figures.ts';
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
      for (const trace of traces) this.#sumUsage(trace);
      this.#connection.exec('COMMIT');
    } catch (error) {
      this.#connection.exec('ROLLBACK');
      throw error;
    }
    return done;
  }

  /** Leaves the time of the last change, by which traces expire. */
  #sumUsage(trace: number): void {
    this.#connection.run(SUM_USAGE, trace);
    const { own } = this.#connection.one<{ own: string | null }>('SELECT own FROM traces WHERE n = ?', trace) ?? {};
    if (!own) return;
    const figures: OwnFigures = JSON.parse(own);
    const sums = this.#connection.one<UsageColumns>(`${SUMS} AND project = ?`, trace, figures.project);
    this.#connection.run('UPDATE traces SET own = ? WHERE n = ?', JSON.stringify({ ...figures, ...sums }), trace);
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
const SUMS = `SELECT ${USAGE_KEYS.map((key) => `sum(${key}) AS ${key}`).join(', ')} FROM runs
  WHERE trace = ? AND start_us IS NOT NULL AND ${COUNTS_USAGE}`;
const SUM_USAGE = `UPDATE traces SET (${USAGE_KEYS.join(', ')}) = (${SUMS.replace('?', 'traces.n')}) WHERE n = ?`;
