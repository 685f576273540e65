import { type MemoryRun, MemoryTrace, Places } from '../../domain/assemble.ts';
import { grouped } from '../../domain/grouped.ts';
import type { Prices } from '../../domain/prices.ts';
import { type ClickHouse, sql, string, uuids } from './connection.ts';
import { type LinkedGroups, readLinks } from './links.ts';
import { MESSAGE_COLUMNS, type MessageRow, runOf, TOMBSTONE } from './messages.ts';

/** A tombstone deletes one run, a run with all its descendants (including those that arrive later), or a trace. */
export type TombstoneKind = 'run' | 'subtree' | 'trace';

/** The runs of linked groups, merged from all stored messages. */
export interface Group {
  /** The ids of the linked groups, sorted. */
  readonly grps: readonly string[];
  /** The runs that are not deleted, by id. */
  readonly runs: ReadonlyMap<string, MemoryRun>;
  readonly places: Places;
  readonly traces: readonly MemoryTrace[];
  /** Every start time found in a run's messages, by run id. Includes deleted runs. */
  readonly startsUs: ReadonlyMap<string, ReadonlySet<number>>;
  readonly version: bigint;
}

/** Reads groups together with their linked groups. Omits groups without messages. */
export async function readGroups(
  db: ClickHouse,
  tenant: string,
  grps: readonly string[],
  prices: Prices,
): Promise<Group[]> {
  if (grps.length === 0) return [];
  const linked = await readLinks(db, tenant, grps);
  const rows = await db.rows<MessageRow>(
    sql(
      `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE tenant = ? AND grp IN (?)`,
      string(tenant),
      uuids([...linked.keys()]),
    ),
  );
  return [...grouped(rows, ({ grp }) => linked.get(grp))].flatMap(([groups, messages]) =>
    groups === undefined ? [] : [groupOf(groups, messages.sort(byArrival), prices)],
  );
}

function byArrival(a: MessageRow, b: MessageRow): number {
  return a.received_us - b.received_us;
}

/** Builds a group from its messages. The rows must be sorted by arrival. */
function groupOf({ grps, linkedUs }: LinkedGroups, rows: readonly MessageRow[], prices: Prices): Group {
  const messages = new Map<string, MessageRow[]>();
  const tombstones: Tombstones = { traces: new Set(), runs: new Map() };
  for (const row of rows) {
    const own = messages.get(row.id) ?? [];
    if (row.kind === TOMBSTONE) addTombstone(tombstones, row.id, JSON.parse(row.fields).kind);
    // A message can be stored twice: in two linked groups, or in two rows that ClickHouse has not merged yet.
    else if (!own.some(({ kind, digest }) => kind === row.kind && digest === row.digest)) {
      messages.set(row.id, [...own, row]);
    }
  }
  const merged = [...messages].map(([id, own]) => runOf(id, own));
  const received = new Map(merged.map(({ run }) => [run.id, run]));
  const startsUs = new Map(merged.map(({ run, startsUs: own }) => [run.id, own]));
  const all = new Places(received);
  const runs = new Map([...received].filter(([, run]) => !isDeleted(run, received, all, tombstones)));
  const places = new Places(runs);
  const traces = [...places.runsByTrace()].map(([id, members]) => new MemoryTrace(id, members, places, prices));
  return {
    grps: [...grps].sort(),
    runs,
    places,
    traces,
    startsUs,
    version: versionOf(rows, linkedUs),
  };
}

/** Deleted traces and deleted runs. They are kept apart because a trace and its root run may have the same id. */
interface Tombstones {
  readonly traces: Set<string>;
  /**
   * Keyed by run id. The value is true if all descendants of the run are deleted too, including those that arrive
   * later.
   */
  readonly runs: Map<string, boolean>;
}

function addTombstone({ traces, runs }: Tombstones, id: string, kind: TombstoneKind): void {
  if (kind === 'trace') traces.add(id);
  else runs.set(id, runs.get(id) || kind === 'subtree');
}

/** Returns true if the run, its trace or a run above it was deleted. */
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

/** Factor in a row's version, which is time in microseconds × factor + number of messages. */
export const VERSIONS_PER_US = 4_096;
/** SQL that extracts the time of the latest message or link from a row's version, in microseconds. */
export const VERSION_US: string = `intDiv(version, ${VERSIONS_PER_US})`;

/**
 * Returns the version of the rows that are derived from these messages. It contains the time of the latest message or
 * link, and the number of messages. Because of the number, the version also grows if the clock of the receiver that
 * added a message is slow.
 */
function versionOf(rows: readonly MessageRow[], linkedUs: number): bigint {
  let latestUs = linkedUs;
  for (const { received_us } of rows) latestUs = Math.max(latestUs, received_us);
  return BigInt(latestUs) * BigInt(VERSIONS_PER_US) + BigInt(Math.min(rows.length, VERSIONS_PER_US - 1));
}
