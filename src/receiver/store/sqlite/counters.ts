import { USAGE_KEYS } from '../run-summary.ts';
import type { RunStatus, Usage } from '../run-view.ts';
import type { SqliteConnection, SqlValue } from './database.ts';

/** The lengths of counter periods in minutes. Each is a multiple of the previous one. */
export const PERIODS: readonly number[] = [1, 10, 60, 1_440];

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

/** The sums of some runs. `usage` has the sum and the number of runs for each kind of usage. */
class Sums {
  runs = 0;
  readonly usage: number[] = new Array(2 * USAGE_KEYS.length).fill(0);
  readonly latencies = new Map<number, number>();

  add({ latencyBucket, usage }: Contribution, sign: 1 | -1): void {
    this.runs += sign;
    if (latencyBucket !== undefined) this.#addLatency(latencyBucket, sign);
    for (const [index, key] of USAGE_KEYS.entries()) {
      const value = usage?.[key];
      if (value !== undefined) this.#addUsage(index, sign * value, sign);
    }
  }

  merge(other: Sums): void {
    this.runs += other.runs;
    for (const [bucket, runs] of other.latencies) this.#addLatency(bucket, runs);
    for (const index of USAGE_KEYS.keys()) {
      this.#addUsage(index, other.usage[2 * index] ?? 0, other.usage[2 * index + 1] ?? 0);
    }
  }

  #addUsage(index: number, value: number, runs: number): void {
    this.usage[2 * index] = (this.usage[2 * index] ?? 0) + value;
    this.usage[2 * index + 1] = (this.usage[2 * index + 1] ?? 0) + runs;
  }

  #addLatency(bucket: number, runs: number): void {
    const sum = (this.latencies.get(bucket) ?? 0) + runs;
    if (sum === 0) this.latencies.delete(bucket);
    else this.latencies.set(bucket, sum);
  }

  /** The values of the columns `runs`, `usage` and `latencies`. */
  columns(): SqlValue[] {
    const usage = this.usage.some((value) => value !== 0) ? JSON.stringify(this.usage) : null;
    return [this.runs, usage, this.latencies.size === 0 ? null : JSON.stringify([...this.latencies].flat())];
  }

  static of({ runs, usage, latencies }: SumsRow): Sums {
    const sums = new Sums();
    sums.runs = runs;
    if (usage !== null) sums.usage.splice(0, sums.usage.length, ...(JSON.parse(usage) as number[]));
    for (const [bucket, count] of latenciesIn(latencies)) sums.latencies.set(bucket, count);
    return sums;
  }
}

export interface SumsRow {
  runs: number;
  usage: string | null;
  latencies: string | null;
}

/** Reads the column `usage` of a counter. */
export function usageSum(usage: string | null): Usage | undefined {
  if (usage === null) return undefined;
  const sums = JSON.parse(usage) as number[];
  const found: Usage = {};
  for (const [index, key] of USAGE_KEYS.entries()) {
    if ((sums[2 * index + 1] ?? 0) > 0) found[key] = sums[2 * index] ?? 0;
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

/** Reads the column `latencies` of a counter. */
export function latenciesIn(latencies: string | null): [bucket: number, runs: number][] {
  if (latencies === null) return [];
  const flat = JSON.parse(latencies) as number[];
  const pairs: [number, number][] = [];
  for (let at = 0; at < flat.length; at += 2) pairs.push([flat[at] ?? 0, flat[at + 1] ?? 0]);
  return pairs;
}

/** Sums by the text of their key. */
type KeyedSums = Map<string, { readonly key: SqlValue[]; readonly sums: Sums }>;

const MINUTE_US = 60_000_000;

/** Collects the changes of a transaction to the counters, and writes each changed counter once. */
export class Counters {
  readonly #connection: SqliteConnection;
  /** The changes of the current call. They are dropped if the call fails. */
  readonly #call: KeyedSums = new Map();
  readonly #transaction: KeyedSums = new Map();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  add(contribution: Contribution, sign: 1 | -1): void {
    const { tenant, startUs, project, name, runType, model = '', status } = contribution;
    const dimensions = [project, name, runType, model, status];
    const minute = Math.floor(startUs / MINUTE_US);
    this.#sums(this.#call, [tenant, 1, minute, ...dimensions]).add(contribution, sign);
  }

  /** Ends a call. */
  endCall(isSuccess: boolean): void {
    for (const { key, sums } of isSuccess ? this.#call.values() : []) this.#sums(this.#transaction, key).merge(sums);
    this.#call.clear();
  }

  /** Writes all changes, before the transaction is committed. */
  flush(): void {
    const changes: KeyedSums = new Map();
    for (const { key, sums } of this.#transaction.values()) {
      const [tenant = null, , minute, ...dimensions] = key;
      for (const period of PERIODS) {
        const start = Math.floor(Number(minute) / period) * period;
        this.#sums(changes, [tenant, period, start, ...dimensions]).merge(sums);
      }
    }
    this.#transaction.clear();
    for (const { key, sums } of changes.values()) this.#write(key, sums);
  }

  /** Drops all changes, after a rollback. */
  drop(): void {
    this.#call.clear();
    this.#transaction.clear();
  }

  #write(key: readonly SqlValue[], change: Sums): void {
    const row = this.#connection.one<SumsRow>(SELECT, ...key);
    const sums = row === undefined ? change : Sums.of(row);
    if (row !== undefined) sums.merge(change);
    if (sums.runs === 0) this.#connection.run(`DELETE FROM counters WHERE ${KEY}`, ...key);
    else
      this.#connection.run(
        'INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        ...key,
        ...sums.columns(),
      );
  }

  #sums(changes: KeyedSums, key: SqlValue[]): Sums {
    const text = key.join('\0');
    const known = changes.get(text) ?? { key, sums: new Sums() };
    changes.set(text, known);
    return known.sums;
  }
}

const KEY = ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status']
  .map((column) => `${column} = ?`)
  .join(' AND ');
const SELECT = `SELECT runs, usage, latencies FROM counters WHERE ${KEY}`;
