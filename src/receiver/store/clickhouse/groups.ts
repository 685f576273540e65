import { type MemoryRun, MemoryTrace, Places } from '../memory-run.ts';
import type { Prices } from '../prices.ts';
import { type ClickHouse, sql, string, uuids } from './connection.ts';
import { MESSAGE_COLUMNS, type MessageRow, MOVED, runOf, TOMBSTONE } from './messages.ts';

/** What a tombstone deletes: a run, a run with later runs below it, or a trace. */
export type TombstoneKind = 'run' | 'subtree' | 'trace';

/** The runs of a group, merged from all stored messages. */
export interface Group {
  readonly grp: string;
  /** Runs that are not deleted, by id. */
  readonly runs: ReadonlyMap<string, MemoryRun>;
  readonly places: Places;
  readonly traces: readonly MemoryTrace[];
  /** Ids of runs that have messages or a tombstone, and are deleted. */
  readonly deleted: readonly string[];
  /** Start times in the messages of each run, including runs that are not visible. */
  readonly startsUs: ReadonlyMap<string, ReadonlySet<number>>;
  readonly version: bigint;
}

/** Reads groups. Groups without messages are omitted. */
export async function readGroups(
  db: ClickHouse,
  tenant: string,
  grps: readonly string[],
  prices: Prices,
): Promise<Group[]> {
  const rows = await db.rows<MessageRow>(
    sql(
      `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE tenant = ? AND grp IN (?) ORDER BY grp, id, received_us`,
      string(tenant),
      uuids(grps),
    ),
  );
  return [...grouped(rows, (row) => row.grp)].map(([grp, messages]) => groupOf(grp, messages, prices));
}

/** Groups items by key, in the order of their first items. */
export function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Returns a group without messages. */
export function emptyGroup(grp: string): Group {
  return groupOf(grp, [], {});
}

function groupOf(grp: string, rows: readonly MessageRow[], prices: Prices): Group {
  const messages = new Map<string, MessageRow[]>();
  const tombstones: Tombstones = { traces: new Set(), runs: new Map() };
  const left = new Map<string, readonly string[]>();
  for (const { id, kind, fields } of rows) if (kind === MOVED) left.set(id, JSON.parse(fields).left);
  for (const row of rows) {
    if (row.kind === MOVED || left.get(row.id)?.includes(row.digest)) continue;
    if (row.kind === TOMBSTONE) addTombstone(tombstones, row.id, JSON.parse(row.fields).kind);
    else messages.set(row.id, [...(messages.get(row.id) ?? []), row]);
  }
  const merged = [...messages].map(([id, own]) => runOf(id, own));
  const received = new Map(merged.map(({ run }) => [run.id, run]));
  const startsUs = new Map(merged.map(({ run, startsUs: own }) => [run.id, own]));
  const all = new Places(received);
  const deleted = new Set(
    [...received.values()].filter((run) => isDeleted(run, received, all, tombstones)).map(({ id }) => id),
  );
  const runs = new Map([...received].filter(([id]) => !deleted.has(id)));
  const places = new Places(runs);
  const traces = [...places.runsByTrace()].map(([id, members]) => new MemoryTrace(id, members, places, prices));
  return {
    grp,
    runs,
    places,
    traces,
    deleted: [...new Set([...deleted, ...tombstones.runs.keys()])],
    startsUs,
    version: versionOf(rows),
  };
}

/** A trace and its root run may have the same id. */
interface Tombstones {
  readonly traces: Set<string>;
  /** Maps the id of a deleted run to whether later runs below it are deleted as well. */
  readonly runs: Map<string, boolean>;
}

function addTombstone({ traces, runs }: Tombstones, id: string, kind: TombstoneKind): void {
  if (kind === 'trace') traces.add(id);
  else runs.set(id, runs.get(id) || kind === 'subtree');
}

/** Returns whether a run, its trace or a run above it was deleted. */
function isDeleted(
  run: MemoryRun,
  runs: ReadonlyMap<string, MemoryRun>,
  places: Places,
  { traces, runs: deleted }: Tombstones,
): boolean {
  if (traces.size === 0 && deleted.size === 0) return false;
  if (deleted.has(run.id) || traces.has(places.traceIdOf(run))) return true;
  const path = new Set<string>();
  for (let id = places.parentIdOf(run); id !== undefined && !path.has(id); ) {
    if (deleted.get(id)) return true;
    path.add(id);
    const above = runs.get(id);
    id = above && places.parentIdOf(above);
  }
  return false;
}

/** Number of messages that a version counts. */
const COUNT_MAX = 4_095;

/**
 * Returns the version of the rows that are derived from these messages. A later message, or a message that another
 * server has received at the same time, makes it higher.
 */
function versionOf(rows: readonly MessageRow[]): bigint {
  let latestUs = 0;
  for (const { received_us } of rows) latestUs = Math.max(latestUs, received_us);
  return versionAt(latestUs) + BigInt(Math.min(rows.length, COUNT_MAX));
}

/** Returns the lowest version of rows that are derived at a time. */
export function versionAt(us: number): bigint {
  return BigInt(us) * BigInt(COUNT_MAX + 1);
}
