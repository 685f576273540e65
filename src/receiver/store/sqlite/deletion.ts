import { randomBytes } from 'node:crypto';
import { decideTraces, type Identity } from '../../domain/identity.ts';
import type { RunCounts } from '../../domain/query/query.ts';
import { type Deletion, Deletions, OPEN_DELETIONS_MAX, Tombstones } from '../../domain/retention/deletion.ts';
import { SharedLimit } from '../../domain/shared-limit.ts';
import { all } from '../../filter/sql.ts';
import { StoreError } from '../store.ts';
import type { ChangedTrace, TenantChange } from '../subscribers.ts';
import type { Counters } from './counters.ts';
import { idBytes, idText, type SqliteConnection } from './file/database.ts';
import { REMOVED } from './file/schema.ts';
import type { TracePlacement } from './placement.ts';
import { type Condition, ofProject, ofTraces } from './reads/lists.ts';
import { forgetNames, PROJECT_OF_RUN, type StoredTrace } from './reads/stored-trace.ts';
import { type ProjectColumns, projectNamesIn, type RunRow, SHOWN_ID } from './run-row.ts';
import { deleteRunsOf } from './sqlite-run.ts';

/** Maximum number of matching runs to read in one step, and of runs that are deleted with their messages. */
const STEP_RUNS = 500;

/** Returns the keys of the traces that a deletion covers, limited to those of about `limit` runs. */
export function coveredTraces(
  connection: SqliteConnection,
  tenant: number,
  { project, target, atMs }: Omit<Deletion, 'tenant'>,
  limit = -1,
): number[] {
  const { sql, params } = all([
    selectedRuns(connection, tenant, target),
    ...(project === undefined ? [] : [rootIn(connection, tenant, project)]),
    ...(target.kind === 'trace' ? [] : [{ sql: STARTED_BEFORE, params: [atMs * 1_000] }]),
  ]);
  const select = `SELECT DISTINCT trace AS n FROM (SELECT trace FROM runs
    WHERE ${target.kind === 'trace' ? '+' : ''}tenant = ? AND ${IS_KEPT} AND ${sql} LIMIT ?)`;
  return connection.all<{ n: number }>(select, tenant, ...params, limit).map(({ n }) => n);
}

function selectedRuns(connection: SqliteConnection, tenant: number, { kind, id }: Deletion['target']): Condition {
  if (kind === 'trace') return ofTraces(tenant, [id]);
  if (kind !== 'project') return { sql: `${kind} = ?`, params: [id] };
  return all([{ sql: 'is_root = 1', params: [] }, ofProject(connection, tenant, id)]);
}

function rootIn(connection: SqliteConnection, tenant: number, project: string): Condition {
  const { sql, params } = ofProject(connection, tenant, project, 'roots');
  return { sql: `EXISTS (${ROOT} AND (${sql}))`, params };
}

/** Counts the runs of the traces that a deletion covers now. Calls `check` for each trace. */
export function countsIn(
  connection: SqliteConnection,
  tenant: number,
  deletion: Omit<Deletion, 'tenant'>,
  check: () => void,
): RunCounts {
  const traces = coveredTraces(connection, tenant, deletion);
  let runs = 0;
  for (const trace of traces) {
    check();
    runs += connection.number('SELECT count(*) FROM runs WHERE trace = ?', trace);
  }
  return { runs, traces: traces.length };
}

interface StoredDeletion {
  readonly n: number;
  readonly tenant_n: number;
  readonly tenant: string;
  readonly project: string | null;
  readonly kind: Deletion['target']['kind'];
  readonly id: string;
  readonly at_ms: number;
}

/** A deletion is open until its stored traces are marked. `SqliteRetention` then deletes their runs. */
export class SqliteDeletions {
  readonly #connection: SqliteConnection;
  readonly #counters: Counters;
  readonly #known: Deletions;
  readonly #limit = new SharedLimit(OPEN_DELETIONS_MAX);

  constructor(connection: SqliteConnection, counters: Counters) {
    this.#connection = connection;
    this.#counters = counters;
    this.#known = new Deletions(connection.all<StoredDeletion>(`${DELETIONS} ORDER BY at_ms`).map(deletionOf));
  }

  get isOpen(): boolean {
    return this.#connection.number(OPEN) > 0;
  }

  /** Stores a deletion. Call `remember` after the commit. */
  add(tenantN: number, { tenant, project, target: { kind, id }, atMs }: Deletion): void {
    const open = this.#connection.all<StoredDeletion>(`${DELETIONS} WHERE is_open = 1`);
    this.#limit.count(open.map((one) => one.tenant));
    if (!this.#limit.admits(tenant, 1)) throw new StoreError('busy', `${open.length} deletions are not finished`, 1);
    this.#connection.run(INSERT_DELETION, tenantN, project ?? null, kind, id, atMs);
  }

  remember(deletion: Deletion): void {
    this.#known.add(deletion);
  }

  /** Marks traces of the first open deletion for about `limitMs`, or as long as it took to find them. */
  step(limitMs: number): TenantChange | undefined {
    const begunMs = performance.now();
    const open = this.#connection.one<StoredDeletion>(`${DELETIONS} WHERE is_open = 1 ORDER BY deletions.n LIMIT 1`);
    if (open === undefined) return undefined;
    const found = coveredTraces(this.#connection, open.tenant_n, deletionOf(open), STEP_RUNS);
    if (found.length === 0) this.#connection.run('UPDATE deletions SET is_open = 0 WHERE n = ?', open.n);
    const traces: ChangedTrace[] = [];
    const foundMs = performance.now();
    const untilMs = foundMs + Math.max(limitMs, foundMs - begunMs);
    for (const trace of found) {
      if (traces.length > 0 && performance.now() > untilMs) break;
      traces.push(this.#mark(trace));
    }
    return { tenant: open.tenant, traces };
  }

  /** Removes those of the changed traces that a deletion covers, and returns them. */
  removeCovered(tenant: string, traces: readonly StoredTrace[]): Set<StoredTrace | undefined> {
    const covered = new Set<StoredTrace | undefined>();
    for (const trace of this.#known.isEmpty ? [] : traces) {
      if (!this.#known.covers(tenant, this.#named(trace))) continue;
      covered.add(trace);
      this.#mark(trace.n);
      deleteRunsOf(this.#connection, this.#counters, trace.n, STEP_RUNS);
    }
    return covered;
  }

  decideTraces(runs: ReadonlyMap<string, Identity>, names: TracePlacement): ReadonlyMap<string, StoredTrace> {
    const { tenant } = names;
    if (this.#connection.one('SELECT 1 FROM removed LIMIT 1') === undefined) return decideTraces(runs, names);
    const ids = [...runs].flatMap(([id, { traceId = id, otelTraceId = id, parentId = id }]) =>
      [id, traceId, otelTraceId, parentId].map((name) => name.replaceAll('-', '')),
    );
    const tombstones = new Tombstones();
    const json = JSON.stringify([...new Set(ids)]);
    for (const { id, kind } of this.#connection.all<{ id: Uint8Array; kind: number }>(REMOVED_AMONG, tenant, json)) {
      if (kind === 1) tombstones.runs.add(idText(id));
      else tombstones.traces.set(idText(id), kind === 2);
    }
    if (tombstones.runs.size + tombstones.traces.size === 0) return decideTraces(runs, names);
    const traces = tombstones.decideTraces(runs, names);
    const keep = (id: string, kind: number): void => this.#connection.run(KEEP_NAME, tenant, idBytes(id), kind);
    for (const id of tombstones.runs) keep(id, 1);
    for (const [id, isNamed] of tombstones.traces) keep(id, isNamed ? 2 : 3);
    this.#connection.run(LIMIT_NAMES);
    return traces;
  }

  #named({ id, shownId, n: trace, roots, written }: StoredTrace) {
    const startUs = this.#connection.one<{ us: number }>(FIRST_START, trace)?.us;
    const names = () => {
      // No deletion covered the trace before the change. With the same root and start, only names that are new can matter.
      const isOther = written.some(({ n, start_us }) => roots.includes(n) || start_us === startUs);
      const rows = isOther ? this.#connection.all<Pick<RunRow, 'thread' | 'user'>>(NAMES, trace) : written;
      const project = this.#connection.one<ProjectColumns>(PROJECT_OF_RUN, roots[1]);
      const [thread, user] = [rows.flatMap((row) => row.thread ?? []), rows.flatMap((row) => row.user ?? [])];
      return { thread, user, project: project ? projectNamesIn(project) : [] };
    };
    return { id, shownId, startUs, names };
  }

  /** Makes a trace one that is being deleted, and keeps its names. */
  #mark(trace: number): ChangedTrace {
    this.#connection.run(KEEP_NAMES, trace, trace, trace);
    this.#connection.run(LIMIT_NAMES);
    return hideTrace(this.#connection, this.#counters, trace, REMOVED);
  }
}

function deletionOf({ tenant, project, kind, id, at_ms: atMs }: StoredDeletion): Deletion {
  return { tenant, ...(project !== null && { project }), target: { kind, id }, atMs };
}

/** Hides a trace that is being deleted. Its new id is random: messages with the old id create a new trace. */
export function hideTrace(connection: SqliteConnection, counters: Counters, trace: number, seq: number): ChangedTrace {
  const row = connection.one<{ shown: Uint8Array; root: number | null }>(TRACE, trace);
  counters.setRoot(row?.root, trace, undefined);
  forgetNames(connection, trace);
  connection.run('UPDATE traces SET seq = ?, id = ? WHERE n = ?', seq, randomBytes(16), trace);
  const projects = connection.all<ProjectColumns>(PROJECTS, trace).flatMap(projectNamesIn);
  return { id: idText(row?.shown ?? new Uint8Array()), projects };
}

const DELETIONS = `SELECT deletions.n AS n, tenants.n AS tenant_n, tenants.name AS tenant, project, kind, id, at_ms
  FROM deletions JOIN tenants ON tenants.n = deletions.tenant`;
const OPEN = 'SELECT count(*) FROM deletions WHERE is_open = 1';
const INSERT_DELETION = 'INSERT INTO deletions (tenant, project, kind, id, at_ms, is_open) VALUES (?, ?, ?, ?, ?, 1)';
const STARTED_BEFORE =
  'EXISTS (SELECT 1 FROM runs AS earlier WHERE earlier.trace = runs.trace AND earlier.start_us < ?)';
const IS_KEPT = 'EXISTS (SELECT 1 FROM traces WHERE traces.n = runs.trace AND seq >= 0)';
const ROOT = 'SELECT 1 FROM traces JOIN runs AS roots ON roots.n = traces.root WHERE traces.n = runs.trace';
const PROJECTS = 'SELECT DISTINCT project, session_id FROM runs WHERE trace = ?';
const NAMES = 'SELECT DISTINCT thread, user FROM runs WHERE trace = ? AND coalesce(thread, user) IS NOT NULL';
const TRACE = `SELECT ${SHOWN_ID} AS shown, root FROM traces WHERE n = ?`;
const FIRST_START =
  'SELECT start_us AS us FROM runs WHERE trace = ? AND start_us IS NOT NULL ORDER BY start_us LIMIT 1';
/** Keeps the latest 2,000,000 names of deleted traces. */
const LIMIT_NAMES = 'DELETE FROM removed WHERE n <= (SELECT max(n) FROM removed) - 2000000';
const REMOVED_AMONG = `SELECT id, kind FROM removed
  WHERE tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?)) ORDER BY kind DESC`;
const KEEP_NAME = 'INSERT OR IGNORE INTO removed (tenant, id, kind) VALUES (?, ?, ?)';
const KEEP_NAMES = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, 3 - is_named FROM traces WHERE n = ?
  UNION ALL SELECT tenant, id, 2 FROM trace_names WHERE trace = ?
  UNION ALL SELECT tenant, id, 1 FROM runs WHERE trace = ? AND is_named = 0`;
