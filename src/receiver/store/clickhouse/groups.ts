import { END_REASON } from '../../../run/record.ts';
import type { PriceList } from '../../domain/cost/prices.ts';
import { grouped } from '../../domain/grouped.ts';
import { PATCH } from '../../domain/identity.ts';
import { inTurns } from '../../domain/in-turns.ts';
import { AssembledTrace } from '../../domain/trace/assemble.ts';
import { all } from '../../filter/sql.ts';
import { type ClickHouse, integer, type Param, QueryLimitError, type Sql, sql, uuidParam } from './connection.ts';
import { type GroupRun, MESSAGE_COLUMNS, type MessageRow, mergedRun, RUN_TOMBSTONE, TOMBSTONE } from './messages.ts';
import { inKeys } from './places.ts';

/** Messages of a trace, usually all of them. */
export interface GroupKey {
  readonly tenant: string;
  readonly group_id: string;
}

/** All groups of a trace, see joins.ts. The key is that of the first one. */
export interface JoinedGroups extends GroupKey {
  readonly members: readonly string[];
}

/** The runs of a trace, merged from all stored messages. */
export interface Group extends JoinedGroups {
  /** The trace. Has no runs if it is deleted. */
  readonly trace: AssembledTrace;
  /** All runs by id, including deleted runs. */
  readonly merged: ReadonlyMap<string, GroupRun>;
  readonly seenUs: number;
  readonly version: bigint;
  /** Whether only the first run of the trace was read. */
  readonly isPart?: boolean;
}

/** Maximum number of messages that are read at once. Larger groups are read in slices of whole runs. */
const READ_MESSAGES = 20_000;
/** Maximum number of messages of a group. Larger groups are not read. */
export const GROUP_MESSAGES_MAX = 200_000;

export interface StoredGroup extends JoinedGroups {
  readonly messages: number;
  readonly seenUs: number;
}

/** Returns steps of at most 20,000 messages, or of one larger trace. Omits traces without messages. */
export async function stepsOf(db: ClickHouse, traces: readonly JoinedGroups[]): Promise<StoredGroup[][]> {
  if (traces.length === 0) return [];
  const rows = await db.rows<GroupKey & Pick<StoredGroup, 'messages' | 'seenUs'>>(
    sql`SELECT tenant, group_id, count() AS messages, max(received_us) AS seenUs FROM messages
      WHERE ${inGroups(traces.flatMap(keysOf))} GROUP BY tenant, group_id`,
  );
  const stored = new Map(rows.map((row) => [groupKeyText(row), row]));
  const found = traces.flatMap((trace) => {
    const own = keysOf(trace).flatMap((key) => stored.get(groupKeyText(key)) ?? []);
    const messages = own.reduce((sum, row) => sum + row.messages, 0);
    return messages === 0 ? [] : [{ ...trace, messages, seenUs: Math.max(...own.map(({ seenUs }) => seenUs)) }];
  });
  return cut(found);
}

export function keysOf({ tenant, members }: JoinedGroups): GroupKey[] {
  return members.map((group_id) => ({ tenant, group_id }));
}

function cut(groups: readonly StoredGroup[]): StoredGroup[][] {
  const steps: StoredGroup[][] = [];
  let messages = Number.POSITIVE_INFINITY;
  for (const group of groups) {
    messages += group.messages;
    if (messages <= READ_MESSAGES) steps.at(-1)?.push(group);
    else {
      steps.push([group]);
      messages = group.messages;
    }
  }
  return steps;
}

/** Reads the groups of a step. Rejects with a QueryLimitError if they have too many messages. */
export async function* readGroups(
  db: ClickHouse,
  step: readonly StoredGroup[],
  prices: PriceList,
): AsyncGenerator<Group> {
  const [first] = step;
  if (first === undefined) return;
  if (first.messages > GROUP_MESSAGES_MAX) throw new QueryLimitError();
  if (first.messages > READ_MESSAGES) {
    yield await groupOf(first, slicesOf(db, first), prices);
    return;
  }
  const groups = new Map(step.flatMap((group) => keysOf(group).map((key) => [groupKeyText(key), group])));
  const rows = await readRows(db, inGroups(step.flatMap(keysOf)));
  const byGroup = grouped(rows, (row) => groups.get(groupKeyText(row)) ?? first);
  for await (const [group, own] of inTurns(byGroup)) {
    byGroup.delete(group);
    yield await groupOf(group, [own], prices);
  }
}

/** Of a group with too many messages, reads the run with its id, or the first one. A text in `error` says so. */
export async function readFirstRun(db: ClickHouse, stored: StoredGroup, prices: PriceList): Promise<Group> {
  const inGroup = inGroups([stored]);
  const rows = await db.rows<GroupRow>(
    sql`SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE ${inGroup} AND (id = group_id OR (group_id, id) IN (
        SELECT group_id, argMin(id, received_us) FROM messages WHERE ${inGroup} AND kind < ${TOMBSTONE}
        GROUP BY group_id HAVING countIf(id = group_id) = 0))
      ORDER BY received_us DESC LIMIT ${FIRST_MESSAGES_MAX} BY group_id, id, kind`,
  );
  const first = rows.find(({ kind }) => kind < TOMBSTONE);
  const mark = first === undefined ? [] : [{ ...first, ...MARK, received_us: stored.seenUs }];
  const group = await groupOf(stored, [[...rows, ...mark]], prices);
  return { ...group, version: versionOf(stored.seenUs, stored.messages), isPart: true };
}

/** Maximum number of posts, and of patches, that are read of the run that stands for a group. */
const FIRST_MESSAGES_MAX = 1_000;
const MARK: Pick<MessageRow, 'kind' | 'fields' | 'searched' | 'facts'> = {
  kind: PATCH,
  fields: '{}',
  facts: '{}',
  searched: JSON.stringify({
    error: `Incomplete: the trace has more than ${GROUP_MESSAGES_MAX.toLocaleString('en')} messages, so only this run is updated, and the totals are its own`,
    extra: { [END_REASON]: 'incomplete' },
  }),
};

type GroupRow = MessageRow & GroupKey;

export function inGroups(keys: readonly GroupKey[], column: 'group_id' | 'id' = 'group_id'): Sql {
  const ids = keys.map(({ tenant, group_id: id }) => ({ tenant, id }));
  return inKeys(ids, column);
}

export async function readRows(db: ClickHouse, where: Sql): Promise<GroupRow[]> {
  return await db.rows<GroupRow>(sql`SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE ${where}`);
}

/** Reads the messages of a group. Each slice contains all messages of its runs. */
async function* slicesOf(db: ClickHouse, group: StoredGroup): AsyncGenerator<GroupRow[]> {
  // Messages that arrive in the meantime belong to the next derivation.
  const stored = sql`${inGroups(keysOf(group))} AND received_us <= ${integer(group.seenUs)}`;
  const ends = await db.rows<{ id: string }>(
    sql`SELECT DISTINCT id FROM (
        SELECT id, row_number() OVER (ORDER BY toUInt128(id)) AS position FROM messages WHERE ${stored})
      WHERE position % ${READ_MESSAGES} = 0 ORDER BY toUInt128(id)`,
  );
  for (let at = 0; at <= ends.length; at += 1) {
    const [after, until] = [ends[at - 1], ends[at]];
    const range = [
      ...(after === undefined ? [] : [sql`toUInt128(id) > toUInt128(${uuidParam(after.id)})`]),
      ...(until === undefined ? [] : [sql`toUInt128(id) <= toUInt128(${uuidParam(until.id)})`]),
    ];
    yield await readRows(db, all([stored, ...range]));
  }
}

export function groupKeyText({ tenant, group_id }: GroupKey): string {
  return tenant + group_id;
}

/** Builds a group from its messages. A slice contains all messages of its runs. */
async function groupOf(
  { tenant, group_id, members }: JoinedGroups,
  slices: AsyncIterable<GroupRow[]> | Iterable<GroupRow[]>,
  prices: PriceList,
): Promise<Group> {
  const found: [id: string, run: GroupRun][] = [];
  const deleted = new Set<string>();
  const deletedRuns = new Set<string>();
  let [messages, seenUs] = [0, 0];
  for await (const rows of slices) {
    messages += rows.length;
    rows.sort((a, b) => a.received_us - b.received_us);
    for await (const [id, own] of inTurns(grouped(rows, (row) => row.id))) {
      for (const row of own) {
        if (row.kind === TOMBSTONE) deleted.add(row.group_id);
        if (row.kind === RUN_TOMBSTONE) deletedRuns.add(id);
        seenUs = Math.max(seenUs, row.received_us);
      }
      const sent = own.filter(({ kind }) => kind < TOMBSTONE);
      if (sent.length > 0) found.push([id, mergedRun(id, sent)]);
    }
  }
  const merged = new Map(found.sort(([, a], [, b]) => a.run.n - b.run.n));
  const kept = [...merged.values()].filter(
    (one) => !deleted.has(group_id) && !deleted.has(one.group_id) && !deletedRuns.has(one.run.id),
  );
  const received = kept.map(({ run }) => run);
  // The name of a group that has joined this one is another name of the trace.
  const named = received.find(({ id, fields }) => fields.trace_id && merged.get(id)?.group_id === group_id);
  const known = { id: named?.fields.trace_id ?? group_id, isNamed: named !== undefined };
  const trace = new AssembledTrace(known, received, prices);
  return { tenant, group_id, members, trace, merged, seenUs, version: versionOf(seenUs, messages) };
}

const MESSAGES_MAX = 2 ** 22;

/** SQL for a version that is later than those of all rows until a time in microseconds. */
export function versionAfter(us: Param): Sql {
  return sql`toUInt64(intDiv(${us}, 1000) + 1) * ${MESSAGES_MAX}`;
}

/**
 * Returns the version of the rows that are derived from a number of messages: the time of the latest message in
 * milliseconds × `MESSAGES_MAX` + the number. Because of the number, the version also grows if the clock of the receiver
 * that added a message is slow.
 */
function versionOf(seenUs: number, messages: number): bigint {
  return BigInt(Math.floor(seenUs / 1_000)) * BigInt(MESSAGES_MAX) + BigInt(Math.min(messages, MESSAGES_MAX - 1));
}
