import { type AssembledRun, AssembledTrace, Places } from '../../domain/assemble.ts';
import { grouped } from '../../domain/grouped.ts';
import type { PriceList } from '../../domain/prices.ts';
import { type ClickHouse, sql, string, uuids } from './connection.ts';
import { type LinkedGroups, readLinks } from './links.ts';
import { MESSAGE_COLUMNS, type MessageRow, runOf, TOMBSTONE } from './messages.ts';

/**
 * A tombstone deletes a run with all its descendants, including those that arrive later, or a trace. A tombstone of the
 * kind `run`, from an earlier build, deletes one run.
 */
export type TombstoneKind = 'run' | 'subtree' | 'trace';

/** The runs of linked groups, merged from all stored messages. */
export interface Group {
  /** The ids of the linked groups, sorted. */
  readonly grps: readonly string[];
  /** The runs that are not deleted, by id. */
  readonly runs: ReadonlyMap<string, AssembledRun>;
  readonly places: Places;
  readonly traces: readonly AssembledTrace[];
  /** Every start time found in a run's messages, by run id. Includes deleted runs. */
  readonly startsUs: ReadonlyMap<string, ReadonlySet<number>>;
  readonly version: bigint;
}

/** Reads groups together with their linked groups. Omits groups without messages. */
export async function readGroups(
  db: ClickHouse,
  tenant: string,
  grps: readonly string[],
  prices: PriceList,
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
function groupOf({ grps, linkedUs }: LinkedGroups, rows: readonly MessageRow[], prices: PriceList): Group {
  const messages = new Map<string, MessageRow[]>();
  const tombstones: Tombstones = { run: new Set(), subtree: new Set(), trace: new Set() };
  for (const row of rows) {
    const own = messages.get(row.id) ?? [];
    if (row.kind === TOMBSTONE) tombstones[JSON.parse(row.fields).kind as TombstoneKind].add(row.id);
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
  const traces = [...places.runsByTrace()].map(([id, members]) => new AssembledTrace(id, members, places, prices));
  return {
    grps: [...grps].sort(),
    runs,
    places,
    traces,
    startsUs,
    version: versionOf(rows, linkedUs),
  };
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
  if (tombstones.run.has(run.id) || tombstones.trace.has(places.traceIdOf(run))) return true;
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
