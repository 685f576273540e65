import { randomBytes } from 'node:crypto';
import { comparable } from '../../domain/comparable.ts';
import type { Scope } from '../../domain/query.ts';
import { type Removal, type RemovalTarget, subtreeIn } from '../../domain/removal.ts';
import { all } from '../../filter/sql.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { idBytes, idText, type SqliteConnection } from './database.ts';
import { type Condition, ofProject } from './lists.ts';
import type { Placement } from './placement.ts';
import { type ProjectColumns, projectNamesIn } from './run-row.ts';
import { EVICTED, REMOVED } from './schema.ts';
import { forgetNames } from './stored-trace.ts';

/** The runs of a trace that a call removes. */
interface Selected {
  readonly runs: number;
  /** Keys of the runs, or undefined if the trace is removed. */
  readonly keys: readonly number[] | undefined;
}

/** Maximum number of matching runs to read in one step. */
const STEP_RUNS = 500;

/** Finds the runs that a call of `remove` selects. See `RemovalTarget`. */
export class RemovalSearch {
  readonly tenant: number;
  readonly #connection: SqliteConnection;
  readonly #target: RemovalTarget;
  readonly #condition: Condition;

  constructor(connection: SqliteConnection, tenant: number, { project }: Scope, target: RemovalTarget) {
    this.tenant = tenant;
    this.#connection = connection;
    this.#target = { ...target, id: comparable(target.id) };
    this.#condition = all([this.#ofTarget(), ...(project === undefined ? [] : this.#inProject(project))]);
  }

  /** Returns the keys of traces with selected runs, limited to about `limit` runs with keys up to `last`. */
  traces(last: number = Number.MAX_SAFE_INTEGER, limit = -1): number[] {
    const { sql, params } = this.#condition;
    const select = `SELECT DISTINCT trace AS n FROM
      (SELECT trace FROM runs WHERE +n <= ? AND ${this.#target.kind === 'trace' ? '+' : ''}tenant = ? AND ${sql} LIMIT ?)`;
    return this.#connection.all<{ n: number }>(select, last, this.tenant, ...params, limit).map(({ n }) => n);
  }

  /** Returns the selected runs of a trace that `traces` has found. */
  runsIn(trace: number): Selected {
    if (this.#target.kind !== 'run') return { runs: this.#connection.number(COUNT, trace), keys: undefined };
    const rows = this.#connection.all<{ n: number; id: Uint8Array; parent: Uint8Array | null; namesParent: 0 | 1 }>(
      LINKS,
      trace,
    );
    const links = rows.map(({ n, id, parent, namesParent }) => ({
      n,
      id: idText(id),
      parentId: parent === null ? undefined : idText(parent),
      namesParent: namesParent === 1,
    }));
    const id = idText(idBytes(this.#target.id));
    const { runs, isTrace } = subtreeIn(links, ({ parentId }) => parentId, id);
    return { runs: runs.length, keys: isTrace ? undefined : runs.map(({ n }) => n) };
  }

  /** Counts the runs that a call of `remove` would delete. Calls `check` for each trace. */
  count(check: () => void): Removal {
    const traces = this.traces().filter((trace) => {
      check();
      return this.#connection.number(IS_KEPT, trace) > 0;
    });
    return { runs: traces.reduce((sum, trace) => sum + this.runsIn(trace).runs, 0), traces: traces.length };
  }

  #ofTarget(): Condition {
    const { kind, id } = this.#target;
    switch (kind) {
      case 'run':
        return { sql: 'id = ?', params: [idBytes(id)] };
      case 'trace':
        return { sql: OF_TRACE, params: [this.tenant, idBytes(id)] };
      case 'thread':
      case 'user':
        return { sql: `${kind} = ?`, params: [id] };
      case 'project':
        return all([{ sql: 'is_root = 1', params: [] }, ofProject(this.#connection, this.tenant, id)]);
    }
  }

  /** Returns conditions on the project of the root run, and of the run itself if it is the target. */
  #inProject(project: string): Condition[] {
    const { sql, params } = ofProject(this.#connection, this.tenant, project, 'roots');
    const ofRoot = { sql: `EXISTS (${ROOT} AND (${sql}))`, params };
    return this.#target.kind === 'run' ? [ofRoot, ofProject(this.#connection, this.tenant, project)] : [ofRoot];
  }
}

/** The result of a step of a call of `remove`. */
export interface Marked extends Removal {
  readonly changed: readonly ChangedTrace[];
  /** Whether the step found runs. */
  readonly hasFound: boolean;
}

/**
 * Marks runs for deletion for about `limitMs` milliseconds within the caller's transaction. A completely removed trace
 * becomes a trace that is being deleted. If some runs of a trace stay, the others move to such a trace. `SqliteRetention`
 * then deletes the runs.
 */
export function markRemoved(
  connection: SqliteConnection,
  search: RemovalSearch,
  placement: Placement,
  last: number,
  limitMs: number,
): Marked {
  const untilMs = performance.now() + limitMs;
  const changed: ChangedTrace[] = [];
  let runs = 0;
  // The removal also waits for traces that are being evicted. Lists may show their runs after their root, and so their
  // project, is deleted.
  connection.run('UPDATE traces SET seq = ? WHERE seq = ? AND tenant = ?', REMOVED, EVICTED, search.tenant);
  const found = search.traces(last, STEP_RUNS);
  for (const trace of found) {
    if (changed.length > 0 && performance.now() > untilMs) break;
    const row = connection.one<{ id: Uint8Array; seq: number; root: number | null }>(TRACE, trace);
    // Runs of a trace that is being deleted are not counted again.
    if (row === undefined || row.seq < 0) continue;
    const selected = search.runsIn(trace);
    changed.push({ id: idText(row.id), projects: projectsOfRuns(connection, trace) });
    // A root that stays becomes the root again when the placement writes the trace.
    placement.counters.setRoot(row.root, trace, 0);
    if (selected.keys === undefined) {
      connection.run(KEEP_NAMES, trace);
      forgetNames(connection, trace);
      connection.run('UPDATE traces SET seq = ?, id = ? WHERE n = ?', REMOVED, randomBytes(16), trace);
      connection.run(KEEP_IDS, trace);
    } else {
      connection.run(KEEP_IDS, moveOut(connection, search.tenant, selected.keys));
      placement.recount(trace);
    }
    runs += selected.runs;
  }
  return { runs, traces: changed.length, changed, hasFound: found.length > 0 };
}

/** Returns the names and ids of the projects of the visible runs in a trace. */
export function projectsOfRuns(connection: SqliteConnection, trace: number): string[] {
  return connection.all<ProjectColumns>(PROJECTS, trace).flatMap(projectNamesIn);
}

/** Moves runs to a new trace that is being deleted, and returns its key. */
function moveOut(connection: SqliteConnection, tenant: number, keys: readonly number[]): number {
  const trace = connection.insert(INSERT_REMOVED_TRACE, tenant, randomBytes(16));
  const json = JSON.stringify(keys);
  connection.run('UPDATE runs SET trace = ? WHERE n IN (SELECT value FROM json_each(?))', trace, json);
  connection.run('UPDATE feedback SET trace = ? WHERE run IN (SELECT value FROM json_each(?))', trace, json);
  return trace;
}

const OF_TRACE = 'trace = (SELECT n FROM traces WHERE tenant = ? AND id = ?)';
const ROOT = 'SELECT 1 FROM traces JOIN runs AS roots ON roots.n = traces.root WHERE traces.n = runs.trace';
const PROJECTS = 'SELECT DISTINCT project, session_id FROM runs WHERE trace = ?';
const COUNT = 'SELECT count(*) FROM runs WHERE trace = ?';
const LINKS = `SELECT n, id, parent, parent IS NOT NULL OR waits_for IS NOT NULL AS namesParent
  FROM runs WHERE trace = ?`;
const IS_KEPT = 'SELECT count(*) FROM traces WHERE n = ? AND seq >= 0';
const TRACE = 'SELECT id, seq, root FROM traces WHERE n = ?';
const INSERT_REMOVED_TRACE = `INSERT INTO traces (tenant, id, seq, changed_ms, runs, pending, errors) VALUES (?, ?, ${REMOVED}, 0, 0, 0, 0)`;
/** Keeps the ids of the runs of a trace, because a message may contain no trace id. */
const KEEP_IDS = 'INSERT OR IGNORE INTO removed (tenant, id, kind) SELECT tenant, id, 1 FROM runs WHERE trace = ?';
const KEEP_NAMES = `INSERT OR IGNORE INTO removed (tenant, id, kind) SELECT tenant, id, 2 FROM (
  SELECT tenant, id FROM traces WHERE n = ?1 UNION ALL SELECT tenant, id FROM trace_names WHERE trace = ?1)`;
