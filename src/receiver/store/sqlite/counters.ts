import { USAGE_KEYS } from '../run-summary.ts';
import type { RunStatus, Usage } from '../run-view.ts';
import { addUsage, eachLatency, type Latencies, latencyPairs, type UsageSums, usageSumsOf } from '../statistics.ts';
import type { Row, SqliteConnection, SqlValue } from './database.ts';

/** The lengths of counter periods in minutes. Each is a multiple of the previous one. */
export const PERIODS: readonly number[] = [1, 10, 60, 360];

/** What a run adds to the sums of its trace and to the counters. */
export interface Contribution {
  readonly tenant: number;
  readonly trace: number;
  readonly startUs: number;
  readonly endUs: number | undefined;
  readonly project: string;
  readonly name: string;
  readonly runType: string;
  readonly model: string | undefined;
  readonly status: RunStatus;
  /** Undefined if the run has not ended. */
  readonly latencyBucket: number | undefined;
  /** Undefined if the usage of the run does not count. */
  readonly usage: Usage | undefined;
}

/** The columns of usage, in the order of `UsageSums`. */
const USAGE_COLUMNS: readonly string[] = [...USAGE_KEYS, ...USAGE_KEYS.map((key) => `${key}_runs`)];

/** Sums over counters. The usage is null if no run has any. */
export type SumsRow = Row & { runs: number; latencies: Latencies };

/** SQL expressions for the columns of `SumsRow`. */
export const SUMS: string = ['runs', ...USAGE_COLUMNS]
  .map((column) => `sum(${column}) AS ${column}`)
  .concat("group_concat(latencies, '') AS latencies")
  .join(', ');

export function usageSumsIn(row: SumsRow): UsageSums | undefined {
  return row[USAGE_KEYS[0] as string] === null ? undefined : USAGE_COLUMNS.map((column) => row[column] as number);
}

/** A counter, or a change to a counter. */
interface Sums {
  runs: number;
  usage: UsageSums | undefined;
  readonly latencies: Map<number, number>;
}

const MINUTE_US = 60_000_000;

/** Collects the changes of a transaction to the counters, and writes each changed counter once. */
export class Counters {
  readonly #connection: SqliteConnection;
  readonly #changes: { readonly contribution: Contribution; readonly sign: 1 | -1 }[] = [];
  /** The changes of calls that have ended. */
  #kept = 0;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  add(contribution: Contribution, sign: 1 | -1): void {
    this.#changes.push({ contribution, sign });
  }

  /** Ends a call. The changes of a call that failed are dropped. */
  endCall(isSuccess: boolean): void {
    if (isSuccess) this.#kept = this.#changes.length;
    else this.#changes.length = this.#kept;
  }

  /** Writes all changes, before the transaction is committed. */
  flush(): void {
    const counters = new Map<string, { readonly key: SqlValue[]; readonly sums: Sums }>();
    for (const { contribution, sign } of this.#changes) {
      const { tenant, startUs, project, name, runType, model = '', status, latencyBucket } = contribution;
      const dimensions = [project, name, runType, model, status];
      const text = dimensions.join('\0');
      const minute = Math.floor(startUs / MINUTE_US);
      const usage = contribution.usage && usageSumsOf(contribution.usage);
      for (const period of PERIODS) {
        const start = Math.floor(minute / period) * period;
        const id = `${tenant} ${period} ${start} ${text}`;
        let counter = counters.get(id);
        if (counter === undefined) {
          const sums = { runs: 0, usage: undefined, latencies: new Map() };
          counter = { key: [tenant, period, start, ...dimensions], sums };
          counters.set(id, counter);
        }
        add(counter.sums, sign, 1, usage);
        if (latencyBucket !== undefined) addLatency(counter.sums, latencyBucket, sign);
      }
    }
    this.drop();
    for (const { key, sums } of counters.values()) this.#write(key, sums);
  }

  /** Drops all changes, after a rollback. */
  drop(): void {
    this.#changes.length = 0;
    this.#kept = 0;
  }

  #write(key: readonly SqlValue[], sums: Sums): void {
    const row = this.#connection.one<SumsRow>(SELECT, ...key);
    if (row !== undefined) {
      add(sums, 1, row.runs, usageSumsIn(row));
      eachLatency(row.latencies, (bucket, runs) => addLatency(sums, bucket, runs));
    }
    if (sums.runs === 0) {
      this.#connection.run(`DELETE FROM counters WHERE ${KEY}`, ...key);
      return;
    }
    const usage = sums.usage?.some((value) => value !== 0) ? sums.usage : USAGE_COLUMNS.map(() => null);
    const latencies = [...sums.latencies].map(([bucket, runs]) => latencyPairs(bucket, runs)).join('');
    this.#connection.run(REPLACE, ...key, sums.runs, ...usage, latencies);
  }
}

function add(sums: Sums, sign: 1 | -1, runs: number, usage: UsageSums | undefined): void {
  sums.runs += sign * runs;
  if (usage === undefined) return;
  sums.usage ??= usageSumsOf({});
  addUsage(sums.usage, usage, sign);
}

function addLatency({ latencies }: Sums, bucket: number, runs: number): void {
  const sum = (latencies.get(bucket) ?? 0) + runs;
  if (sum === 0) latencies.delete(bucket);
  else latencies.set(bucket, sum);
}

const KEY_COLUMNS = ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status'];
const KEY = KEY_COLUMNS.map((column) => `${column} = ?`).join(' AND ');
const SELECT = `SELECT runs, ${USAGE_COLUMNS.join(', ')}, latencies FROM counters WHERE ${KEY}`;
const COLUMNS = [...KEY_COLUMNS, 'runs', ...USAGE_COLUMNS, 'latencies'];
const REPLACE = `INSERT OR REPLACE INTO counters (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`;
