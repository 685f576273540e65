import { type AssembledRun, AssembledTrace, Places } from '../../domain/assemble.ts';
import { grouped } from '../../domain/grouped.ts';
import { inTurns } from '../../domain/in-turns.ts';
import type { PriceList } from '../../domain/prices.ts';
import { otelTraceIdOf } from '../../domain/removal.ts';
import { all } from '../../filter/sql.ts';
import { type ClickHouse, integer, QueryLimitError, type Sql, sql, strings, uuid, uuids } from './connection.ts';
import { MESSAGE_COLUMNS, type MergedRun, type MessageRow, PATCH, runOf, TOMBSTONE } from './messages.ts';
import { KEYS } from './places.ts';
import { RELATED_RUNS } from './schema.ts';

/** A tombstone has the id of a trace or an OpenTelemetry trace, or of a run without a `trace_id`. */
export type TombstoneKind = 'run' | 'trace';

/** SQL for the id of a message's OpenTelemetry trace, or null if it has none. */
export const OTEL_TRACE_ID = "toUUIDOrNull(JSONExtractString(searched, 'extra', 'metadata', 'otel', 'trace_id'))";

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
  /** Whether only the first run of the trace was read. */
  readonly isPart?: boolean;
}

/** Maximum number of messages that are read at once. Larger groups are read in slices of whole runs. */
const READ_MESSAGES = 20_000;
/** Maximum number of messages of linked groups. Larger groups are not read. */
export const GROUP_MESSAGES_MAX = 200_000;

/** Linked groups that contain messages. They are read together. */
export interface LinkedGroups {
  readonly keys: readonly GroupKey[];
  /** Number of their messages. */
  readonly messages: number;
  /** Time of the latest message, in microseconds. */
  readonly seenUs: number;
}

/**
 * Yields groups together with their linked groups, in steps that have at most 20,000 messages together, or consist of
 * larger linked groups alone. Omits groups without messages.
 */
export async function* stepsOf(db: ClickHouse, keys: readonly GroupKey[]): AsyncGenerator<LinkedGroups[]> {
  const sizes = await sizesOf(db, keys);
  const done = new Set<string>();
  for (const part of cut([...sizes.values()])) {
    const left = part.filter((key) => !done.has(keyOf(key)));
    for (const step of cut(await linkedGroups(db, left, sizes))) {
      for (const key of step.flatMap((linked) => linked.keys)) done.add(keyOf(key));
      yield step;
    }
  }
}

/** Divides a list into parts with at most 20,000 messages, or one item. */
function cut<Item extends { readonly messages: number }>(items: readonly Item[]): Item[][] {
  const parts: Item[][] = [];
  let messages = Number.POSITIVE_INFINITY;
  for (const item of items) {
    messages += item.messages;
    if (messages <= READ_MESSAGES) parts.at(-1)?.push(item);
    else {
      parts.push([item]);
      messages = item.messages;
    }
  }
  return parts;
}

async function linkedGroups(db: ClickHouse, keys: readonly Size[], sizes: Map<string, Size>): Promise<LinkedGroups[]> {
  const linked = await linksOf(
    db,
    keys.filter(({ messages }) => messages <= GROUP_MESSAGES_MAX),
  );
  for (const key of keys) if (!linked.has(keyOf(key))) linked.set(keyOf(key), new Set([key]));
  const sets = [...new Set(linked.values())].map((members) => [...members]);
  const others = sets.flat().filter((key) => !sizes.has(keyOf(key)));
  for (const [name, size] of await sizesOf(db, others)) sizes.set(name, size);
  return sets.map((members) => {
    const stored = members.flatMap((key) => sizes.get(keyOf(key)) ?? []);
    const messages = stored.reduce((sum, size) => sum + size.messages, 0);
    return { keys: stored, messages, seenUs: Math.max(...stored.map(({ seenUs }) => seenUs)) };
  });
}

/** Reads the groups of a step. Rejects with a QueryLimitError if they have too many messages. */
export async function* readGroups(
  db: ClickHouse,
  step: readonly LinkedGroups[],
  prices: PriceList,
): AsyncGenerator<Group> {
  const [first] = step;
  if (first === undefined) return;
  if (first.messages > GROUP_MESSAGES_MAX) throw new QueryLimitError();
  if (first.messages > READ_MESSAGES) {
    yield await groupOf(first, slicesOf(db, first), prices);
    return;
  }
  const linkedOf = new Map(step.flatMap((linked) => linked.keys.map((key) => [keyOf(key), linked] as const)));
  const rows = await readRows(
    db,
    inGroups(
      IN_GROUPS,
      step.flatMap(({ keys }) => keys),
    ),
  );
  const byGroup = grouped(rows, (row) => linkedOf.get(keyOf(row)) ?? first);
  for await (const [linked, own] of inTurns(byGroup, 1)) {
    byGroup.delete(linked);
    yield await groupOf(linked, [own], prices);
  }
}

/**
 * Reads only the run that has the id of its group, or arrived first, in each of some groups that have too many messages. A
 * text in `error` says so.
 */
export async function readFirstRuns(db: ClickHouse, linked: LinkedGroups, prices: PriceList): Promise<Group> {
  const rows = await db.rows<GroupRow>(
    sql(
      `SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE ${IN_GROUPS} AND (id = group_id OR (group_id, id) IN (
          SELECT group_id, argMin(id, received_us) FROM messages WHERE ${IN_GROUPS} AND kind < ${TOMBSTONE}
          GROUP BY group_id HAVING countIf(id = group_id) = 0))
        ORDER BY received_us DESC LIMIT ${FIRST_MESSAGES_MAX} BY group_id, id, kind`,
      ...[0, 1].flatMap(() => inGroups('', linked.keys).params),
    ),
  );
  const ids = new Set(rows.filter(({ kind }) => kind < TOMBSTONE).map(({ id }) => id));
  const marks = [...ids].flatMap((id): GroupRow[] => {
    const row = rows.find((one) => one.id === id);
    return row === undefined ? [] : [{ ...row, ...MARK, received_us: linked.seenUs }];
  });
  const group = await groupOf(linked, [[...rows, ...marks]], prices);
  return { ...group, version: versionOf(linked.seenUs, linked.messages), isPart: true };
}

/** Maximum number of posts, and of patches, that are read of the run that stands for a group. */
const FIRST_MESSAGES_MAX = 1_000;
const MARK: Pick<MessageRow, 'kind' | 'fields' | 'searched' | 'facts'> = {
  kind: PATCH,
  fields: '{}',
  facts: '{}',
  searched: JSON.stringify({
    error: `Incomplete: the trace has more than ${GROUP_MESSAGES_MAX.toLocaleString('en')} messages, so only this run is updated, and the totals are its own`,
  }),
};

type GroupRow = MessageRow & GroupKey;

/** A condition for the messages of some groups. */
const IN_GROUPS = `(tenant, toUInt128(group_id)) IN ${KEYS}`;

async function readRows(db: ClickHouse, { sql: where, params }: Sql): Promise<GroupRow[]> {
  return await db.rows<GroupRow>({ sql: `SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE ${where}`, params });
}

/** Reads the messages of linked groups. Each slice contains all messages of its runs. */
async function* slicesOf(db: ClickHouse, { keys, seenUs }: LinkedGroups): AsyncGenerator<GroupRow[]> {
  // Messages that arrive in the meantime belong to the next derivation.
  const stored = all([inGroups(IN_GROUPS, keys), sql('received_us <= ?', integer(seenUs))]);
  const ends = await db.rows<{ id: string }>({
    sql: `SELECT DISTINCT id FROM (
        SELECT id, row_number() OVER (ORDER BY toUInt128(id)) AS position FROM messages WHERE ${stored.sql})
      WHERE position % ${READ_MESSAGES} = 0 ORDER BY toUInt128(id)`,
    params: stored.params,
  });
  for (let at = 0; at <= ends.length; at += 1) {
    const [after, until] = [ends[at - 1], ends[at]];
    const range = [
      ...(after === undefined ? [] : [sql('toUInt128(id) > toUInt128(?)', uuid(after.id))]),
      ...(until === undefined ? [] : [sql('toUInt128(id) <= toUInt128(?)', uuid(until.id))]),
    ];
    yield await readRows(db, all([stored, ...range]));
  }
}

/** Returns the number and the time of the messages of groups that contain any, by key. */
async function sizesOf(db: ClickHouse, keys: readonly GroupKey[]): Promise<Map<string, Size>> {
  if (keys.length === 0) return new Map();
  const rows = await db.rows<Size>(
    inGroups(
      `SELECT tenant, group_id, count() AS messages, max(received_us) AS seenUs FROM messages WHERE ${IN_GROUPS}
        GROUP BY tenant, group_id`,
      keys,
    ),
  );
  return new Map(rows.map((size) => [keyOf(size), size]));
}

type Size = GroupKey & Pick<LinkedGroups, 'messages' | 'seenUs'>;

/**
 * Returns the groups that are linked to each group, including itself, by key. A run may be in several groups if its trace
 * was unknown when one of its messages, or of its children's, arrived.
 */
async function linksOf(db: ClickHouse, keys: readonly GroupKey[]): Promise<Map<string, Set<GroupKey>>> {
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
    SELECT tenant, toUInt128(arrayJoin(${RELATED_RUNS})) FROM messages WHERE kind < ${TOMBSTONE} AND ${IN_GROUPS})
  GROUP BY tenant, id HAVING length(group_ids) > 1)`;

/** Adds the parameters of `KEYS` to a query. */
function inGroups(text: string, keys: Iterable<GroupKey>): Sql {
  const given = [...keys];
  return sql(text, strings(given.map(({ tenant }) => tenant)), uuids(given.map(({ group_id }) => group_id)));
}

export function keyOf({ tenant, group_id }: GroupKey): string {
  return tenant + group_id;
}

function byArrival(a: MessageRow, b: MessageRow): number {
  return a.received_us - b.received_us;
}

/** Builds a group from its messages. A slice contains all messages of its runs. */
async function groupOf(
  { keys }: LinkedGroups,
  slices: AsyncIterable<GroupRow[]> | Iterable<GroupRow[]>,
  prices: PriceList,
): Promise<Group> {
  const tombstones: Tombstones = { run: new Set(), trace: new Set() };
  const found: [id: string, run: MergedRun][] = [];
  let [messages, seenUs] = [0, 0];
  for await (const rows of slices) {
    messages += rows.length;
    for await (const [id, own] of inTurns(grouped(rows.sort(byArrival), (row) => row.id))) {
      for (const row of own) {
        if (row.kind === TOMBSTONE) tombstones[JSON.parse(row.fields).kind as TombstoneKind].add(id);
        seenUs = Math.max(seenUs, row.received_us);
      }
      const sent = own.filter(({ kind }) => kind !== TOMBSTONE);
      if (sent.length > 0) found.push([id, runOf(id, sent)]);
    }
  }
  const merged = new Map(found.sort(([, a], [, b]) => a.run.n - b.run.n));
  const received = new Map([...merged].map(([id, { run }]) => [id, run]));
  const places = new Places(received);
  const runs = new Map([...received].filter(([, run]) => !isDeleted(run, received, places, tombstones)));
  const left = new Places(runs);
  const traces = [...left.runsByTrace()].map(([id, members]) => new AssembledTrace(id, members, left, prices));
  const [{ tenant = '' } = {}] = keys;
  const group_ids = keys.map(({ group_id }) => group_id).sort();
  return { tenant, group_ids, runs, places: left, traces, merged, seenUs, version: versionOf(seenUs, messages) };
}

/** Ids of deleted runs and traces by kind, because a trace and its root run may have the same id. */
type Tombstones = Readonly<Record<TombstoneKind, Set<string>>>;

/** Returns true if the trace of a run was deleted. */
function isDeleted(
  run: AssembledRun,
  runs: ReadonlyMap<string, AssembledRun>,
  places: Places,
  tombstones: Tombstones,
): boolean {
  if (tombstones.trace.has(places.traceIdOf(run))) return true;
  const path = new Set<string>();
  for (let id: string | undefined = run.id; id !== undefined && !path.has(id); ) {
    if (tombstones.run.has(id)) return true;
    path.add(id);
    const above = runs.get(id);
    if (above === undefined || above.fields.trace_id !== undefined) return false;
    if (tombstones.trace.has(otelTraceIdOf(above.fields) ?? '')) return true;
    id = places.parentIdOf(above);
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
