import type { AssembledRun, AssembledTrace } from '../../domain/assemble.ts';
import { comparable } from '../../domain/comparable.ts';
import type { PriceList } from '../../domain/prices.ts';
import type { Scope } from '../../domain/query.ts';
import type { Removal, RemovalJob, RemovalTarget, Selection } from '../../domain/removal.ts';
import { all } from '../../filter/sql.ts';
import { JOB_AGE_MS, type RemovalOptions } from '../store.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { PROJECTS } from './changes.ts';
import type { StoreClock } from './clock.ts';
import { insideOf } from './conditions.ts';
import { type ClickHouse, type InsertRow, inParts, integer, type Sql, sql, string, uuid } from './connection.ts';
import { type GroupKey, readGroups, type StoredGroup, stepsOf, type TombstoneKind, versionAfter } from './groups.ts';
import { dayOfMs, TOMBSTONE } from './messages.ts';
import { groupsOf } from './reads.ts';

/** Number of group ids per query. */
const PAGE_GROUPS = 50_000;
/** Number of groups per removal step. */
const READ_GROUPS = 300;

/** Functions of the store that a removal uses. */
interface RemovalSteps extends RemovalOptions {
  readonly clock: StoreClock;
  /** Derives the rows of groups now. */
  readonly derive: (groups: readonly GroupKey[]) => Promise<void>;
  /** Called with the traces from which runs were removed. */
  readonly onRemoved: (tenant: string, traces: readonly ChangedTrace[]) => Promise<void>;
}

/** See `RemovalStore.removable`. */
export async function readRemovable(
  db: ClickHouse,
  scope: Scope,
  target: RemovalTarget,
  prices: PriceList,
  remove?: (selections: readonly TraceSelection[]) => Promise<void>,
  { signal, onProgress, removeLarge }: RemovalOptions & { removeLarge?: (trace: LargeTrace) => Promise<void> } = {},
): Promise<Removal> {
  let [runs, traces] = [0, 0];
  const count = (removed: Removal): void => {
    [runs, traces] = [runs + removed.runs, traces + removed.traces];
    onProgress?.({ runs, traces });
  };
  for await (const found of groupsOfTarget(db, scope, target)) {
    const keys = found.map((group_id): GroupKey => ({ tenant: scope.tenant, group_id }));
    const tooLarge: string[] = [];
    // The runs below a run can be found only in the whole group.
    const skip = target.kind === 'run' ? undefined : ({ group_id }: StoredGroup) => void tooLarge.push(group_id);
    const select = async (part: readonly StoredGroup[]): Promise<TraceSelection[]> => {
      const selections: TraceSelection[] = [];
      for await (const { group_id, trace } of readGroups(db, part, prices)) {
        const selected = trace.selected(scope, target);
        if (selected.runs.length > 0) selections.push({ ...selected, group_id, trace });
      }
      return selections;
    };
    for (const step of await stepsOf(db, keys)) {
      for await (const selections of inParts(step, select, skip)) {
        await remove?.(selections);
        const selected = selections.reduce((sum, selection) => sum + selection.runs.length, 0);
        count({ runs: selected, traces: selections.length });
        if (signal?.aborted) return { runs, traces };
      }
    }
    for (const group_id of tooLarge) {
      const large = await largeTrace(db, scope, target, group_id);
      if (large === undefined) continue;
      await removeLarge?.(large);
      count({ runs: large.runs, traces: 1 });
      if (signal?.aborted) return { runs, traces };
    }
  }
  return { runs, traces };
}

/** See `RemovalStore.remove`. Each step makes its runs invisible. `expire` deletes their messages later. */
export async function removeRuns(
  db: ClickHouse,
  scope: Scope,
  target: RemovalTarget,
  prices: PriceList,
  { clock, derive, onRemoved, ...options }: RemovalSteps,
): Promise<Removal> {
  const { tenant } = scope;
  const day = dayOfMs(clock.nowMs());
  const remove = async (selections: readonly TraceSelection[]): Promise<void> => {
    const tombstones = selections.flatMap((selection) => tombstonesOf(tenant, day, selection, clock.nowUs()));
    await db.insert('messages', tombstones);
    await derive(selections.map(({ group_id }): GroupKey => ({ tenant, group_id })));
    await onRemoved(
      tenant,
      selections.map(({ trace }) => trace),
    );
  };
  const removeLarge = async (large: LargeTrace): Promise<void> => {
    await removeLargeTrace(db, tenant, large, day, clock.nowUs());
    await onRemoved(tenant, [{ id: large.trace, projects: large.projects }]);
  };
  return await readRemovable(db, scope, target, prices, remove, { ...options, removeLarge });
}

/** A trace whose messages are too many to be read. */
interface LargeTrace {
  readonly trace: string;
  readonly group_id: string;
  readonly projects: readonly string[];
  /** Number of its runs in lists. */
  readonly runs: number;
}

/** Returns the trace of a group as lists show it, if it matches the target within the scope. */
async function largeTrace(
  db: ClickHouse,
  { tenant, project }: Scope,
  { kind, id }: RemovalTarget,
  group_id: string,
): Promise<LargeTrace | undefined> {
  const anyRun = ({ sql: condition, params }: Sql): Sql => sql(`max(${condition}) = 1`, ...params);
  const rootIn = (name: string): Sql =>
    anyRun(all([sql('is_root = 1'), insideOf(tenant, { projects: [comparable(name)] })]));
  const ofTarget = (): Sql => {
    if (kind === 'trace') return sql('trace = ?', uuid(id));
    return kind === 'project' ? rootIn(id) : anyRun(sql(`${kind} = ?`, string(comparable(id))));
  };
  const { sql: having, params } = all([ofTarget(), ...(project === undefined ? [] : [rootIn(project)])]);
  const [row] = await db.rows<LargeTrace>({
    sql: `SELECT trace, group_id, ${PROJECTS} AS projects, count() AS runs FROM runs FINAL
      WHERE tenant = ? AND group_id = ? GROUP BY trace, group_id HAVING ${having}`,
    params: [string(tenant), uuid(group_id), ...params],
  });
  return row;
}

/** Removes a trace without reading its messages: ClickHouse adds the tombstones of its runs, and hides their rows. */
async function removeLargeTrace(
  db: ClickHouse,
  tenant: string,
  { trace, group_id }: LargeTrace,
  day: string,
  receivedUs: number,
): Promise<void> {
  await db.insert('messages', [tombstones(tenant, day, receivedUs)(group_id, trace, 'trace')]);
  await db.command(
    sql(
      `INSERT INTO messages (tenant, day, group_id, id, kind, received_us, fields)
        SELECT DISTINCT tenant, toDate(?), group_id, id, ${TOMBSTONE}, ?, ? FROM messages
        WHERE tenant = ? AND group_id = ? AND kind != ${TOMBSTONE}`,
      string(day),
      integer(receivedUs),
      string(JSON.stringify({ kind: 'subtree' satisfies TombstoneKind })),
      string(tenant),
      uuid(group_id),
    ),
  );
  await db.command(
    sql(
      `INSERT INTO runs SELECT * REPLACE (1 AS is_deleted, ${versionAfter('?')} AS version)
        FROM runs FINAL WHERE tenant = ? AND trace = ?`,
      integer(receivedUs),
      string(tenant),
      uuid(trace),
    ),
  );
}

/** See `JobStore.putJob`. */
export async function putJob(db: ClickHouse, job: RemovalJob, nowMs: number): Promise<void> {
  const row = { id: job.id, is_ended: +(job.state !== 'running'), stored_ms: nowMs, json: JSON.stringify(job) };
  await db.insert('jobs', [row]);
}

/** See `JobStore.jobs`. */
export async function readJobs(db: ClickHouse, nowMs: number): Promise<RemovalJob[]> {
  const where = `is_ended = 0 OR stored_ms > ${nowMs - JOB_AGE_MS}`;
  const rows = await db.rows<{ json: string }>(sql(`SELECT json FROM jobs FINAL WHERE ${where}`));
  return rows.map(({ json }) => JSON.parse(json));
}

/** The removed runs of a trace. */
interface TraceSelection extends Selection<AssembledRun> {
  readonly group_id: string;
  readonly trace: AssembledTrace;
}

/** Yields the ids of groups that contain runs of the target. */
async function* groupsOfTarget(
  db: ClickHouse,
  { tenant }: Scope,
  { kind, id }: RemovalTarget,
): AsyncGenerator<string[]> {
  if (kind === 'trace' || kind === 'run') {
    yield await groupsOf(db, tenant, kind, id);
    return;
  }
  const projects = kind === 'project' ? [comparable(id)] : [];
  const ofTarget = kind === 'project' ? sql('is_root = 1') : sql(`${kind} = ?`, string(comparable(id)));
  const condition = all([insideOf(tenant, { projects }), ofTarget]);
  let page: readonly string[] = [];
  do {
    page = await pageOfGroups(db, condition, page.at(-1));
    for (let at = 0; at < page.length; at += READ_GROUPS) yield page.slice(at, at + READ_GROUPS);
  } while (page.length === PAGE_GROUPS);
}

async function pageOfGroups(db: ClickHouse, condition: Sql, after: string | undefined): Promise<string[]> {
  const { sql: where, params } = all([condition, ...(after === undefined ? [] : [sql('group_id > ?', uuid(after))])]);
  const rows = await db.rows<{ group_id: string }>({
    sql: `SELECT DISTINCT group_id FROM runs FINAL WHERE ${where} ORDER BY group_id LIMIT ${PAGE_GROUPS}`,
    params,
  });
  return rows.map(({ group_id }) => group_id);
}

function tombstonesOf(
  tenant: string,
  day: string,
  { group_id, trace, runs, isTrace }: TraceSelection,
  receivedUs: number,
): InsertRow[] {
  const tombstone = tombstones(tenant, day, receivedUs);
  return [
    ...runs.map((run) => tombstone(group_id, run.id, 'subtree')),
    ...(isTrace ? [tombstone(group_id, trace.id, 'trace')] : []),
  ];
}

/** Returns a function that creates tombstones. */
function tombstones(tenant: string, day: string, receivedUs: number) {
  return (group_id: string, id: string, kind: TombstoneKind): InsertRow => ({
    tenant,
    day,
    group_id,
    id,
    kind: TOMBSTONE,
    received_us: receivedUs,
    fields: JSON.stringify({ kind }),
  });
}

/**
 * Deletes the messages, attachments and feedback of runs that were removed on or after the given day, including data
 * that arrived after the removal. Keeps the tombstones. ClickHouse deletes in the background and continues after a
 * restart.
 */
export async function deleteRemoved(db: ClickHouse, sinceDay: string): Promise<void> {
  const removed = `FROM messages
    WHERE day >= toDate(?) AND kind = ${TOMBSTONE} AND JSONExtractString(fields, 'kind') != 'trace'`;
  const params = [string(sinceDay)];
  const found = await db.rows({ sql: `SELECT 1 ${removed} LIMIT 1`, params });
  if (found.length === 0) return;
  const deletions: readonly (readonly [table: string, columns: string, runs: string])[] = [
    // The sort key of the table, so that ClickHouse does not read all messages.
    [
      'messages',
      'tenant, toUInt128(group_id), toUInt128(id)',
      `kind != ${TOMBSTONE} AND (tenant, toUInt128(group_id), toUInt128(id))`,
    ],
    ['runs', 'tenant, group_id, id', 'is_deleted = 0 AND (tenant, group_id, id)'],
    ['attachments', 'tenant, id', '(tenant, run)'],
    ['feedback', 'tenant, id', '(tenant, run)'],
  ];
  for (const [table, columns, runs] of deletions) {
    await deleteWhere(db, table, { sql: `${runs} IN (SELECT ${columns} ${removed})`, params });
  }
}

/**
 * Deletes the rows that match a condition, which may contain a subquery. By default, ClickHouse deletes them in the
 * background. With `now`, the promise resolves once they are deleted.
 */
export async function deleteWhere(
  db: ClickHouse,
  table: string,
  { sql: where, params }: Sql,
  deletion: 'later' | 'now' = 'later',
): Promise<void> {
  // A deletion rewrites every part of the table, even if no row matches.
  const found = await db.rows({ sql: `SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`, params });
  if (found.length === 0) return;
  const settings = `lightweight_deletes_sync = ${deletion === 'now' ? 1 : 0}, allow_nondeterministic_mutations = 1`;
  await db.command({ sql: `DELETE FROM ${table} WHERE ${where} SETTINGS ${settings}`, params });
}
