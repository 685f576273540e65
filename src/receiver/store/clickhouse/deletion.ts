import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { grouped } from '../../domain/grouped.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import { DELETIONS_MS, type Deletion, Deletions, OPEN_DELETIONS_MAX } from '../../domain/retention/deletion.ts';
import { SharedLimit } from '../../domain/shared-limit.ts';
import { all } from '../../filter/sql.ts';
import { StoreError } from '../store.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { type ClickHouseChanges, PROJECTS } from './changes.ts';
import type { StoreClock } from './clock.ts';
import { type ClickHouse, integer, type Sql, sql, string, uuids } from './connection.ts';
import { type Group, type GroupKey, inGroups, versionAfter } from './groups.ts';
import { joinGroups } from './joins.ts';
import { dayOfMs, TOMBSTONE } from './messages.ts';
import { insideOf, ofMeantTraces } from './reads/conditions.ts';
import { OTHERS_US } from './sweep.ts';

const STEP_TRACES = 10_000;
/** Interval at which the deletions of other receivers are read, in milliseconds. */
const READ_MS = 2_000;
/** Allowance for slow inserts, in milliseconds. */
const OVERLAP_MS = 60_000;

interface StoredDeletion extends Deletion {
  readonly id: string;
}

interface DeletedTrace extends ChangedTrace {
  readonly group_ids: readonly string[];
}

/**
 * The deletions in a database. A deletion is open until its stored traces are deleted. Its receiver deletes them at once,
 * and each receiver again 10 s later, because another receiver may have derived some before it knew of the deletion.
 */
export class ClickHouseDeletions {
  readonly #db: ClickHouse;
  readonly #clock: StoreClock;
  readonly #changes: ClickHouseChanges;
  readonly #known = new Deletions();
  readonly #open = new Map<string, StoredDeletion>();
  readonly #finishing = new Set<string>();
  readonly #limit = new SharedLimit(OPEN_DELETIONS_MAX);
  readonly #storing = new Set<StoredDeletion>();
  #readMs = 0;
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(db: ClickHouse, clock: StoreClock, changes: ClickHouseChanges) {
    this.#db = db;
    this.#clock = clock;
    this.#changes = changes;
  }

  /** Stores a deletion, and begins to delete its traces. The returned function waits for them. */
  async add(deletion: Deletion): Promise<() => Promise<void>> {
    await this.refresh();
    this.#limit.count([...this.#open.values(), ...this.#storing].map(({ tenant }) => tenant));
    if (!this.#limit.admits(deletion.tenant, 1)) {
      throw new StoreError('busy', `${this.#limit.total} deletions are not finished`, OTHERS_US / 1_000_000);
    }
    const stored = { ...deletion, id: randomUUID() };
    this.#storing.add(stored);
    await this.#put(stored, false).finally(() => this.#storing.delete(stored));
    this.#remember(stored, true);
    const work = this.#inTurn(() => this.#deleteTraces(stored));
    return () => work;
  }

  /** Reads the deletions of other receivers, if they were not read recently, and continues the open ones. */
  async refresh(isForced = false): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (!isForced && nowMs - this.#readMs < READ_MS) return;
    const sinceMs = Math.max(this.#readMs - OVERLAP_MS, nowMs - DELETIONS_MS);
    const rows = await this.#db.rows<{ json: string; is_open: number }>(
      sql`SELECT json, is_open FROM deletions FINAL WHERE is_open = 1 OR at_ms > ${integer(sinceMs)} ORDER BY at_ms`,
    );
    this.#readMs = nowMs;
    for (const { json, is_open } of rows) this.#remember(JSON.parse(json), is_open === 1);
    for (const deletion of this.#open.values()) {
      if (nowMs - deletion.atMs < OTHERS_US / 1_000 || this.#finishing.has(deletion.id)) continue;
      this.#finishing.add(deletion.id);
      void this.#inTurn(() => this.#finish(deletion)).then(() => this.#finishing.delete(deletion.id));
    }
  }

  /** Returns whether a deletion covers the trace of a group and has not deleted it. */
  covers({ tenant, trace }: Group): boolean {
    return !this.#known.isEmpty && trace.members.length > 0 && this.#known.covers(tenant, trace);
  }

  get nowUs(): number {
    return this.#clock.nowUs();
  }

  async delete(groups: readonly Group[], deletedUs: number): Promise<void> {
    for (const [tenant, own] of grouped(groups, (group) => group.tenant)) {
      const traces = own.map(({ members, trace: { shownId, projects } }) => {
        return { id: shownId, projects, group_ids: members };
      });
      await this.#delete(tenant, traces, deletedUs);
    }
  }

  async settle(): Promise<void> {
    await this.refresh(true);
    await this.#work;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#work;
  }

  #remember(deletion: StoredDeletion, isOpen: boolean): void {
    this.#known.add(deletion);
    if (isOpen) this.#open.set(deletion.id, deletion);
    else this.#open.delete(deletion.id);
  }

  /** Deletions run one after another. A failure is repeated by a later call of `refresh`. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(work).catch((error: unknown) => {
      if (!this.#isClosed)
        diagnostics.warn(`the store in ClickHouse could not delete traces and retries: ${messageOf(error)}`);
    });
    return this.#work;
  }

  async #put({ atMs, id, ...deletion }: StoredDeletion, isDone: boolean): Promise<void> {
    const row = { id, at_ms: atMs, is_open: +!isDone, json: JSON.stringify({ ...deletion, atMs, id }) };
    await this.#db.insert('deletions', [row]);
  }

  async #finish(deletion: StoredDeletion): Promise<void> {
    await this.#deleteTraces(deletion);
    if (!this.#isClosed) await this.#put(deletion, true);
  }

  async #deleteTraces(deletion: Deletion): Promise<void> {
    while (!this.#isClosed) {
      const traces = await this.#db.rows<DeletedTrace>(sql`${coveredTraces(deletion, DELETED)} LIMIT ${STEP_TRACES}`);
      if (traces.length === 0) return;
      await this.#delete(deletion.tenant, traces, this.nowUs);
    }
  }

  /** Inserts tombstones. The names of a group find it when messages arrive later. Then hides the rows of the traces. */
  async #delete(tenant: string, traces: readonly DeletedTrace[], receivedUs: number): Promise<void> {
    const [day, kind] = [dayOfMs(receivedUs / 1_000), TOMBSTONE];
    const found = traces.flatMap(({ group_ids }) => group_ids.map((group_id) => ({ tenant, group_id })));
    const wanted = new Set(found.map(({ group_id }) => group_id));
    // Of a trace that these groups have joined since they were found, only these are deleted.
    const groups = (await joinGroups(this.#db, receivedUs, found)).flatMap(({ group_id, members }) =>
      wanted.has(group_id) ? members : members.filter((member) => wanted.has(member)),
    );
    await this.#db.insert(
      'messages',
      groups.map((group_id) => ({ tenant, day, group_id, id: group_id, kind, received_us: receivedUs, fields: '{}' })),
    );
    const [seenUs, ids] = [integer(receivedUs), uuids(traces.map(({ id }) => id))];
    await this.#db.command(
      sql`INSERT INTO runs
        SELECT * REPLACE (1 AS is_deleted, ${seenUs} AS seen_us, greatest(version + 1, ${versionAfter(seenUs)}) AS version)
        FROM runs FINAL WHERE tenant = ${string(tenant)} AND trace IN (${ids})`,
    );
    await this.#changes.add(tenant, traces);
  }
}

/** See `DeletionStore.removable`. Counts the runs that lists show. */
export async function readRemovable(db: ClickHouse, deletion: Deletion): Promise<RunCounts> {
  const select = sql`SELECT count() AS traces, sum(runs) AS runs FROM (${coveredTraces(deletion, sql('count() AS runs'))})`;
  const [found] = await db.rows<RunCounts>(select);
  return { runs: Number(found?.runs ?? 0), traces: Number(found?.traces ?? 0) };
}

const DELETED = sql`trace AS id, groupUniqArray(group_id) AS group_ids, ${PROJECTS} AS projects`;

/** Selects columns of the traces that a deletion covers, as lists show them. */
function coveredTraces({ tenant, project, target: { kind, id }, atMs }: Deletion, columns: Sql): Sql {
  const ofTenant = insideOf(tenant, { projects: [] });
  const ofTarget = (): Sql[] => {
    if (kind === 'trace') return [ofMeantTraces(tenant, [id])];
    // Reading the project of every run takes less time than finding the many traces of a project, and then their runs.
    if (kind === 'project') return [];
    return [sql`trace IN (SELECT trace FROM runs FINAL WHERE ${ofTenant} AND ${sql(kind)} = ${string(id)})`];
  };
  const rootsIn = [project, kind === 'project' ? id : undefined].filter((name) => name !== undefined);
  const covered = all([
    ...(kind === 'trace' ? [] : [sql`min(start_us) < ${integer(atMs * 1_000)}`]),
    ...rootsIn.map((name) => sql`max(is_root = 1 AND ${insideOf(tenant, { projects: [name] })}) = 1`),
  ]);
  return sql`SELECT ${columns} FROM runs AS stored FINAL
    WHERE ${all([ofTenant, ...ofTarget()])} GROUP BY trace HAVING ${covered}`;
}

/**
 * Deletes the messages, attachments, feedback and rows of deleted traces, also of those that arrived later. Keeps the
 * tombstones.
 */
export async function deleteRemoved(db: ClickHouse, sinceDay: string, beforeUs: number): Promise<void> {
  const removed = sql`kind < ${TOMBSTONE} AND received_us < ${integer(beforeUs)} AND (tenant, toUInt128(group_id)) IN
    (SELECT tenant, toUInt128(group_id) FROM messages WHERE kind = ${TOMBSTONE} AND day >= toDate(${string(sinceDay)}))`;
  const days = await db.rows<{ day: string }>(sql`SELECT DISTINCT day FROM messages WHERE ${removed}`);
  for (const { day } of days) {
    const ofDay = sql`day = toDate(${string(day)}) AND ${removed}`;
    for (let hasMore = true; hasMore; ) {
      const groups = await db.rows<GroupKey>(
        sql`SELECT DISTINCT tenant, group_id FROM messages WHERE ${ofDay} LIMIT ${STEP_TRACES}`,
      );
      hasMore = groups.length === STEP_TRACES;
      if (groups.length > 0) await deleteGroups(db, day, beforeUs, groups);
    }
  }
}

async function deleteGroups(db: ClickHouse, day: string, beforeUs: number, groups: readonly GroupKey[]): Promise<void> {
  const messages = sql`kind < ${TOMBSTONE} AND received_us < ${integer(beforeUs)} AND ${inGroups(groups)}`;
  const runs = sql`(SELECT tenant, id FROM messages WHERE day = toDate(${string(day)}) AND ${messages})`;
  for (const table of ['attachments', 'feedback']) await deleteWhere(db, table, sql`(tenant, run) IN ${runs}`, 'now');
  await deleteWhere(db, 'runs', sql`is_deleted = 0 AND (tenant, id) IN ${runs}`, 'now');
  await deleteWhere(db, 'messages', messages, 'now', day);
}

/**
 * Deletes the rows that match a condition, which may contain a subquery. By default, ClickHouse deletes them in the
 * background. With `now`, the promise resolves once they are deleted. With a day, deletes only in its partition.
 */
export async function deleteWhere(
  db: ClickHouse,
  table: string,
  where: Sql,
  deletion: 'later' | 'now' = 'later',
  day?: string,
): Promise<void> {
  // A deletion rewrites every part of the table, even if no row matches.
  const found = await db.rows(sql`SELECT 1 FROM ${sql(table)} WHERE ${where} LIMIT 1`);
  if (found.length === 0) return;
  const settings = sql`lightweight_deletes_sync = ${+(deletion === 'now')}, allow_nondeterministic_mutations = 1`;
  const partition = day === undefined ? sql('') : sql`IN PARTITION ${string(day)}`;
  await db.command(sql`DELETE FROM ${sql(table)} ${partition} WHERE ${where} SETTINGS ${settings}`);
}
