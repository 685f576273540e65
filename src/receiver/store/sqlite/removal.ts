import { randomBytes } from 'node:crypto';
import { grouped } from '../../domain/grouped.ts';
import type { Removal, RemovalTarget, Scope } from '../store.ts';
import { idBytes, idText, type SqliteConnection } from './database.ts';
import { all, type Condition, ofProject } from './lists.ts';
import type { Placement } from './placement.ts';
import { EVICTED, REMOVED, REMOVED_ALONE } from './schema.ts';

/** The runs of a trace that a call removes. */
interface Selected {
  readonly runs: number;
  /** Keys of the runs, or undefined if all runs in the trace are removed. */
  readonly keys: readonly number[] | undefined;
}

/** Maximum number of matching runs to read in one step. */
const STEP_RUNS = 500;

/** Finds the runs that a call of `remove` selects. */
export class RemovalSearch {
  readonly #connection: SqliteConnection;
  readonly #tenant: number;
  readonly #target: RemovalTarget;
  readonly #ofProjects: Condition | undefined;

  constructor(connection: SqliteConnection, tenant: number, { project }: Scope, target: RemovalTarget) {
    this.#connection = connection;
    this.#tenant = tenant;
    this.#target = target;
    const projects = [project, target.kind === 'project' ? target.id : undefined].filter((name) => name !== undefined);
    const conditions = projects.map((name) => ofProject(connection, tenant, name));
    this.#ofProjects = conditions.length === 0 ? undefined : all([VISIBLE, ...conditions]);
  }

  /** Whether only the runs of a project are selected. */
  get isOfProject(): boolean {
    return this.#ofProjects !== undefined;
  }

  /** Returns the keys of traces with selected runs, limited to about `limit` runs with keys up to `last`. */
  traces(last: number = Number.MAX_SAFE_INTEGER, limit = -1): number[] {
    const { sql, values } = all([...(this.#ofProjects === undefined ? [] : [this.#ofProjects]), this.#ofTarget()]);
    const select = `SELECT DISTINCT trace AS n FROM
      (SELECT trace FROM runs WHERE +n <= ? AND ${this.#target.kind === 'trace' ? '+' : ''}tenant = ? AND ${sql} LIMIT ?)`;
    return this.#connection.all<{ n: number }>(select, last, this.#tenant, ...values, limit).map(({ n }) => n);
  }

  #ofTarget(): Condition {
    const { kind, id } = this.#target;
    switch (kind) {
      case 'run':
        return { sql: 'id = ?', values: [idBytes(id)] };
      case 'trace':
        return { sql: OF_TRACE, values: [this.#tenant, idBytes(id)] };
      case 'thread':
      case 'user':
        return { sql: `${kind} = ?`, values: [id] };
      case 'project':
        return VISIBLE;
    }
  }

  /** Returns the selected runs of a trace. */
  runsIn(trace: number): Selected {
    const count = this.#connection.number('SELECT count(*) FROM runs WHERE trace = ?', trace);
    // If all visible runs are in the project, the runs that are not visible yet are as well.
    let keys = this.#target.kind === 'run' ? this.#subtree(trace) : undefined;
    if (this.#ofProjects !== undefined) {
      const { sql, values } = this.#ofProjects;
      const select = 'SELECT n FROM runs WHERE trace = ? AND';
      const outside = this.#connection.number(
        `${select} start_us IS NOT NULL AND (${sql}) IS NOT TRUE LIMIT 1`,
        trace,
        ...values,
      );
      if (outside > 0) {
        const inside = this.#connection.all<{ n: number }>(`${select} ${sql}`, trace, ...values).map(({ n }) => n);
        const own = new Set(keys ?? inside);
        keys = inside.filter((n) => own.has(n));
      }
    }
    return keys === undefined || keys.length === count ? { runs: count, keys: undefined } : { runs: keys.length, keys };
  }

  /** Returns the keys of the run and its descendants in the trace. */
  #subtree(trace: number): number[] {
    const rows = this.#connection.all<{ n: number; id: Uint8Array; parent: Uint8Array | null }>(LINKS, trace);
    const children = grouped(rows, ({ parent }) => (parent === null ? '' : idText(parent)));
    const found = rows.filter(({ id }) => idText(id) === this.#target.id);
    for (const { id } of found) found.push(...(children.get(idText(id)) ?? []));
    return found.map(({ n }) => n);
  }
}

/** Counts the runs that a call of `remove` would delete. */
export function countRemovable(search: RemovalSearch): Removal {
  const traces = search.traces();
  return { runs: traces.reduce((sum, trace) => sum + search.runsIn(trace).runs, 0), traces: traces.length };
}

/** The result of a step of a call of `remove`. */
export interface Marked extends Removal {
  readonly traceIds: readonly string[];
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
  const traceIds: string[] = [];
  let [runs, hasFound] = [0, false];
  for (const trace of search.traces(last, STEP_RUNS)) {
    if (hasFound && performance.now() > untilMs) break;
    const selected = search.runsIn(trace);
    const row = connection.one<RemovedTrace>(TRACE, trace);
    if (selected.runs === 0 || row === undefined) continue;
    hasFound = true;
    if (row.seq < 0) {
      // The trace is already being deleted, perhaps to stay within the limits.
      connection.run('UPDATE traces SET seq = ? WHERE n = ? AND seq = ?', REMOVED, trace, EVICTED);
      continue;
    }
    // A root that stays becomes the root again when the placement writes the trace.
    placement.counters.setRoot(row.root, trace, 0);
    if (selected.keys === undefined) {
      connection.run('INSERT OR IGNORE INTO removed (tenant, id, kind) VALUES (?, ?, 2)', row.tenant, row.id);
      connection.run('UPDATE traces SET seq = ?, id = ? WHERE n = ?', REMOVED, randomBytes(16), trace);
    } else {
      moveOut(connection, row.tenant, selected.keys, search.isOfProject ? REMOVED_ALONE : REMOVED);
      placement.recount(idText(row.id));
    }
    runs += selected.runs;
    traceIds.push(idText(row.id));
  }
  return { runs, traces: traceIds.length, traceIds, hasFound };
}

interface RemovedTrace {
  readonly id: Uint8Array;
  readonly seq: number;
  readonly tenant: number;
  readonly root: number | null;
}

/** Moves runs to a new trace that is being deleted. */
function moveOut(connection: SqliteConnection, tenant: number, keys: readonly number[], seq: number): void {
  const trace = connection.insert(INSERT_REMOVED_TRACE, tenant, randomBytes(16), seq);
  const json = JSON.stringify(keys);
  connection.run(KEEP_IDS, seq, json);
  connection.run('UPDATE runs SET trace = ? WHERE n IN (SELECT value FROM json_each(?))', trace, json);
  connection.run('UPDATE feedback SET trace = ? WHERE run IN (SELECT value FROM json_each(?))', trace, json);
}

const VISIBLE: Condition = { sql: 'start_us IS NOT NULL', values: [] };
const OF_TRACE = 'trace = (SELECT n FROM traces WHERE tenant = ? AND id = ?)';
const LINKS = 'SELECT n, id, CASE WHEN waits_for IS NULL THEN parent END AS parent FROM runs WHERE trace = ?';
const TRACE = 'SELECT id, seq, tenant, root FROM traces WHERE n = ?';
const INSERT_REMOVED_TRACE =
  'INSERT INTO traces (tenant, id, seq, changed_ms, runs, pending, errors) VALUES (?, ?, ?, 0, 0, 0, 0)';
const KEEP_IDS = `INSERT OR IGNORE INTO removed (tenant, id, kind) SELECT tenant, id, ? = ${REMOVED}
  FROM runs WHERE n IN (SELECT value FROM json_each(?))`;
