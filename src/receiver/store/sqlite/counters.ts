import type { RunStatus, Usage } from '../run-view.ts';
import { addUsage, type UsageSums, usageSumsOf } from '../statistics.ts';
import type { SqliteConnection, SqlValue } from './database.ts';

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

/** A counter, or a change to a counter. */
interface Sums {
  runs: number;
  usage: UsageSums | undefined;
  readonly latencies: Map<number, number>;
}

/** The columns `runs`, `usage` and `latencies`. */
export interface SumsRow {
  runs: number;
  usage: Uint8Array | null;
  latencies: Uint8Array | null;
}

/** Decodes the column `usage` of a counter. */
export function usageIn(bytes: Uint8Array | null): UsageSums | undefined {
  return bytes === null ? undefined : new Float64Array(aligned(bytes, 8));
}

/** Decodes the column `latencies` of a counter: pairs of a latency bucket and a number of runs. */
export function latenciesIn(bytes: Uint8Array | null): Uint32Array | undefined {
  return bytes === null ? undefined : new Uint32Array(aligned(bytes, 4));
}

function aligned({ buffer, byteOffset, byteLength }: Uint8Array, size: number): ArrayBufferLike {
  const isWhole = byteOffset === 0 && buffer.byteLength === byteLength && byteLength % size === 0;
  return isWhole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength);
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
        add(counter.sums, sign, 1, usage, latencyBucket === undefined ? [] : [latencyBucket, 1]);
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
      add(sums, 1, row.runs, usageIn(row.usage), latenciesIn(row.latencies) ?? []);
    }
    if (sums.runs === 0) {
      this.#connection.run(`DELETE FROM counters WHERE ${KEY}`, ...key);
      return;
    }
    const usage = sums.usage?.some((value) => value !== 0) ? new Uint8Array(sums.usage.buffer) : null;
    const latencies =
      sums.latencies.size === 0 ? null : new Uint8Array(Uint32Array.from([...sums.latencies].flat()).buffer);
    this.#connection.run(REPLACE, ...key, sums.runs, usage, latencies);
  }
}

function add(sums: Sums, sign: 1 | -1, runs: number, usage: UsageSums | undefined, latencies: ArrayLike<number>): void {
  sums.runs += sign * runs;
  if (usage !== undefined) {
    sums.usage ??= usageSumsOf({});
    addUsage(sums.usage, usage, sign);
  }
  for (let at = 0; at < latencies.length; at += 2) {
    const [bucket = 0, count = 0] = [latencies[at], latencies[at + 1]];
    const sum = (sums.latencies.get(bucket) ?? 0) + sign * count;
    if (sum === 0) sums.latencies.delete(bucket);
    else sums.latencies.set(bucket, sum);
  }
}

const KEY = ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status']
  .map((column) => `${column} = ?`)
  .join(' AND ');
const SELECT = `SELECT runs, usage, latencies FROM counters WHERE ${KEY}`;
const REPLACE = 'INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)';
