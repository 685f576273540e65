import { USAGE_KEYS } from '../run-summary.ts';
import type { Usage } from '../run-view.ts';
import {
  addUsage,
  eachLatency,
  type Latencies,
  latencyBucketOf,
  latencyPairs,
  type UsageSums,
  usageSumsOf,
} from '../statistics.ts';
import type { SqliteConnection, SqlValue } from './database.ts';
import { countedUsageIn, type RunRow } from './run-row.ts';

/** Lengths of the counter periods in minutes. Each length is a multiple of the previous one. */
export const PERIODS: readonly number[] = [1, 10, 60, 360];

/** Sums over several counters. */
export type SumsRow = Required<Usage> & { readonly runs: number; readonly latencies: Latencies };

/** SQL expressions for the columns of `SumsRow`. */
export const SUMS: string = ['runs', ...USAGE_KEYS]
  .map((column) => `sum(${column}) AS ${column}`)
  .concat("group_concat(latencies, '') AS latencies")
  .join(', ');

/** The values of a counter, or the amounts by which they change. */
interface Counter {
  readonly key: readonly SqlValue[];
  runs: number;
  readonly usage: UsageSums;
  readonly latencies: Map<number, number>;
}

export const MINUTE_US = 60_000_000;

/** Collects the changes that a transaction makes to counters, so that each changed counter is written once. */
export class Counters {
  readonly #connection: SqliteConnection;
  readonly #changes: { readonly run: RunRow; readonly sign: 1 | -1 }[] = [];

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  add(run: RunRow, sign: 1 | -1): void {
    if (run.start_us !== null) this.#changes.push({ run, sign });
  }

  /** Number of changes that have not been written yet. */
  get pending(): number {
    return this.#changes.length;
  }

  /** Drops all pending changes after the first `kept`. */
  drop(kept: number): void {
    this.#changes.length = kept;
  }

  /** Writes all pending changes. Called before the transaction is committed. */
  flush(): void {
    const counters = new Map<string, Counter>();
    for (const { run, sign } of this.#changes) {
      const { tenant, project, name, run_type, status } = run;
      const [startUs, endUs] = [run.start_us ?? 0, run.end_us];
      const dimensions = [project, name, run_type, run.model ?? '', status];
      const text = dimensions.join('\0');
      const minute = Math.floor(startUs / MINUTE_US);
      const counted = countedUsageIn(run);
      const usage = counted && usageSumsOf(counted);
      for (const period of PERIODS) {
        const start = Math.floor(minute / period) * period;
        const id = `${tenant} ${period} ${start} ${text}`;
        let counter = counters.get(id);
        if (counter === undefined) {
          const key = [tenant, period, start, ...dimensions];
          counter = { key, runs: 0, usage: usageSumsOf(undefined), latencies: new Map() };
          counters.set(id, counter);
        }
        counter.runs += sign;
        if (usage !== undefined) addUsage(counter.usage, usage, sign);
        if (endUs !== null) addLatency(counter, latencyBucketOf(Math.max(0, endUs - startUs)), sign);
      }
    }
    this.drop(0);
    for (const counter of counters.values()) this.#write(counter);
  }

  #write(counter: Counter): void {
    const row = this.#connection.one<SumsRow>(SELECT, ...counter.key);
    if (row !== undefined) {
      counter.runs += row.runs;
      addUsage(counter.usage, usageSumsOf(row), 1);
      eachLatency(row.latencies, (bucket, runs) => addLatency(counter, bucket, runs));
    }
    if (counter.runs === 0) {
      this.#connection.run(`DELETE FROM counters WHERE ${KEY}`, ...counter.key);
      return;
    }
    const latencies = [...counter.latencies].map(([bucket, runs]) => latencyPairs(bucket, runs)).join('');
    this.#connection.run(REPLACE, ...counter.key, counter.runs, ...counter.usage, latencies);
  }
}

function addLatency({ latencies }: Counter, bucket: number, runs: number): void {
  const sum = (latencies.get(bucket) ?? 0) + runs;
  if (sum === 0) latencies.delete(bucket);
  else latencies.set(bucket, sum);
}

const KEY_COLUMNS = ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status'];
const KEY = KEY_COLUMNS.map((column) => `${column} = ?`).join(' AND ');
const SELECT = `SELECT runs, ${USAGE_KEYS.join(', ')}, latencies FROM counters WHERE ${KEY}`;
const COLUMNS = [...KEY_COLUMNS, 'runs', ...USAGE_KEYS, 'latencies'];
const REPLACE = `INSERT OR REPLACE INTO counters (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`;
