import { grouped } from '../../domain/grouped.ts';
import { isProvisional, mayJoin } from '../../domain/identity.ts';
import type { AssembledRun } from '../../domain/trace/assemble.ts';
import { type ClickHouse, type InsertRow, type Sql, sql, uuids } from './connection.ts';
import { type GroupKey, groupKeyText, inGroups, type JoinedGroups, readRows } from './groups.ts';
import { type Message, mergedRun, type Place, RUN_TOMBSTONE, TOMBSTONE } from './messages.ts';
import { inKeys, readNames } from './places.ts';

/**
 * Values of `run_ids.is_trace` in rows that connect two groups, or a group and a run. `WAITS`: the first run of the row's
 * group names the run as its parent, and no trace. `PARENT`: the same, by the id of the group. `INTO`: the group with the
 * row's id is part of the trace of the row's group. `MEMBER`: the same, by the id of the other group.
 */
const [WAITS, PARENT, INTO, MEMBER] = [2, 3, 4, 5] as const;

/** A group that is part of the trace of another one. A new join has no time. */
interface Join extends GroupKey {
  readonly into: string;
  readonly day: string;
  readonly added_us?: number;
}

/** Returns rows for `run_ids` about the provisional groups among those of messages. */
export function waitingRows(places: ReadonlyMap<Message, Place>, addedUs: number): InsertRow[] {
  return [...places].flatMap(([{ tenant, id, fields }, { group_id, day }]) => {
    const { parent_run_id: parent, trace_id } = fields;
    if (id !== group_id || parent === undefined || trace_id !== undefined) return [];
    const row = { tenant, day, added_us: addedUs, is_named: 0 };
    return connectingRows(row, [WAITS, parent], [PARENT, group_id]);
  });
}

function connectingRows(row: InsertRow, a: readonly [kind: number, id: string], b: typeof a): InsertRow[] {
  const rowOf = ([is_trace, id]: typeof a, group_id: string) => ({ ...row, is_trace, id, group_id });
  return [rowOf(a, b[1]), rowOf(b, a[1])];
}

/** SQL for a condition that a column contains one of the groups, or another group of their traces. */
export function inTracesOf(column: string, tenant: Sql, groups: readonly string[]): Sql {
  const ids = uuids([...new Set(groups)]);
  return sql`(${sql(column)} IN (${ids}) OR ${sql(column)} IN (SELECT group_id FROM run_ids
    WHERE ${tenant} AND is_trace = ${MEMBER} AND toUInt128(id) IN (SELECT toUInt128(arrayJoin(${ids})))))`;
}

/** Joins the groups whose parents have arrived, and returns the traces of the given groups. */
export async function joinGroups(db: ClickHouse, nowUs: number, keys: readonly GroupKey[]): Promise<JoinedGroups[]> {
  if (keys.length === 0) return [];
  const [provisional, joins] = await Promise.all([provisionalGroups(db, keys), readJoins(db, keys)]);
  await readJoins(db, provisional, joins);
  const waiting = provisional.filter((key) => !joins.has(groupKeyText(key)));
  const added = await newJoins(db, waiting);
  const parents = added.map(({ tenant, into }) => ({ tenant, group_id: into }));
  await readJoins(db, parents, joins);
  for (const join of added) {
    // The parents of groups may form a circle. The join that would close it is left out.
    if (topOf(joins, join.tenant, join.into) !== join.group_id) joins.set(groupKeyText(join), join);
  }
  const rows = [...joins.values()].flatMap(({ tenant, group_id, into, day, added_us }) => {
    const top = topOf(joins, tenant, into);
    // Stored joins lead directly to the first group of the trace, so that one query finds all its groups.
    if (added_us !== undefined && top === into) return [];
    return connectingRows({ tenant, day, added_us: nowUs, is_named: 0 }, [INTO, group_id], [MEMBER, top]);
  });
  await db.insert('run_ids', rows);
  return tracesIn(joins, keys);
}

/** Returns the traces of groups without joining any. */
export async function joinedGroups(db: ClickHouse, keys: readonly GroupKey[]): Promise<JoinedGroups[]> {
  return tracesIn(await readJoins(db, keys), keys);
}

function tracesIn(joins: ReadonlyMap<string, Join>, keys: readonly GroupKey[]): JoinedGroups[] {
  const byTop = grouped(joins.values(), ({ tenant, into }) => tenant + topOf(joins, tenant, into));
  const traces = keys.map(({ tenant, group_id }): [string, JoinedGroups] => {
    const top = topOf(joins, tenant, group_id);
    const others = (byTop.get(tenant + top) ?? []).map((join) => join.group_id);
    return [tenant + top, { tenant, group_id: top, members: [top, ...others] }];
  });
  return [...new Map(traces).values()];
}

/** Returns the provisional groups among these, and those that wait for a run in these. */
async function provisionalGroups(db: ClickHouse, keys: readonly GroupKey[]): Promise<GroupKey[]> {
  return await db.rows(
    sql`SELECT DISTINCT tenant, if(is_trace = ${PARENT}, id, waiting.group_id) AS group_id FROM run_ids AS waiting
      WHERE is_trace = ${PARENT} AND ${inGroups(keys, 'id')} OR is_trace = ${WAITS} AND (tenant, toUInt128(id)) IN
        (SELECT tenant, toUInt128(id) FROM messages WHERE ${inGroups(keys)})`,
  );
}

/** Adds the joins of these groups, of those that they have joined, and of those that have joined them, by group. */
async function readJoins(db: ClickHouse, keys: readonly GroupKey[], joins = new Map<string, Join>()) {
  const known = new Set<string>();
  for (let asked = keys; asked.length > 0; ) {
    for (const key of asked) known.add(groupKeyText(key));
    const rows = await db.rows<Required<Join>>(
      sql`SELECT tenant, if(is_trace = ${INTO}, id, joins.group_id) AS group_id,
          if(is_trace = ${INTO}, joins.group_id, id) AS into, min(joins.day) AS day, min(joins.added_us) AS added_us
        FROM run_ids AS joins WHERE is_trace IN (${INTO}, ${MEMBER}) AND ${inGroups(asked, 'id')}
        GROUP BY tenant, group_id, into`,
    );
    for (const row of rows) {
      const { added_us = 0 } = joins.get(groupKeyText(row)) ?? {};
      if (row.added_us > added_us) joins.set(groupKeyText(row), row);
    }
    const found = rows.flatMap(({ tenant, group_id, into }) =>
      [group_id, into].map((id) => ({ tenant, group_id: id })),
    );
    asked = found.filter((key) => !known.has(groupKeyText(key)));
  }
  return joins;
}

function topOf(joins: ReadonlyMap<string, Join>, tenant: string, group: string): string {
  const path = new Set<string>();
  let top = group;
  while (!path.has(top)) {
    path.add(top);
    top = joins.get(tenant + top)?.into ?? top;
  }
  return top;
}

/** Returns the joins of provisional groups to the groups of their parents, if these have arrived and are not deleted. */
async function newJoins(db: ClickHouse, provisional: readonly GroupKey[]): Promise<Join[]> {
  const first = provisional.map((key) => ({ ...key, id: key.group_id }));
  const heads = await readRuns(db, first);
  const waiting = provisional.flatMap((key) => {
    const head = heads.get(groupKeyText(key));
    const parentId = head?.identity.parentId;
    return head === undefined || parentId === undefined ? [] : [{ ...key, head, parentId }];
  });
  const asked = waiting.flatMap(({ tenant, head, parentId }) => [head.id, parentId].map((id) => ({ tenant, id })));
  const names = new Map((await readNames(db, asked)).map((row) => [row.tenant + row.id + row.is_trace, row]));
  const found = waiting.flatMap((one) => {
    const { tenant, head, parentId } = one;
    const isNamed = names.get(`${tenant}${head.id}1`)?.is_named === 1;
    const { group_id: into, day } = names.get(`${tenant}${parentId}0`) ?? { group_id: head.id };
    if (day === undefined || into === head.id || !isProvisional(head, { id: head.id, isNamed })) return [];
    return [{ ...one, into, day }];
  });
  const above = found.map(({ tenant, into, parentId }) => ({ tenant, group_id: into, id: parentId }));
  const parents = await readRuns(db, above);
  return found.flatMap(({ tenant, group_id, head, parentId, into, day }) => {
    const projects = parents.get(tenant + parentId)?.projects;
    return projects !== undefined && mayJoin(head.fields, projects) ? [{ tenant, group_id, into, day }] : [];
  });
}

/** Returns runs by tenant and id. Omits deleted runs and those of deleted groups. */
async function readRuns(db: ClickHouse, runs: readonly (GroupKey & { readonly id: string })[]) {
  if (runs.length === 0) return new Map<string, AssembledRun>();
  const rows = await readRows(db, sql`${inGroups(runs)} AND (kind = ${TOMBSTONE} OR ${inKeys(runs)})`);
  const deleted = new Set(rows.filter(({ kind }) => kind === TOMBSTONE).map(groupKeyText));
  const deletedRuns = new Set(rows.filter(({ kind }) => kind === RUN_TOMBSTONE).map(({ tenant, id }) => tenant + id));
  const kept = rows
    .filter((row) => !deleted.has(groupKeyText(row)) && !deletedRuns.has(row.tenant + row.id))
    .sort((a, b) => a.received_us - b.received_us);
  const byRun = grouped(kept, ({ tenant, id }) => tenant + id);
  return new Map([...byRun].map(([key, own]) => [key, mergedRun(own[0]?.id ?? '', own).run]));
}
