import { randomBytes } from 'node:crypto';
import { decideTraces, type Identity } from '../../domain/identity.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import { type Deletion, Tombstones } from '../../domain/retention/deletion.ts';
import { all } from '../../filter/sql.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { idBytes, idText, type SqliteConnection } from './file/database.ts';
import type { TracePlacement } from './placement.ts';
import { type Condition, isKept, ofProject, ofTraces } from './reads/lists.ts';
import { forgetNames, type StoredTrace } from './reads/stored-trace.ts';
import { type ProjectColumns, projectNamesIn, type RunRow, SHOWN_ID } from './run-row.ts';
import { deleteRun } from './sqlite-run.ts';

/** Maximum number of traces that a deletion reports at once. The others are reported when their runs are deleted. */
const REPORTED_TRACES_MAX = 1_000;

/** Counts the runs that a deletion covers now. With a project, those are runs of this project. */
export function countsIn(
  connection: SqliteConnection,
  tenant: number,
  deletion: Deletion,
  ...conditions: readonly Condition[]
): RunCounts {
  const { sql, params } = coveredTraces(connection, tenant, deletion, conditions);
  const own = ownRuns(connection, tenant, deletion.project);
  const counts = connection.one<{ runs: number; traces: number }>(
    deletion.project === undefined
      ? `SELECT count(*) AS traces, coalesce(sum(runs), 0) AS runs FROM traces WHERE n IN (${sql})`
      : `SELECT count(DISTINCT trace) AS traces, count(*) AS runs FROM runs
          WHERE trace IN (${sql}) AND start_us IS NOT NULL AND ${own.sql}`,
    ...params,
    ...own.params,
  );
  return { runs: counts?.runs ?? 0, traces: counts?.traces ?? 0 };
}

/** Selects the keys of the traces with runs that a deletion covers. */
function coveredTraces(
  connection: SqliteConnection,
  tenant: number,
  { project, target: { kind, id } }: Deletion,
  conditions: readonly Condition[] = [],
): Condition {
  const target = (): Condition => {
    if (kind === 'trace') return ofTraces(tenant, [id]);
    if (kind === 'project') return all([{ sql: 'is_root = 1', params: [] }, ofProject(connection, tenant, id)]);
    return { sql: `${kind} = ?`, params: [id] };
  };
  const { sql, params } = all([
    { sql: `${kind === 'trace' ? '+' : ''}tenant = ?`, params: [tenant] },
    target(),
    isKept('runs'),
    ownRuns(connection, tenant, project),
    ...conditions,
  ]);
  return { sql: `SELECT trace FROM runs WHERE ${sql}`, params };
}

function ownRuns(connection: SqliteConnection, tenant: number, project: string | undefined): Condition {
  return project === undefined ? { sql: '1', params: [] } : ofProject(connection, tenant, project);
}

/**
 * Deletes by request what is stored now. Hides whole traces, whose runs are deleted later, see `purge`. Of a trace with
 * runs outside the project of the deletion, deletes the runs in the project.
 */
export function remove(connection: SqliteConnection, deletion: Deletion, placement: TracePlacement): RunCounts {
  const { tenant } = placement;
  const { project, target } = deletion;
  const counts = countsIn(connection, tenant, deletion);
  const { sql, params } = coveredTraces(connection, tenant, deletion);
  const own = ownRuns(connection, tenant, deletion.project);
  const isShared = `EXISTS (SELECT 1 FROM runs WHERE runs.trace = covered.trace AND (${own.sql}) IS NOT TRUE)`;
  if (project !== undefined) {
    const shared = `SELECT trace FROM (${sql}) AS covered WHERE ${isShared}`;
    const ofShared = `SELECT * FROM runs WHERE trace IN (${shared}) AND (${own.sql})`;
    placement.deleteRuns(connection.all<RunRow>(ofShared, ...params, ...own.params, ...own.params));
  }
  const whole = project === undefined ? '' : `WHERE NOT ${isShared}`;
  const hide = `INSERT OR IGNORE INTO hidden SELECT trace, 0 FROM (${sql}) AS covered ${whole}`;
  connection.run(hide, ...params, ...(project === undefined ? [] : own.params));
  // Nothing of the trace has arrived yet.
  if (counts.traces === 0 && target.kind === 'trace' && project === undefined) {
    connection.run(KEEP_NAME, tenant, idBytes(target.id), NameKind.UNNAMED);
  }
  return counts;
}

/** Returns some of the traces that a deletion covers, for listeners. */
export function reportedTraces(connection: SqliteConnection, tenant: number, deletion: Deletion): ChangedTrace[] {
  const { sql, params } = coveredTraces(connection, tenant, deletion);
  const select = `SELECT DISTINCT trace FROM (${sql}) LIMIT ?`;
  const traces = connection.all<{ trace: number }>(select, ...params, REPORTED_TRACES_MAX);
  return traces.map(({ trace }) => changedTrace(connection, trace));
}

function changedTrace(connection: SqliteConnection, trace: number): ChangedTrace {
  const shown = connection.one<{ id: Uint8Array }>(SHOWN, trace)?.id ?? new Uint8Array();
  const projects = connection.all<ProjectColumns>(PROJECTS, trace).flatMap(projectNamesIn);
  return { id: idText(shown), projects };
}

export interface HiddenTrace {
  readonly trace: number;
  readonly tenant: string;
  /** 1 if the trace is deleted to stay within the limits, and 0 if by request. */
  readonly is_evicted: number;
}

/** Hides a trace that is deleted to stay within the limits. Messages with its names create a new trace. */
export function evict(connection: SqliteConnection, trace: number): ChangedTrace {
  const changed = changedTrace(connection, trace);
  forgetNames(connection, trace);
  connection.run('UPDATE traces SET id = ? WHERE n = ?', randomBytes(16), trace);
  connection.run('INSERT INTO hidden VALUES (?, 1)', trace);
  return changed;
}

/**
 * Deletes runs of a hidden trace, and the trace with its last run. Keeps the names of what was deleted by request. Returns
 * the trace once it is gone.
 */
export function purge(connection: SqliteConnection, { trace, is_evicted }: HiddenTrace, limit: number) {
  const rows = connection.all<{ n: number }>('SELECT n FROM runs WHERE trace = ? LIMIT ?', trace, limit);
  const changed = rows.length < limit ? changedTrace(connection, trace) : undefined;
  if (is_evicted === 0) keepNames(connection, rows, NameKind.UNNAMED_RUN);
  for (const { n } of rows) deleteRun(connection, n);
  if (changed === undefined) return undefined;
  if (is_evicted === 0) connection.run(KEEP_TRACE_NAMES, trace, trace);
  forgetNames(connection, trace);
  connection.run('DELETE FROM traces WHERE n = ?', trace);
  connection.run('DELETE FROM hidden WHERE trace = ?', trace);
  return changed;
}

/** Keeps the ids of runs that are deleted, so that later messages for them are ignored. */
export function keepNames(connection: SqliteConnection, runs: readonly { readonly n: number }[], kind: number): void {
  connection.run(KEEP_RUNS, kind, JSON.stringify(runs.map(({ n }) => n)), kind);
  connection.run(LIMIT_NAMES);
}

/**
 * Decides the traces of runs, see `decideTraces` of `domain/identity.ts`. Omits the runs of deleted traces, and deleted
 * runs.
 */
export function storedTraces(
  connection: SqliteConnection,
  runs: ReadonlyMap<string, Identity>,
  names: TracePlacement,
): ReadonlyMap<string, StoredTrace> {
  const hasDeleted = connection.one(HAS_DELETED) !== undefined;
  if (!hasDeleted) return decideTraces(runs, names);
  const { tenant } = names;
  const tombstones = new Tombstones();
  const ids = [...runs].flatMap(([id, { traceId = id, otelTraceId = id, parentId = id }]) =>
    [id, traceId, otelTraceId, parentId].map((name) => name.replaceAll('-', '')),
  );
  const json = JSON.stringify([...new Set(ids)]);
  for (const { id, kind } of connection.all<{ id: Uint8Array; kind: number }>(REMOVED_AMONG, tenant, json)) {
    if (kind === NameKind.RUN) tombstones.single.add(idText(id));
    else if (kind === NameKind.UNNAMED_RUN) tombstones.runs.add(idText(id));
    else tombstones.traces.set(idText(id), kind === NameKind.NAMED);
  }
  const traces = tombstones.decideTraces(runs, names);
  const keep = (id: string, kind: number): void => connection.run(KEEP_NAME, tenant, idBytes(id), kind);
  for (const id of tombstones.runs) keep(id, NameKind.UNNAMED_RUN);
  for (const [id, isNamed] of tombstones.traces) keep(id, isNamed ? NameKind.NAMED : NameKind.UNNAMED);
  connection.run(LIMIT_NAMES);
  return traces;
}

/**
 * What a name in the table `removed` was: the id of a run without a `trace_id` in a deleted trace, a name of a deleted
 * trace, the id of a deleted trace without a `trace_id`, and the id of a run that was deleted from a trace that stays.
 */
export const NameKind = { UNNAMED_RUN: 1, NAMED: 2, UNNAMED: 3, RUN: 4 } as const;

const HAS_DELETED = `SELECT 1 WHERE EXISTS (SELECT 1 FROM removed)
  OR EXISTS (SELECT 1 FROM hidden WHERE is_evicted = 0)`;
const SHOWN = `SELECT ${SHOWN_ID} AS id FROM traces WHERE n = ?`;
const PROJECTS = 'SELECT DISTINCT project, session_id FROM runs WHERE trace = ?';
/** Keeps the latest 2,000,000 names of what was deleted. */
const LIMIT_NAMES = 'DELETE FROM removed WHERE n <= (SELECT max(n) FROM removed) - 2000000';
const REMOVED_AMONG = `SELECT id, kind FROM removed
  WHERE tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?)) ORDER BY kind DESC`;
const KEEP_NAME = 'INSERT OR IGNORE INTO removed (tenant, id, kind) VALUES (?, ?, ?)';
const KEEP_RUNS = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, ? FROM runs WHERE n IN (SELECT value FROM json_each(?)) AND (is_named = 0 OR ? = ${NameKind.RUN})`;
const KEEP_TRACE_NAMES = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, iif(is_named, ${NameKind.NAMED}, ${NameKind.UNNAMED}) FROM traces WHERE n = ?
  UNION ALL SELECT tenant, id, ${NameKind.NAMED} FROM trace_names WHERE trace = ?`;
