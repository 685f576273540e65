import { parseExact } from '../../../payload/fields.ts';
import type { GroupKey } from '../../domain/query/query.ts';
import { metadataKeyOf } from '../../domain/query/query-keys.ts';
import { groupsInJson } from '../../domain/statistics/statistics.ts';
import type { SmallFields } from '../../domain/summary.ts';
import type { SqliteConnection } from './file/database.ts';
import { ALL_FILLED } from './file/schema.ts';
import type { RunRow } from './run-row.ts';

export interface CountedKey {
  readonly n: number;
  /** 0 for all tenants. */
  readonly tenant: number;
  readonly key: GroupKey;
  /** The counters contain the runs up to this one, or all runs if the value is `ALL_FILLED`. */
  readonly filled: number;
  readonly used_ms: number;
}

type Fill = (key: CountedKey, runs: readonly RunRow[]) => void;

/** Maximum number of keys per tenant, apart from users and tags. */
const KEYS_MAX = 16;
/** Time after which a key that no query has used is dropped, and the precision of that time, in milliseconds. */
const UNUSED_MS = 30 * 86_400_000;
const USED_MS = 86_400_000;
/** Number of runs to count, and of keys of runs to look through, between checks of the time limit. */
const STEP_RUNS = 100;
const STEP_KEYS = 20_000;

/**
 * The keys by whose values runs are counted: users and tags, and threads and metadata keys that queries group by. The runs
 * that are stored when a key is added are counted in the background.
 */
export class CountedKeys {
  readonly #connection: SqliteConnection;
  /** Cache by tenant. Cleared after each transaction, because another connection may write to the file. */
  readonly #keys = new Map<number, readonly CountedKey[]>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  of(tenant: number): readonly CountedKey[] {
    const keys = this.#keys.get(tenant) ?? this.#connection.all<CountedKey>(KEYS, tenant);
    this.#keys.set(tenant, keys);
    return keys;
  }

  forget(): void {
    this.#keys.clear();
  }

  use(tenant: number, key: GroupKey, nowMs: number): void {
    const keys = this.of(tenant);
    const known = keys.find((one) => one.key === key);
    if (known !== undefined) {
      if (nowMs - known.used_ms > USED_MS) this.#connection.run(USE, nowMs, known.n);
    } else if (keys.filter((one) => one.tenant === tenant).length < KEYS_MAX) {
      this.#connection.run(ADD, tenant, key, nowMs);
    }
    this.forget();
  }

  /** Begins to drop the keys that no query has used for a long time. */
  dropUnused(nowMs: number): void {
    this.#connection.run('UPDATE counted_keys SET key = NULL WHERE tenant > 0 AND used_ms < ?', nowMs - UNUSED_MS);
    this.forget();
  }

  /** Whether stored runs must be counted, or the counters of a dropped key deleted. */
  get isDue(): boolean {
    return this.#due !== undefined;
  }

  get #due(): (Omit<CountedKey, 'key'> & { readonly key: GroupKey | null }) | undefined {
    return this.#connection.one(`SELECT * FROM counted_keys WHERE key IS NULL OR filled < ${ALL_FILLED} LIMIT 1`);
  }

  /** Counts stored runs by `fill`, or deletes counters, for about `limitMs` milliseconds within the caller's transaction. */
  step(limitMs: number, fill: Fill): void {
    const untilMs = performance.now() + limitMs;
    do {
      const due = this.#due;
      if (due === undefined) break;
      const { key } = due;
      if (key === null) this.#deletePeriod(due);
      else this.#fill({ ...due, key }, fill);
    } while (performance.now() < untilMs);
    this.forget();
  }

  #fill(key: CountedKey, fill: Fill): void {
    const { n, tenant, filled } = key;
    const field = isLabel(key.key) ? METADATA : 'NULL';
    // The plus sign prevents SQLite from using indexes that begin with the tenant.
    const select = `SELECT runs.*, ${field} AS json FROM runs
      WHERE n > ? AND n <= ? AND +tenant = ? ORDER BY n LIMIT ${STEP_RUNS}`;
    const end = filled + STEP_KEYS;
    const rows = this.#connection.all<RunRow & { readonly json: string | null }>(select, filled, end, tenant);
    const last = rows.length < STEP_RUNS ? end : (rows.at(-1)?.n ?? end);
    const runs = rows.map(({ json, ...row }): RunRow => {
      if (!isLabel(key.key)) return row;
      const groups = json === null ? [] : groupsInJson(key.key, parseExact(json));
      // The run may have a label of a dropped key with the same number.
      const others = Object.entries(labelsIn(row)).filter(([of]) => Number(of) !== n);
      const labels = labelsJson(Object.fromEntries(groups.length === 0 ? others : [...others, [n, groups]]));
      this.#connection.update('runs', row.n, row, { labels });
      return { ...row, labels };
    });
    fill(key, runs);
    const isDone = last >= this.#connection.number('SELECT max(n) FROM runs');
    this.#connection.run('UPDATE counted_keys SET filled = ? WHERE n = ?', isDone ? ALL_FILLED : last, n);
  }

  /** Deletes the counters of the first period of a dropped key. The number of the key is free once none is left. */
  #deletePeriod({ n, tenant }: Pick<CountedKey, 'n' | 'tenant'>): void {
    const sql = 'SELECT min(start) AS start FROM value_counters WHERE tenant = ? AND key = ?';
    const { start = null } = this.#connection.one<{ start: number | null }>(sql, tenant, n) ?? {};
    if (start === null) this.#connection.run('DELETE FROM counted_keys WHERE n = ?', n);
    else
      this.#connection.run('DELETE FROM value_counters WHERE tenant = ? AND key = ? AND start = ?', tenant, n, start);
  }

  labels(tenant: number, { tags = [], extra }: SmallFields): string | null {
    const labels: Record<number, readonly string[]> = {};
    for (const { n, key } of this.of(tenant)) {
      const groups = isLabel(key) ? groupsInJson(key, key === 'tag' ? tags : extra?.metadata) : [];
      if (groups.length > 0) labels[n] = groups;
    }
    return labelsJson(labels);
  }
}

/** Returns the number of a key if all runs in a tenant are counted by its values. */
export function countedKeyIn(connection: SqliteConnection, tenant: number, key: GroupKey): number | undefined {
  const sql = `SELECT n FROM counted_keys WHERE tenant IN (0, ?) AND key = ? AND filled = ${ALL_FILLED}`;
  return connection.one<{ n: number }>(sql, tenant, key)?.n;
}

export function countedValues(run: RunRow, { n, key, filled }: CountedKey): readonly string[] {
  if (run.n > filled) return [];
  if (isLabel(key)) return labelsIn(run)[n] ?? [];
  const value = key === 'user' ? run.user : run.thread;
  return value === null ? [] : [value];
}

/** Whether the values of a key are in the column `labels`. Otherwise, they have their own column. */
export function isLabel(key: GroupKey): boolean {
  return key === 'tag' || metadataKeyOf(key) !== undefined;
}

/** Returns whether runs can be counted by the values of a key that a query groups by. */
export function isCountable(key: GroupKey | undefined): key is GroupKey {
  return key !== undefined && (key === 'thread' || metadataKeyOf(key) !== undefined);
}

/** SQL expression for the metadata of a run, as JSON. */
export const METADATA = "(SELECT fields -> '$.extra.metadata' FROM details WHERE details.n = runs.n)";

function labelsIn({ labels }: Pick<RunRow, 'labels'>): Readonly<Record<string, readonly string[]>> {
  return JSON.parse(labels ?? '{}');
}

function labelsJson(labels: object): string | null {
  const json = JSON.stringify(labels);
  return json === '{}' ? null : json;
}

const KEYS = 'SELECT * FROM counted_keys WHERE tenant IN (0, ?) AND key IS NOT NULL';
const ADD = 'INSERT INTO counted_keys (tenant, key, filled, used_ms) VALUES (?, ?, 0, ?)';
const USE = 'UPDATE counted_keys SET used_ms = ? WHERE n = ?';
