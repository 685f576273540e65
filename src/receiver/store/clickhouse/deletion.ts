import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { grouped } from '../../domain/grouped.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import { type Deletion, REMOVED_MS } from '../../domain/retention/deletion.ts';
import { KnownDeletions, type TimedDeletion } from '../../domain/retention/known-deletions.ts';
import { SharedLimit } from '../../domain/shared-limit.ts';
import { all } from '../../filter/sql.ts';
import { StoreError } from '../store.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { type ClickHouseChanges, PROJECTS } from './changes.ts';
import type { StoreClock } from './clock.ts';
import { type ClickHouse, integer, type Sql, sql, string, uuids } from './connection.ts';
import { type Group, type GroupKey, inGroups, versionAfter } from './groups.ts';
import { joinGroups } from './joins.ts';
import { dayOfMs, RUN_TOMBSTONE, TOMBSTONE } from './messages.ts';
import { insideOf, ofMeantTraces } from './reads/conditions.ts';
import { OTHERS_US } from './sweep.ts';

/** Maximum number of deletions of a database whose stored traces are still being deleted. */
const OPEN_DELETIONS_MAX = 100;
const STEP_TRACES = 10_000;
/** Interval at which the deletions of other receivers are read, in milliseconds. */
const READ_MS = 2_000;
/** Allowance for slow inserts, in milliseconds. */
const OVERLAP_MS = 60_000;

interface StoredDeletion extends TimedDeletion {
  readonly id: string;
  /** By the clock of ClickHouse, unlike `atMs`. */
  readonly requestedMs: number;
}

interface DeletedTrace extends ChangedTrace {
  readonly group_ids: readonly string[];
}

interface CoveredTrace extends DeletedTrace {
  /** With a project in the deletion, the runs that are deleted of the trace. */
  readonly own: readonly (readonly [group_id: string, id: string])[];
}

/**
 * The deletions in a database. A deletion is open until its stored traces are deleted. Its receiver deletes them at once,
 * and each receiver again 10 s later, because another receiver may have derived some before it knew of the deletion.
 */
export class ClickHouseDeletions {
  readonly #db: ClickHouse;
  readonly #clock: StoreClock;
  readonly #changes: ClickHouseChanges;
  readonly #derive: (groups: readonly GroupKey[]) => Promise<void>;
  readonly #known = new KnownDeletions();
  readonly #open = new Map<string, StoredDeletion>();
  readonly #finishing = new Set<string>();
  readonly #limit = new SharedLimit(OPEN_DELETIONS_MAX);
  readonly #storing = new Set<StoredDeletion>();
  #readMs = 0;
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(
    db: ClickHouse,
    clock: StoreClock,
    changes: ClickHouseChanges,
    derive: (groups: readonly GroupKey[]) => Promise<void>,
  ) {
    this.#db = db;
    this.#derive = derive;
    this.#clock = clock;
    this.#changes = changes;
  }

  /**
   * Stores a deletion, and deletes its traces. Rejects if ClickHouse fails. Later calls of `refresh` then go on.
   */
  async add(deletion: TimedDeletion): Promise<void> {
    await this.refresh();
    this.#limit.count([...this.#open.values(), ...this.#storing].map(({ tenant }) => tenant));
    if (!this.#limit.admits(deletion.tenant, 1)) {
      throw new StoreError('busy', `${this.#limit.total} deletions are not finished`, OTHERS_US / 1_000_000);
    }
    const stored = { ...deletion, id: randomUUID(), requestedMs: this.#clock.nowMs() };
    this.#storing.add(stored);
    await this.#put(stored, false).finally(() => this.#storing.delete(stored));
    this.#remember(stored, true);
    // What is stored now is covered, whatever the clocks say.
    const isDone = await this.#inTurn(() => this.#deleteTraces(stored));
    if (!isDone) throw new StoreError('unavailable', 'The runs cannot be deleted at present: see the log', 10);
  }

  /** Reads the deletions of other receivers, if they were not read recently, and continues the open ones. */
  async refresh(isForced = false): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (!isForced && nowMs - this.#readMs < READ_MS) return;
    const sinceMs = Math.max(this.#readMs - OVERLAP_MS, nowMs - REMOVED_MS);
    const rows = await this.#db.rows<{ json: string; is_open: number }>(
      sql`SELECT json, is_open FROM deletions FINAL WHERE is_open = 1 OR at_ms > ${integer(sinceMs)} ORDER BY at_ms`,
    );
    this.#readMs = nowMs;
    for (const { json, is_open } of rows) this.#remember(JSON.parse(json), is_open === 1);
    for (const deletion of this.#open.values()) {
      if (nowMs - deletion.requestedMs < OTHERS_US / 1_000 || this.#finishing.has(deletion.id)) continue;
      this.#finishing.add(deletion.id);
      void this.#inTurn(() => this.#finish(deletion)).then(() => this.#finishing.delete(deletion.id));
    }
  }

  /** Returns whether a deletion covers the trace of a group and has not deleted it. */
  covers({ tenant, trace }: Group): boolean {
    return trace.members.length > 0 && this.#known.covers(tenant, trace);
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

  /** Deletions run one after another. Resolves with whether one succeeded. A later call of `refresh` repeats a failure. */
  #inTurn(work: () => Promise<void>): Promise<boolean> {
    const done = this.#work.then(work).then(
      () => !this.#isClosed,
      (error: unknown) => {
        if (!this.#isClosed)
          diagnostics.warn(`the store in ClickHouse could not delete traces and retries: ${messageOf(error)}`);
        return false;
      },
    );
    this.#work = done.then(() => {});
    return done;
  }

  async #put(deletion: StoredDeletion, isDone: boolean): Promise<void> {
    const { id, requestedMs: at_ms } = deletion;
    await this.#db.insert('deletions', [{ id, at_ms, is_open: +!isDone, json: JSON.stringify(deletion) }]);
  }

  async #finish(deletion: StoredDeletion): Promise<void> {
    await this.#deleteTraces(deletion, deletion.atMs);
    if (!this.#isClosed) await this.#put(deletion, true);
  }

  /** Deletes the stored traces that a deletion covers, also those that were received later than `atMs` if it is omitted. */
  async #deleteTraces(deletion: Deletion, atMs?: number): Promise<void> {
    const { tenant, project } = deletion;
    const own =
      project === undefined ? sql('[]') : sql`groupArrayIf((group_id, stored.id), ${ownRuns(deletion, atMs)})`;
    const columns = sql`trace AS id, groupUniqArray(group_id) AS group_ids, ${PROJECTS} AS projects, ${own} AS own`;
    for (let hasMore = true; hasMore && !this.#isClosed; ) {
      const select = sql`${coveredTraces(deletion, columns, atMs)} LIMIT ${STEP_TRACES}`;
      const traces = await this.#db.rows<CoveredTrace>(select);
      // Looking for traces until there are none could take forever, because new ones may arrive all the time.
      hasMore = traces.length === STEP_TRACES;
      if (project !== undefined) await this.#deleteRuns(tenant, traces);
      else if (traces.length > 0) await this.#delete(tenant, traces, this.nowUs);
    }
  }

  /** Inserts tombstones of runs, hides their rows, and derives their traces again. */
  async #deleteRuns(tenant: string, traces: readonly CoveredTrace[]): Promise<void> {
    const runs = traces.flatMap(({ own }) => own);
    if (runs.length === 0) return;
    const receivedUs = this.nowUs;
    await this.#insertTombstones(tenant, RUN_TOMBSTONE, receivedUs, runs);
    await this.#hide(tenant, receivedUs, sql`id IN (${uuids(runs.map(([, id]) => id))})`);
    await this.#changes.add(tenant, traces);
    await this.#derive([...new Set(runs.map(([group_id]) => group_id))].map((group_id) => ({ tenant, group_id })));
  }

  /** Inserts tombstones. The names of a group find it when messages arrive later. Then hides the rows of the traces. */
  async #delete(tenant: string, traces: readonly DeletedTrace[], receivedUs: number): Promise<void> {
    const found = traces.flatMap(({ group_ids }) => group_ids.map((group_id) => ({ tenant, group_id })));
    const wanted = new Set(found.map(({ group_id }) => group_id));
    // Of a trace that these groups have joined since they were found, only these are deleted.
    const groups = (await joinGroups(this.#db, receivedUs, found)).flatMap(({ group_id, members }) =>
      wanted.has(group_id) ? members : members.filter((member) => wanted.has(member)),
    );
    const named = groups.map((group_id) => [group_id, group_id] as const);
    await this.#insertTombstones(tenant, TOMBSTONE, receivedUs, named);
    await this.#hide(tenant, receivedUs, sql`trace IN (${uuids(traces.map(({ id }) => id))})`);
    await this.#changes.add(tenant, traces);
  }

  async #insertTombstones(
    tenant: string,
    kind: number,
    receivedUs: number,
    runs: readonly (readonly [group_id: string, id: string])[],
  ): Promise<void> {
    const row = { tenant, day: dayOfMs(receivedUs / 1_000), kind, received_us: receivedUs, fields: '{}' };
    const rows = runs.map(([group_id, id]) => ({ ...row, group_id, id }));
    await this.#db.insert('messages', rows);
  }

  async #hide(tenant: string, receivedUs: number, rows: Sql): Promise<void> {
    const seenUs = integer(receivedUs);
    await this.#db.command(
      sql`INSERT INTO runs
        SELECT * REPLACE (1 AS is_deleted, ${seenUs} AS seen_us, greatest(version + 1, ${versionAfter(seenUs)}) AS version)
        FROM runs FINAL WHERE tenant = ${string(tenant)} AND ${rows}`,
    );
  }
}

/** See `DeletionStore.removable`. Counts the runs that lists show. */
export async function readRemovable(db: ClickHouse, deletion: Deletion): Promise<RunCounts> {
  const select = sql`SELECT count() AS traces, sum(runs) AS runs
    FROM (${coveredTraces(deletion, sql`countIf(${ownRuns(deletion)}) AS runs`)})`;
  const [found] = await db.rows<RunCounts>(select);
  return { runs: Number(found?.runs ?? 0), traces: Number(found?.traces ?? 0) };
}

/** Returns a condition for the runs that a deletion deletes: with a project, those in it that were received before `atMs`. */
function ownRuns({ tenant, project }: Deletion, atMs?: number): Sql {
  const isBefore = project === undefined || atMs === undefined ? [] : [sql`n < ${integer(atMs * 1_000)}`];
  return all([insideOf(tenant, { projects: project === undefined ? [] : [project] }), ...isBefore]);
}

/**
 * Selects columns of the traces with runs that a deletion covers, as lists show them: those that were received before
 * `atMs`, or all.
 */
function coveredTraces(deletion: Deletion, columns: Sql, atMs?: number): Sql {
  const { tenant, project, target } = deletion;
  const { kind, id } = target;
  const own = ownRuns(deletion, atMs);
  const beforeUs = atMs === undefined ? [] : [integer(atMs * 1_000)];
  const ofTarget = (): Sql[] => {
    if (kind === 'trace') return [ofMeantTraces(tenant, [id])];
    // Reading the project of every run takes less time than finding the many traces of a project, and then their runs.
    if (kind === 'project') return [];
    const named = all([own, sql`${sql(kind)} = ${string(id)}`, ...beforeUs.map((us) => sql`n < ${us}`)]);
    return [sql`trace IN (SELECT trace FROM runs FINAL WHERE ${named})`];
  };
  const rootsIn = kind === 'project' ? [id, ...(project === undefined ? [] : [project])] : [];
  const covered = all([
    sql`countIf(${own}) > 0`,
    ...(kind === 'project' ? beforeUs.map((us) => sql`min(n) < ${us}`) : []),
    ...rootsIn.map((name) => sql`max(is_root = 1 AND ${insideOf(tenant, { projects: [name] })}) = 1`),
  ]);
  return sql`SELECT ${columns} FROM runs AS stored FINAL
    WHERE ${all([insideOf(tenant, { projects: [] }), ...ofTarget()])} GROUP BY trace HAVING ${covered}`;
}

/**
 * Deletes the messages, attachments, feedback and rows of deleted runs and traces, also of those that arrived later. Keeps
 * the tombstones.
 */
export async function deleteRemoved(db: ClickHouse, sinceDay: string, beforeUs: number): Promise<void> {
  const ofRuns = sql`kind < ${TOMBSTONE} AND received_us < ${integer(beforeUs)} AND (tenant, group_id, id) IN
    (SELECT tenant, group_id, id FROM messages WHERE kind = ${RUN_TOMBSTONE} AND day >= toDate(${string(sinceDay)}))`;
  await deleteMessages(db, ofRuns);
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
  await deleteMessages(
    db,
    sql`kind < ${TOMBSTONE} AND received_us < ${integer(beforeUs)} AND ${inGroups(groups)}`,
    day,
  );
}

/** Deletes messages, and what is stored of their runs. With a day, only messages in its partition. */
async function deleteMessages(db: ClickHouse, messages: Sql, day?: string): Promise<void> {
  const ofDay = day === undefined ? messages : sql`day = toDate(${string(day)}) AND ${messages}`;
  const runs = sql`(SELECT tenant, id FROM messages WHERE ${ofDay})`;
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
