import type { Usage } from '../../domain/run-view.ts';
import { compactLatencies, type Latencies, latenciesOf } from '../../domain/statistics/latencies.ts';
import {
  addUsage as addSums,
  countedAs,
  countedOf,
  ROOT_KINDS,
  type RunKind,
  SUM_KEYS,
  type UsageSums,
  usageSumsOf,
} from '../../domain/statistics/statistics.ts';
import { RunFlag } from '../../domain/trace/trace-summary.ts';
import { type CountedKey, CountedKeys, countedValues } from './counted-keys.ts';
import type { SqliteConnection, SqlValue } from './file/database.ts';
import { ALL_FILLED } from './file/schema.ts';
import { countedUsageIn, plainColumns, type RootColumns, type RunRow } from './run-row.ts';

/** Counter periods, in minutes. Each period is a multiple of the previous one. */
export const PERIODS: readonly number[] = [1, 10, 60, 360];
/** Period of the counters of values, in minutes. */
export const VALUE_PERIOD = 60;

export const MINUTE_US = 60_000_000;

/** What the column `kind` of the counters contains in addition for further records of a call. */
export const REPEAT = 8;
/** The same for the internal steps of frameworks that are no roots. */
export const INTERNAL = 16;

/** Returns the column `kind` of the counters: 0 for runs that are no roots, else 1 + the index in `ROOT_KINDS`. */
function kindCode({ root }: RunKind, isRepeat: boolean, flags: number | null): number {
  const code = root === undefined ? 0 : 1 + ROOT_KINDS.indexOf(root);
  return code + (isRepeat ? REPEAT : 0) + (code === 0 && (flags ?? 0) & RunFlag.INTERNAL ? INTERNAL : 0);
}

/** Number of characters after which the latencies of a counter are compacted. Most counters stay far below it. */
const COMPACTED_LENGTH_MIN = 2_048;
/** Maximum number of counters for which the appended characters are known. */
const APPENDED_MAX = 10_000;

/** A table of counters. Its statements add to a counter, and delete or compact the counter. */
class CounterTable {
  readonly name: string;
  /** SQL expressions for the totals over several counters. */
  readonly totals: string;
  readonly add: string;
  readonly deleteEmpty: string;
  readonly latencies: string;
  readonly setLatencies: string;

  /** `sums` must begin with `runs`. */
  constructor(name: string, keys: readonly string[], sums: readonly string[], latencies: readonly string[]) {
    this.name = name;
    const columns = [...keys, ...sums, ...latencies];
    const key = keys.map((column) => `${column} = ?`).join(' AND ');
    this.totals = [
      ...sums.map((column) => `sum(${column}) AS ${column}`),
      ...latencies.map((column) => `group_concat(${column}, '') AS ${column}`),
    ].join(', ');
    this.add = `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT DO UPDATE SET ${sums.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')},
        ${latencies.map((column) => `${column} = ${column} || excluded.${column}`).join(', ')}`;
    this.deleteEmpty = `DELETE FROM ${name} WHERE ${key} AND runs = 0`;
    this.latencies = `SELECT ${latencies.join(', ')} FROM ${name} WHERE ${key}`;
    this.setLatencies = `UPDATE ${name} SET ${latencies.map((column) => `${column} = ?`).join(', ')} WHERE ${key}`;
  }
}

export const COUNTERS: CounterTable = new CounterTable(
  'counters',
  ['tenant', 'period', 'start', 'project', 'name', 'run_type', 'model', 'status', 'kind'],
  ['runs', ...SUM_KEYS],
  ['latencies'],
);
const ROOT_COUNTS = ['roots', 'root_errors', 'root_failed_below', 'root_incomplete'] as const;
export const VALUE_COUNTERS: CounterTable = new CounterTable(
  'value_counters',
  ['tenant', 'key', 'start', 'value', 'project'],
  ['runs', 'errors', 'pending', ...ROOT_COUNTS, 'model_calls', 'model_errors', ...SUM_KEYS],
  ['latencies', 'root_latencies', 'model_latencies'],
);

export type SumsRow = Record<'runs' | 'unpriced_calls', number> & Required<Usage> & { readonly latencies: Latencies };
export type ValueSumsRow = SumsRow & {
  readonly [Column in 'errors' | 'pending' | (typeof ROOT_COUNTS)[number] | 'model_calls' | 'model_errors']: number;
} & { readonly root_latencies: Latencies; readonly model_latencies: Latencies };

interface CounterChange {
  readonly id: string;
  readonly table: CounterTable;
  readonly key: readonly SqlValue[];
  readonly sums: number[];
  readonly latencies: Latencies[];
}

/** Collects the counter changes in a transaction and updates each changed counter once. */
export class Counters {
  readonly keys: CountedKeys;
  readonly #connection: SqliteConnection;
  /** Number of characters appended to the latencies of a counter since they were compacted. */
  readonly #appended = new Map<string, number>();
  readonly #changes: { readonly run: RunRow; readonly sign: 1 | -1 }[] = [];

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.keys = new CountedKeys(connection);
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
    this.keys.forget();
  }

  /** Makes a run the root of a trace, or no root. Does nothing if the run is not in the trace. */
  setRoot(n: number | null | undefined, trace: number, shown: RootColumns | undefined): void {
    const row = this.#connection.one<RunRow>('SELECT * FROM runs WHERE n = ? AND trace = ?', n ?? null, trace);
    if (row === undefined) return;
    const after = { ...row, ...(shown ?? plainColumns(row)) };
    this.#connection.update('runs', row.n, row, after);
    this.add(row, -1);
    this.add(after, 1);
  }

  /** Writes all pending changes. Call `flush` before committing the transaction. */
  flush(): void {
    const changes = new CounterChanges();
    for (const { before, after } of this.#netChanges()) {
      if (before !== undefined) changes.addRun(before, -1, this.keys.of(before.tenant));
      if (after !== undefined) changes.addRun(after, 1, this.keys.of(after.tenant));
    }
    this.drop(0);
    for (const change of changes.ofAllPeriods()) this.#write(change);
  }

  readonly fill = (key: CountedKey, runs: readonly RunRow[]): void => {
    const changes = new CounterChanges();
    const all = { ...key, filled: ALL_FILLED };
    for (const run of runs) if (run.start_us !== null) changes.addValues(run, 1, [all]);
    for (const change of changes.ofAllPeriods()) this.#write(change);
  };

  /** Returns the first and the last state of each run. A state is undefined if the run is not counted then. */
  #netChanges(): Iterable<{ before?: RunRow | undefined; after?: RunRow | undefined }> {
    const runs = new Map<number, { before?: RunRow; after?: RunRow | undefined }>();
    for (const { run, sign } of this.#changes) {
      const known = runs.get(run.n);
      if (known !== undefined) known.after = sign === 1 ? run : undefined;
      else runs.set(run.n, sign === 1 ? { after: run } : { before: run });
    }
    return runs.values();
  }

  #write({ id, table, key, sums, latencies }: CounterChange): void {
    // Reading the counter again takes less time in total than `RETURNING` in every statement.
    this.#connection.run(table.add, ...key, ...sums, ...latencies);
    if ((sums[0] ?? 0) <= 0) this.#connection.run(table.deleteEmpty, ...key);
    const appended = latencies.reduce((length, pairs) => length + pairs.length, this.#appended.get(id) ?? 0);
    if (this.#appended.size >= APPENDED_MAX) this.#appended.clear();
    this.#appended.set(id, appended > COMPACTED_LENGTH_MIN ? 0 : appended);
    if (appended <= COMPACTED_LENGTH_MIN) return;
    const stored = this.#connection.one<Record<string, Latencies>>(table.latencies, ...key) ?? {};
    const compact = Object.values(stored).map(compactLatencies);
    if (compact.length > 0) this.#connection.run(table.setLatencies, ...compact, ...key);
  }
}

class CounterChanges {
  readonly #changes = new Map<string, CounterChange>();

  /** Adds a run to the counters of its minute and of its values, or subtracts the run if `sign` is -1. */
  addRun(run: RunRow, sign: 1 | -1, keys: readonly CountedKey[]): void {
    const { tenant, project, name, run_type, model, status, flags, same_call } = run;
    const minute = Math.floor((run.start_us ?? 0) / MINUTE_US);
    const figures = figuresOf(run, sign);
    const code = kindCode(figures.kind, same_call !== null, flags);
    const key = [tenant, PERIODS[0] ?? 1, minute, project, name, run_type, model ?? '', status, code];
    this.#add(COUNTERS, key, [1, ...figures.usage], [figures.latency], sign);
    this.addValues(run, sign, keys, figures);
  }

  /** Adds a run to the counters of its values, or subtracts the run if `sign` is -1. */
  addValues(run: RunRow, sign: 1 | -1, keys: readonly CountedKey[], figures: Figures = figuresOf(run, sign)): void {
    const values = keys.flatMap((key) => countedValues(run, key).map((value) => [key.n, value] as const));
    if (values.length === 0) return;
    const { tenant, project } = run;
    const start = Math.floor((run.start_us ?? 0) / MINUTE_US / VALUE_PERIOD) * VALUE_PERIOD;
    const { kind, usage, latency } = figures;
    const { all, roots, modelCalls, pending } = countedOf(run.start_us ?? 0, 1, kind, usage, latency);
    const ofRoot = [roots?.runs, roots?.errors, roots?.failed_below, roots?.incomplete];
    const counts = [1, all.errors, pending, ...ofRoot, modelCalls?.runs, modelCalls?.errors].map((count = 0) => count);
    const latencies = [latency, roots?.latencies ?? '', modelCalls?.latencies ?? ''];
    for (const [n, value] of values)
      this.#add(VALUE_COUNTERS, [tenant, n, start, value, project], [...counts, ...usage], latencies, sign);
  }

  /** Adds the changes of each minute to the longer periods, and returns all changes. */
  ofAllPeriods(): Iterable<CounterChange> {
    for (const { table, key, sums, latencies } of [...this.#changes.values()]) {
      if (table !== COUNTERS) continue;
      const [tenant = null, , minute, ...dimensions] = key;
      for (const period of PERIODS.slice(1)) {
        const start = Math.floor(Number(minute) / period) * period;
        this.#add(table, [tenant, period, start, ...dimensions], sums, latencies, 1);
      }
    }
    return this.#changes.values();
  }

  #add(
    table: CounterTable,
    key: readonly SqlValue[],
    sums: readonly number[],
    latencies: readonly Latencies[],
    sign: 1 | -1,
  ): void {
    const id = `${table.name}\0${key.join('\0')}`;
    let change = this.#changes.get(id);
    if (change === undefined) {
      change = { id, table, key, sums: sums.map(() => 0), latencies: latencies.map(() => '') };
      this.#changes.set(id, change);
    }
    addSums(change.sums, sums, sign);
    for (let at = 0; at < latencies.length; at += 1) change.latencies[at] += latencies[at] ?? '';
  }
}

/** What a run adds to counters. */
interface Figures {
  readonly kind: RunKind;
  readonly usage: UsageSums;
  readonly latency: Latencies;
}

function figuresOf(run: RunRow, sign: 1 | -1): Figures {
  const { status, run_type, outcome, same_call, start_us, end_us } = run;
  const latencyUs = end_us === null ? undefined : Math.max(0, end_us - (start_us ?? 0));
  const kind = countedAs(status, run_type, outcome, same_call !== null);
  return { kind, usage: usageSumsOf(countedUsageIn(run)), latency: latenciesOf(latencyUs, sign) };
}
