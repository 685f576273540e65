import type { PriceList } from '../../domain/cost/prices.ts';
import { grouped } from '../../domain/grouped.ts';
import { PATCH } from '../../domain/identity.ts';
import { inTurns } from '../../domain/in-turns.ts';
import { AssembledTrace } from '../../domain/trace/assemble.ts';
import { all } from '../../filter/sql.ts';
import { type ClickHouse, integer, type Param, QueryLimitError, type Sql, sql, uuidParam } from './connection.ts';
import { type GroupRun, MESSAGE_COLUMNS, type MessageRow, mergedRun, TOMBSTONE } from './messages.ts';
import { keysIn } from './places.ts';

/** The messages of a trace. */
export interface GroupKey {
  readonly tenant: string;
  readonly group_id: string;
}

/** The runs of a trace, merged from all stored messages. */
export interface Group extends GroupKey {
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

export interface StoredGroup extends GroupKey {
  readonly messages: number;
  readonly seenUs: number;
}

/** Returns steps of at most 20,000 messages, or of one larger group. Omits groups without messages. */
export async function stepsOf(db: ClickHouse, keys: readonly GroupKey[]): Promise<StoredGroup[][]> {
  if (keys.length === 0) return [];
  const found = await db.rows<StoredGroup>(
    sql`SELECT tenant, group_id, count() AS messages, max(received_us) AS seenUs FROM messages
      WHERE ${inGroups(keys)} GROUP BY tenant, group_id`,
  );
  return cut(found);
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
  const groups = new Map(step.map((group) => [groupKeyText(group), group]));
  const byGroup = grouped(await readRows(db, inGroups(step)), groupKeyText);
  for await (const [key, own] of inTurns(byGroup)) {
    byGroup.delete(key);
    yield await groupOf(groups.get(key) ?? first, [own], prices);
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
  }),
};

type GroupRow = MessageRow & GroupKey;

export function inGroups(keys: readonly GroupKey[]): Sql {
  const [tenants, ids] = [keys.map(({ tenant }) => tenant), keys.map(({ group_id }) => group_id)];
  return sql`(tenant, toUInt128(group_id)) IN ${keysIn(tenants, ids)}`;
}

async function readRows(db: ClickHouse, where: Sql): Promise<GroupRow[]> {
  return await db.rows<GroupRow>(sql`SELECT tenant, ${MESSAGE_COLUMNS} FROM messages WHERE ${where}`);
}

/** Reads the messages of a group. Each slice contains all messages of its runs. */
async function* slicesOf(db: ClickHouse, group: StoredGroup): AsyncGenerator<GroupRow[]> {
  // Messages that arrive in the meantime belong to the next derivation.
  const stored = sql`${inGroups([group])} AND received_us <= ${integer(group.seenUs)}`;
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
  { tenant, group_id }: GroupKey,
  slices: AsyncIterable<GroupRow[]> | Iterable<GroupRow[]>,
  prices: PriceList,
): Promise<Group> {
  const found: [id: string, run: GroupRun][] = [];
  let [messages, seenUs, isDeleted] = [0, 0, false];
  for await (const rows of slices) {
    messages += rows.length;
    rows.sort((a, b) => a.received_us - b.received_us);
    for await (const [id, own] of inTurns(grouped(rows, (row) => row.id))) {
      for (const row of own) {
        isDeleted ||= row.kind === TOMBSTONE;
        seenUs = Math.max(seenUs, row.received_us);
      }
      const sent = own.filter(({ kind }) => kind !== TOMBSTONE);
      if (sent.length > 0) found.push([id, mergedRun(id, sent)]);
    }
  }
  const merged = new Map(found.sort(([, a], [, b]) => a.run.n - b.run.n));
  const received = [...merged.values()].map(({ run }) => run);
  const id = received.find(({ fields }) => fields.trace_id !== undefined)?.fields.trace_id ?? group_id;
  const trace = new AssembledTrace(id, isDeleted ? [] : received, prices);
  return { tenant, group_id, trace, merged, seenUs, version: versionOf(seenUs, messages) };
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
