import { randomBytes } from 'node:crypto';
import { decideTraces, type Identity } from '../../domain/identity.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import { type Deletion, Tombstones } from '../../domain/retention/deletion.ts';
import { all } from '../../filter/sql.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { idText, type SqliteConnection } from './file/database.ts';
import type { TracePlacement } from './placement.ts';
import { type Condition, isKept, ofProject, ofTraces } from './reads/lists.ts';
import { forgetNames, type StoredTrace } from './reads/stored-trace.ts';
import { KEEP_TRACE_NAMES, keepName, keepNames, limitNames, NameKind } from './removed-names.ts';
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
  const covered = coveredTraces(connection, tenant, deletion, conditions);
  return counted(connection, covered, ownRuns(connection, tenant, deletion));
}

/** Counts the runs of traces. With a condition, only runs that match it. */
function counted(connection: SqliteConnection, traces: Condition, own: Condition | undefined): RunCounts {
  const sql =
    own === undefined
      ? `SELECT count(*) AS traces, coalesce(sum(runs), 0) AS runs FROM traces WHERE n IN (${traces.sql})`
      : `SELECT count(DISTINCT trace) AS traces, count(*) AS runs FROM runs
          WHERE trace IN (${traces.sql}) AND start_us IS NOT NULL AND (${own.sql})`;
  const counts = connection.one<{ runs: number; traces: number }>(sql, ...traces.params, ...(own?.params ?? []));
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
    ...(project === undefined ? [] : [ofProject(connection, tenant, project)]),
    ...conditions,
  ]);
  return { sql: `SELECT trace FROM runs WHERE ${sql}`, params };
}

/** Selects the runs in the project of a deletion, if it has one. */
function ownRuns(connection: SqliteConnection, tenant: number, { project }: Deletion): Condition | undefined {
  return project === undefined ? undefined : ofProject(connection, tenant, project);
}

/**
 * Deletes by request what is stored now. Hides whole traces, whose runs are deleted later, see `purgeTrace`. Of a trace with
 * runs outside the project of the deletion, deletes the runs in the project. Returns the traces for listeners.
 */
export function remove(
  connection: SqliteConnection,
  deletion: Deletion,
  placement: TracePlacement,
): { readonly counts: RunCounts; readonly traces: readonly ChangedTrace[] } {
  const { tenant } = placement;
  const { sql, params } = coveredTraces(connection, tenant, deletion);
  connection.exec('CREATE TEMP TABLE IF NOT EXISTS covered (trace INTEGER PRIMARY KEY); DELETE FROM covered');
  connection.run(`INSERT OR IGNORE INTO covered ${sql}`, ...params);
  const own = ownRuns(connection, tenant, deletion);
  const counts = counted(connection, { sql: COVERED, params: [] }, own);
  const reported = connection.all<{ trace: number }>(`${COVERED} LIMIT ?`, REPORTED_TRACES_MAX);
  const traces = reported.map(({ trace }) => changedTrace(connection, trace));
  if (own !== undefined) {
    const isShared = `EXISTS (SELECT 1 FROM runs WHERE runs.trace = covered.trace AND (${own.sql}) IS NOT TRUE)`;
    const ofShared = `SELECT * FROM runs WHERE trace IN (${COVERED} WHERE ${isShared}) AND (${own.sql})`;
    placement.deleteRuns(connection.all<RunRow>(ofShared, ...own.params, ...own.params));
    connection.run(`DELETE FROM covered WHERE ${isShared}`, ...own.params);
  }
  connection.run('INSERT INTO hidden SELECT trace, 0 FROM covered');
  const { target } = deletion;
  // Nothing of the trace has arrived yet.
  if (counts.traces === 0 && target.kind === 'trace' && own === undefined) {
    keepName(connection, tenant, target.id, NameKind.UNNAMED);
  }
  return { counts, traces };
}

const COVERED = 'SELECT trace FROM covered';

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
export function purgeTrace(
  connection: SqliteConnection,
  { trace, is_evicted }: HiddenTrace,
  limit: number,
): ChangedTrace | undefined {
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

/**
 * Decides the traces of runs, see `decideTraces` of `domain/identity.ts`. Omits the runs of deleted traces, and deleted
 * runs.
 */
export function storedTraces(
  connection: SqliteConnection,
  runs: ReadonlyMap<string, Identity>,
  names: TracePlacement,
): ReadonlyMap<string, StoredTrace> {
  if (connection.one(HAS_DELETED) === undefined) return decideTraces(runs, names);
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
  for (const id of tombstones.runs) keepName(connection, tenant, id, NameKind.UNNAMED_RUN);
  for (const [id, isNamed] of tombstones.traces)
    keepName(connection, tenant, id, isNamed ? NameKind.NAMED : NameKind.UNNAMED);
  limitNames(connection);
  return traces;
}

const HAS_DELETED = `SELECT 1 WHERE EXISTS (SELECT 1 FROM removed)
  OR EXISTS (SELECT 1 FROM hidden WHERE is_evicted = 0)`;
const SHOWN = `SELECT ${SHOWN_ID} AS id FROM traces WHERE n = ?`;
const PROJECTS = 'SELECT DISTINCT project, session_id FROM runs WHERE trace = ?';

const REMOVED_AMONG = `SELECT id, kind FROM removed
  WHERE tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?)) ORDER BY kind DESC`;
