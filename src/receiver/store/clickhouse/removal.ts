import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import type { AssembledTrace } from '../../domain/assemble.ts';
import {
  DELETIONS_MS,
  type Deletion,
  Deletions,
  namesOf,
  OPEN_DELETIONS_MAX,
  type Removal,
  Tombstones,
} from '../../domain/removal.ts';
import { all } from '../../filter/sql.ts';
import { StoreError } from '../store.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { type ClickHouseChanges, PROJECTS } from './changes.ts';
import type { StoreClock } from './clock.ts';
import { insideOf } from './conditions.ts';
import { type ClickHouse, type InsertRow, integer, type Sql, sql, string, strings, uuid, uuids } from './connection.ts';
import { type Group, OTEL_TRACE_ID, type TombstoneKind, versionAfter } from './groups.ts';
import { dayOfMs, TOMBSTONE } from './messages.ts';
import { KEYS } from './places.ts';
import { OTHERS_US } from './sweep.ts';

/** Maximum number of traces that are deleted at once. */
const STEP_TRACES = 10_000;
/** Interval at which the deletions of other receivers are read, in milliseconds. */
const READ_MS = 2_000;
/** Allowance for slow inserts, in milliseconds. */
const OVERLAP_MS = 60_000;

interface StoredDeletion extends Deletion {
  readonly id: string;
}

/** A trace as lists show it. */
interface ListedTrace extends ChangedTrace {
  readonly group_ids: readonly string[];
  readonly runs: number;
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
    if (this.#open.size >= OPEN_DELETIONS_MAX) {
      throw new StoreError('busy', `${this.#open.size} deletions are not finished`, OTHERS_US / 1_000_000);
    }
    const stored = { ...deletion, id: randomUUID() };
    await this.#put(stored, false);
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
      sql('SELECT json, is_open FROM deletions FINAL WHERE is_open = 1 OR at_ms > ? ORDER BY at_ms', integer(sinceMs)),
    );
    this.#readMs = nowMs;
    for (const { json, is_open } of rows) this.#remember(JSON.parse(json), is_open === 1);
    for (const deletion of this.#open.values()) {
      if (nowMs - deletion.atMs < OTHERS_US / 1_000 || this.#finishing.has(deletion.id)) continue;
      this.#finishing.add(deletion.id);
      void this.#inTurn(() => this.#finish(deletion)).then(() => this.#finishing.delete(deletion.id));
    }
  }

  /** Deletes the traces of a group that a deletion covers. Returns the group without them. */
  async applied(group: Group): Promise<Group> {
    const { tenant, group_ids } = group;
    if (this.#known.isEmpty) return group;
    const covered = new Set(group.traces.filter((trace) => this.#known.covers(tenant, trace)));
    if (covered.size === 0) return group;
    const receivedUs = this.#clock.nowUs();
    await this.#db.insert(
      'messages',
      [...covered].flatMap((trace) => this.#tombstonesOf(group, trace, receivedUs)),
    );
    const listed = [...covered].map(({ id, projects, members }) => ({ id, projects, group_ids, runs: members.length }));
    await this.#hide(tenant, listed, receivedUs);
    const gone = new Set([...covered].flatMap(({ members }) => members));
    const runs = new Map([...group.runs].filter(([, run]) => !gone.has(run)));
    return { ...group, runs, traces: group.traces.filter((trace) => !covered.has(trace)) };
  }

  /** Waits until the traces of all known deletions are deleted. */
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
    const { sql: select, params } = coveredTraces(deletion);
    while (!this.#isClosed) {
      const traces = await this.#db.rows<ListedTrace>({ sql: `${select} LIMIT ${STEP_TRACES}`, params });
      if (traces.length === 0) return;
      const receivedUs = this.#clock.nowUs();
      await this.#keepNames(deletion.tenant, traces, receivedUs);
      await this.#hide(deletion.tenant, traces, receivedUs);
    }
  }

  /** Inserts tombstones of the names of traces that lists show. */
  async #keepNames(tenant: string, traces: readonly ListedTrace[], receivedUs: number): Promise<void> {
    const rows = traces.flatMap(({ id, group_ids }) =>
      [...new Set([...group_ids, id])].map((group) => this.#tombstone(tenant, group, id, 'trace', receivedUs)),
    );
    await this.#db.insert('messages', rows);
    const group_ids = [...new Set(traces.flatMap((trace) => trace.group_ids))];
    const ids = traces.map(({ id }) => id);
    const insert = (names: string, kind: TombstoneKind): Sql =>
      sql(
        `INSERT INTO messages (tenant, day, group_id, id, kind, received_us, fields)
          SELECT DISTINCT tenant, toDate(?), ${names}, ${TOMBSTONE}, ?, ? FROM messages
          WHERE tenant = ? AND toUInt128(group_id) IN (SELECT toUInt128(arrayJoin(?))) AND kind < ${TOMBSTONE}
            AND id NOT IN (SELECT id FROM runs FINAL WHERE tenant = ? AND hasAny(group_ids, ?) AND trace NOT IN (?))`,
        ...[string(dayOfMs(receivedUs / 1_000)), integer(receivedUs), string(JSON.stringify({ kind })), string(tenant)],
        ...[uuids(group_ids), string(tenant), uuids(group_ids), uuids(ids)],
      );
    const unnamed = insert('group_id, id', 'run');
    await this.#db.command({ ...unnamed, sql: `${unnamed.sql} AND NOT JSONHas(fields, 'trace_id')` });
    const otel = insert(`${OTEL_TRACE_ID} AS otel_id, otel_id`, 'trace');
    await this.#db.command({ ...otel, sql: `${otel.sql} AND otel_id IS NOT NULL` });
  }

  #tombstonesOf({ tenant, group_ids }: Group, trace: AssembledTrace, receivedUs: number): InsertRow[] {
    const names = new Tombstones();
    names.add(
      trace.id,
      trace.members.map(({ id, fields }) => namesOf(id, fields)),
    );
    const rows = (ids: Iterable<string>, kind: TombstoneKind): InsertRow[] =>
      [...ids].flatMap((id) =>
        [...new Set([...group_ids, ...(kind === 'trace' ? [id] : [])])].map((group) =>
          this.#tombstone(tenant, group, id, kind, receivedUs),
        ),
      );
    return [...rows(names.traces, 'trace'), ...rows(names.runs, 'run')];
  }

  #tombstone(tenant: string, group_id: string, id: string, kind: TombstoneKind, received_us: number): InsertRow {
    const day = dayOfMs(received_us / 1_000);
    return { tenant, day, group_id, id, kind: TOMBSTONE, received_us, fields: JSON.stringify({ kind }) };
  }

  /** Hides the rows of traces whose tombstones are stored. */
  async #hide(tenant: string, traces: readonly ListedTrace[], receivedUs: number): Promise<void> {
    await this.#db.command(
      sql(
        `INSERT INTO runs SELECT * REPLACE (1 AS is_deleted, ? AS seen_us, ${versionAfter('?')} AS version)
          FROM runs FINAL WHERE tenant = ? AND trace IN (?)`,
        integer(receivedUs),
        integer(receivedUs),
        string(tenant),
        uuids(traces.map(({ id }) => id)),
      ),
    );
    await this.#changes.add(tenant, traces);
  }
}

/** See `RemovalStore.removable`. Counts the runs that lists show. */
export async function readRemovable(db: ClickHouse, deletion: Deletion): Promise<Removal> {
  const { sql: covered, params } = coveredTraces(deletion);
  const select = `SELECT count() AS traces, sum(runs) AS runs FROM (${covered})`;
  const [found] = await db.rows<Removal>({ sql: select, params });
  return { runs: Number(found?.runs ?? 0), traces: Number(found?.traces ?? 0) };
}

/** Selects the traces that a deletion covers, as lists show them. */
function coveredTraces({ tenant, project, target: { kind, id }, atMs }: Deletion): Sql {
  const rootIn = (name: string): Sql => all([sql('is_root = 1'), insideOf(tenant, { projects: [name] })]);
  const ofTarget = (): Sql => {
    if (kind === 'trace') return sql('trace = ?', uuid(id));
    return kind === 'project' ? rootIn(id) : sql(`${kind} = ?`, string(id));
  };
  const selected = all([insideOf(tenant, { projects: [] }), ofTarget()]);
  const limited = project === undefined ? undefined : rootIn(project);
  const having = [
    ...(kind === 'trace' ? [] : [sql('min(start_us) < ?', integer(atMs * 1_000))]),
    ...(limited ? [sql(`max(${limited.sql}) = 1`, ...limited.params)] : []),
  ];
  const covered = all(having.length === 0 ? [sql('1')] : having);
  return sql(
    `SELECT trace AS id, arrayDistinct(arrayFlatten(groupUniqArray(stored.group_ids))) AS group_ids,
        ${PROJECTS} AS projects, count() AS runs
      FROM runs AS stored FINAL WHERE tenant = ? AND trace IN (SELECT trace FROM runs FINAL WHERE ${selected.sql})
      GROUP BY trace HAVING ${covered.sql}`,
    string(tenant),
    ...selected.params,
    ...covered.params,
  );
}

/**
 * Deletes the messages, attachments, feedback and rows of deleted traces, also of those that arrived later. Keeps the
 * tombstones. A group that lists show is kept.
 */
export async function deleteRemoved(db: ClickHouse, sinceDay: string, beforeUs: number): Promise<void> {
  const removed = sql(
    `kind < ${TOMBSTONE} AND received_us < ? AND (tenant, toUInt128(group_id)) IN
      (SELECT tenant, toUInt128(group_id) FROM messages WHERE kind = ${TOMBSTONE} AND day >= toDate(?))`,
    integer(beforeUs),
    string(sinceDay),
  );
  const days = await db.rows<{ day: string }>(
    sql(`SELECT DISTINCT day FROM messages WHERE ${removed.sql}`, ...removed.params),
  );
  for (const { day } of days) {
    const ofDay = all([sql('day = toDate(?)', string(day)), removed]);
    for (let hasMore = true; hasMore; ) {
      const groups = await db.rows<{ tenant: string; group_id: string }>(
        sql(
          `SELECT tenant, group_id FROM messages WHERE ${ofDay.sql} GROUP BY tenant, group_id
            HAVING countIf((tenant, id) IN (SELECT tenant, id FROM runs FINAL
              WHERE id IN (SELECT id FROM messages WHERE ${ofDay.sql}))) = 0 LIMIT ${STEP_TRACES}`,
          ...ofDay.params,
          ...ofDay.params,
        ),
      );
      hasMore = groups.length === STEP_TRACES;
      if (groups.length > 0) await deleteGroups(db, day, beforeUs, groups);
    }
  }
}

async function deleteGroups(
  db: ClickHouse,
  day: string,
  beforeUs: number,
  groups: readonly { readonly tenant: string; readonly group_id: string }[],
): Promise<void> {
  const messages = sql(
    `kind < ${TOMBSTONE} AND received_us < ? AND (tenant, toUInt128(group_id)) IN ${KEYS}`,
    integer(beforeUs),
    strings(groups.map(({ tenant }) => tenant)),
    uuids(groups.map(({ group_id }) => group_id)),
  );
  const runs = sql(
    `(SELECT tenant, id FROM messages WHERE day = toDate(?) AND ${messages.sql})`,
    string(day),
    ...messages.params,
  );
  for (const table of ['attachments', 'feedback']) {
    await deleteWhere(db, table, sql(`(tenant, run) IN ${runs.sql}`, ...runs.params), 'now');
  }
  await deleteWhere(db, 'runs', sql(`is_deleted = 0 AND (tenant, id) IN ${runs.sql}`, ...runs.params), 'now');
  await deleteWhere(db, 'messages', messages, 'now', day);
}

/**
 * Deletes the rows that match a condition, which may contain a subquery. By default, ClickHouse deletes them in the
 * background. With `now`, the promise resolves once they are deleted. With a day, deletes only in its partition.
 */
export async function deleteWhere(
  db: ClickHouse,
  table: string,
  { sql: where, params }: Sql,
  deletion: 'later' | 'now' = 'later',
  day?: string,
): Promise<void> {
  // A deletion rewrites every part of the table, even if no row matches.
  const found = await db.rows({ sql: `SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`, params });
  if (found.length === 0) return;
  const settings = `lightweight_deletes_sync = ${deletion === 'now' ? 1 : 0}, allow_nondeterministic_mutations = 1`;
  const [partition, value] = day === undefined ? ['', []] : ['IN PARTITION ?', [string(day)]];
  await db.command({
    sql: `DELETE FROM ${table} ${partition} WHERE ${where} SETTINGS ${settings}`,
    params: [...value, ...params],
  });
}
