import { USAGE_KEYS } from '../run-summary.ts';
import type { Usage } from '../run-view.ts';
import { addUsage, compactLatencies, type Latencies, latenciesOf, type UsageSums, usageSumsOf } from '../statistics.ts';
import type { SqliteConnection, SqlValue } from './database.ts';
import { countedUsageIn, type RunRow } from './run-row.ts';

/** Counter periods, in minutes. Each period is a multiple of the previous one. */
export const PERIODS: readonly number[] = [1, 10, 60, 360];

/** Totals over several counters. */
export type SumsRow = Required<Usage> & { readonly runs: number; readonly latencies: Latencies };

const SUM_COLUMNS = ['runs', ...USAGE_KEYS];

/** SQL expressions for the columns of `SumsRow`. */
export const SUMS: string = SUM_COLUMNS.map((column) => `sum(${column}) AS ${column}`)
  .concat("group_concat(latencies, '') AS latencies")
  .join(', ');

interface CounterChange {
  readonly key: readonly SqlValue[];
  runs: number;
  readonly usage: UsageSums;
  latencies: Latencies;
}

/** Length in characters above which a counter's latencies are compacted. Most counters stay far below this length. */
const COMPACTED_LENGTH_MIN = 2_048;

export const MINUTE_US = 60_000_000;

/** Collects the counter changes in a transaction and updates each changed counter once. */
export class Counters {
  readonly #connection: SqliteConnection;
  readonly #changes: { readonly run: RunRow; readonly sign: 1 | -1 }[] = [];

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  add(run: RunRow, sign: 1 | -1): void {
    if (run.start_us !== null) this.#changes.push({ run, sign });
  }

  get pending(): number {
    return this.#changes.length;
  }

  /** Drops all pending changes except the first `kept` changes. */
  drop(kept: number): void {
    this.#changes.length = kept;
  }

  /** Writes all pending changes. Call `flush` before committing the transaction. */
  flush(): void {
    const changes = new Map<string, CounterChange>();
    for (const { run, sign } of this.#changes) {
      const { tenant, project, name, run_type, status } = run;
      const [startUs, endUs] = [run.start_us ?? 0, run.end_us];
      const dimensions = [project, name, run_type, run.model ?? '', status];
      const text = dimensions.join('\0');
      const minute = Math.floor(startUs / MINUTE_US);
      const counted = countedUsageIn(run);
      const usage = counted && usageSumsOf(counted);
      const latencies = latenciesOf(endUs === null ? undefined : Math.max(0, endUs - startUs), sign);
      for (const period of PERIODS) {
        const start = Math.floor(minute / period) * period;
        const id = `${tenant} ${period} ${start} ${text}`;
        let change = changes.get(id);
        if (change === undefined) {
          const key = [tenant, period, start, ...dimensions];
          change = { key, runs: 0, usage: usageSumsOf(undefined), latencies: '' };
          changes.set(id, change);
        }
        change.runs += sign;
        if (usage !== undefined) addUsage(change.usage, usage, sign);
        change.latencies += latencies;
      }
    }
    this.drop(0);
    for (const change of changes.values()) this.#write(change);
  }

  #write({ key, runs, usage, latencies }: CounterChange): void {
    const row = this.#connection.one<UpdatedRow>(ADD, ...key, runs, ...usage, latencies);
    if (row?.runs === 0) this.#connection.run(`DELETE FROM counters WHERE ${KEY}`, ...key);
    else if (row?.longLatencies) {
      const compact = compactLatencies(row.longLatencies);
      this.#connection.run(`UPDATE counters SET latencies = ? WHERE ${KEY}`, compact, ...key);
    }
  }
}

/** The run count of a counter, and its latencies if they need compacting. */
interface UpdatedRow {
  readonly runs: number;
  readonly longLatencies: Latencies | null;
}

const KEY_COLUMNS = ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status'];
const KEY = KEY_COLUMNS.map((column) => `${column} = ?`).join(' AND ');
const COLUMNS = [...KEY_COLUMNS, ...SUM_COLUMNS, 'latencies'];
const ADD = `INSERT INTO counters (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})
  ON CONFLICT DO UPDATE SET ${SUM_COLUMNS.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')},
    latencies = latencies || excluded.latencies
  RETURNING runs, CASE WHEN length(latencies) > ${COMPACTED_LENGTH_MIN} THEN latencies END AS longLatencies`;
