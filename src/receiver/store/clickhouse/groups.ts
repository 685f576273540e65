import { type AssembledRun, AssembledTrace, Places } from '../../domain/assemble.ts';
import { grouped } from '../../domain/grouped.ts';
import type { PriceList } from '../../domain/prices.ts';
import { type ClickHouse, type Sql, sql, strings, uuids } from './connection.ts';
import { MESSAGE_COLUMNS, type MergedRun, type MessageRow, runOf, TOMBSTONE } from './messages.ts';
import { KEYS } from './places.ts';
import { RELATED_RUNS } from './schema.ts';

/** A tombstone deletes a run with all its descendants, including those that arrive later, or a trace. */
export type TombstoneKind = 'subtree' | 'trace';

/** The messages that are stored under one id. */
export interface GroupKey {
  readonly tenant: string;
  readonly group_id: string;
}

/** The runs of linked groups, merged from all stored messages. Groups of the same run are linked. */
export interface Group {
  readonly tenant: string;
  /** The ids of the linked groups, sorted. */
  readonly group_ids: readonly string[];
  /** The runs that are not deleted, by id. */
  readonly runs: ReadonlyMap<string, AssembledRun>;
  readonly places: Places;
  readonly traces: readonly AssembledTrace[];
  /** All runs by id, including deleted runs. */
  readonly merged: ReadonlyMap<string, MergedRun>;
  /** Time of the latest message, in microseconds. */
  readonly seenUs: number;
  readonly version: bigint;
}

/** Reads groups together with their linked groups. Omits groups without messages. */
export async function readGroups(db: ClickHouse, keys: readonly GroupKey[], prices: PriceList): Promise<Group[]> {
  if (keys.length === 0) return [];
  const linked = await linkedGroups(db, keys);
  const rows = await db.rows<MessageRow & GroupKey>(
    inGroups(
      `SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE (tenant, toUInt128(group_id)) IN ${KEYS}`,
      new Set([...linked.values()].flatMap((members) => [...members])),
    ),
  );
  const byGroup = grouped(rows.sort(byArrival), (row) => linked.get(keyOf(row)));
  return [...byGroup.values()].map((messages) => groupOf(messages, prices));
}

/**
 * Returns the groups that are linked to each group, including itself, by key. A run may be in several groups if its trace
 * was unknown when one of its messages, or of its children's, arrived.
 */
async function linkedGroups(db: ClickHouse, keys: readonly GroupKey[]): Promise<Map<string, Set<GroupKey>>> {
  const linked = new Map<string, Set<GroupKey>>();
  const pairs: GroupKey[][] = [];
  let next = new Map(keys.map((key) => [keyOf(key), key]));
  while (next.size > 0) {
    for (const [name, key] of next) linked.set(name, new Set([key]));
    const rows = await db.rows<{ tenant: string; group_ids: readonly string[] }>(
      inGroups(GROUPS_OF_RUNS, next.values()),
    );
    pairs.push(...rows.map(({ tenant, group_ids }) => group_ids.map((group_id): GroupKey => ({ tenant, group_id }))));
    next = new Map(pairs.flat().flatMap((key) => (linked.has(keyOf(key)) ? [] : [[keyOf(key), key] as const])));
  }
  for (const members of pairs) {
    const [first, ...others] = new Set(members.map((key) => linked.get(keyOf(key))));
    for (const member of others.flatMap((other) => [...(other ?? [])])) {
      first?.add(member);
      if (first !== undefined) linked.set(keyOf(member), first);
    }
  }
  return linked;
}

/** Selects the groups of each run that is in several groups, among the runs in some groups. */
const GROUPS_OF_RUNS = `SELECT DISTINCT tenant, group_ids FROM (
  SELECT tenant, arraySort(groupUniqArray(group_id)) AS group_ids FROM run_ids WHERE (tenant, toUInt128(id)) IN (
    SELECT tenant, toUInt128(arrayJoin(${RELATED_RUNS})) FROM messages WHERE kind < ${TOMBSTONE} AND (tenant, toUInt128(group_id)) IN ${KEYS})
  GROUP BY tenant, id HAVING length(group_ids) > 1)`;

/** Adds the parameters of `KEYS` to a query. */
function inGroups(text: string, keys: Iterable<GroupKey>): Sql {
  const all = [...keys];
  return sql(text, strings(all.map(({ tenant }) => tenant)), uuids(all.map(({ group_id }) => group_id)));
}

export function keyOf({ tenant, group_id }: GroupKey): string {
  return tenant + group_id;
}

function byArrival(a: MessageRow, b: MessageRow): number {
  return a.received_us - b.received_us;
}

/** Builds a group from its messages. The rows must be sorted by arrival. */
function groupOf(rows: readonly (MessageRow & GroupKey)[], prices: PriceList): Group {
  const tombstones: Tombstones = { subtree: new Set(), trace: new Set() };
  for (const row of rows) {
    if (row.kind === TOMBSTONE) tombstones[JSON.parse(row.fields).kind as TombstoneKind].add(row.id);
  }
  const messages = grouped(
    rows.filter(({ kind }) => kind !== TOMBSTONE),
    ({ id }) => id,
  );
  const merged = new Map([...messages].map(([id, own]) => [id, runOf(id, own)]));
  const received = new Map([...merged].map(([id, { run }]) => [id, run]));
  const all = new Places(received);
  const runs = new Map([...received].filter(([, run]) => !isDeleted(run, received, all, tombstones)));
  const places = new Places(runs);
  const traces = [...places.runsByTrace()].map(([id, members]) => new AssembledTrace(id, members, places, prices));
  const [{ tenant = '' } = {}] = rows;
  const group_ids = [...new Set(rows.map(({ group_id }) => group_id))].sort();
  const seenUs = rows.at(-1)?.received_us ?? 0;
  return { tenant, group_ids, runs, places, traces, merged, seenUs, version: versionOf(seenUs, rows.length) };
}

/** Ids of deleted runs and traces by kind, because a trace and its root run may have the same id. */
type Tombstones = Readonly<Record<TombstoneKind, Set<string>>>;

/** Returns true if the run, its trace or a run above it was deleted. */
function isDeleted(
  run: AssembledRun,
  runs: ReadonlyMap<string, AssembledRun>,
  places: Places,
  tombstones: Tombstones,
): boolean {
  if (tombstones.trace.has(places.traceIdOf(run))) return true;
  if (tombstones.subtree.size === 0) return false;
  const path = new Set<string>();
  for (let id: string | undefined = run.id; id !== undefined && !path.has(id); ) {
    if (tombstones.subtree.has(id)) return true;
    path.add(id);
    const above = runs.get(id);
    id = above && places.parentIdOf(above);
  }
  return false;
}

const MESSAGES_MAX = 2 ** 22;

/** SQL for a version that is later than those of all rows until a time in microseconds. */
export function versionAfter(us: string): string {
  return `toUInt64(intDiv(${us}, 1000) + 1) * ${MESSAGES_MAX}`;
}

/**
 * Returns the version of the rows that are derived from a number of messages: the time of the latest message in
 * milliseconds × `MESSAGES_MAX` + the number. Because of the number, the version also grows if the clock of the receiver
 * that added a message is slow.
 */
function versionOf(seenUs: number, messages: number): bigint {
  return BigInt(Math.floor(seenUs / 1_000)) * BigInt(MESSAGES_MAX) + BigInt(Math.min(messages, MESSAGES_MAX - 1));
}
