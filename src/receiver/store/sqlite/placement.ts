import { isCallType } from '../../../run/same-call.ts';
import type { PriceList } from '../../domain/prices.ts';
import { ALONE } from '../../domain/repeated-calls.ts';
import type { Usage } from '../../domain/run-view.ts';
import { sumOfUsage, USAGE_KEYS } from '../../domain/summary.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { changedCalls } from './call-comparison.ts';
import type { Counters } from './counters.ts';
import { idBytes, idText, type SqliteConnection } from './database.ts';
import {
  COUNTS_USAGE,
  countedUsageIn,
  evidenceIn,
  type ProjectColumns,
  projectNamesIn,
  type RunRow,
  SELECT_RUNS,
  type SelectedRun,
  usageIn,
} from './run-row.ts';
import { deleteRun, SqliteRun } from './sqlite-run.ts';

/**
 * Holds the runs and traces that a call changes. Assigns each run to its trace and its parent, even if the parent
 * arrives later. Updates the totals of each trace.
 */
export class Placement {
  readonly counters: Counters;
  readonly #connection: SqliteConnection;
  readonly #prices: PriceList;
  readonly #tenant: number;
  readonly #runs = new Map<string, SqliteRun>();
  readonly #spans = new Map<string, SqliteRun>();
  readonly #traces = new Map<string, StoredTrace>();
  readonly #changed = new Set<SqliteRun>();
  readonly #placed = new Set<SqliteRun>();
  readonly #written = new Map<number, RunRow>();

  constructor(connection: SqliteConnection, counters: Counters, prices: PriceList, tenant: number) {
    this.#connection = connection;
    this.counters = counters;
    this.#prices = prices;
    this.#tenant = tenant;
  }

  find(id: string): SqliteRun | undefined {
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    const row = this.#connection.one<SelectedRun>(BY_ID, this.#tenant, idBytes(id));
    if (row?.evicted === 1) {
      // The trace is being deleted, so the run is deleted now and counts as unknown. The next message for the run
      // creates it again.
      deleteRun(this.#connection, this.counters, row.n);
      return undefined;
    }
    const run = row && SqliteRun.fromRow(row, this.#prices);
    if (run !== undefined) this.#runs.set(id, run);
    return run;
  }

  findOrCreate(id: string): SqliteRun {
    const run = this.find(id) ?? new SqliteRun(id, this.#tenant, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  /** Returns a trace that may be changed. */
  trace(id: string): StoredTrace {
    const trace = this.#traces.get(id) ?? StoredTrace.open(this.#connection, this.#tenant, id);
    this.#traces.set(id, trace);
    return trace;
  }

  /** Writes the runs that received messages, and all runs that changed as a result. */
  write(received: ReadonlySet<SqliteRun>): void {
    for (const run of received) {
      const { span } = run.spans;
      if (span !== undefined) this.#spans.set(span, run);
    }
    for (const run of received) this.#place(run, received, new Set());
    this.#adopt(received);
    const recounted = new Set<StoredTrace>();
    for (const run of [...this.#changed]) {
      if (this.#hasLeftUsage(run)) for (const id of [run.storedTraceId, run.traceId]) recounted.add(this.trace(id));
      if (run.waitsFor === undefined) this.#spreadUsage(run);
    }
    // Write received runs first, because lists show runs with equal values in arrival order.
    for (const run of new Set([...received, ...this.#changed])) this.#write(run);
    for (const trace of recounted) this.#recountUsage(trace);
    for (const trace of this.#traces.values()) this.#compareCalls(trace);
  }

  /** Writes the changed traces and returns them. */
  finish(seq: number, nowMs: number): ChangedTrace[] {
    for (const trace of this.#traces.values()) trace.write(this.#connection, this, seq, nowMs);
    return [...this.#traces.values()].map(({ id, projects }) => ({ id, projects: [...projects] }));
  }

  /**
   * Assigns a run to its trace and its parent. `path` contains the runs that are being assigned, each the child of the
   * next.
   */
  #place(run: SqliteRun, received: ReadonlySet<SqliteRun>, path: Set<SqliteRun>): void {
    if (this.#placed.has(run)) return;
    path.add(run);
    const { parentSpan } = run.spans;
    const parent = this.#parentOf(run, parentSpan);
    if (parent !== undefined && received.has(parent) && !path.has(parent)) this.#place(parent, received, path);
    const isLinked =
      parent !== undefined && !path.has(parent) && !(run.row !== undefined && this.#isBelow(parent, run));
    run.parentId = run.fields.parent_run_id;
    run.waitsFor = isLinked ? undefined : (run.parentId?.replaceAll('-', '') ?? parentSpan);
    this.#move(run, run.fields.trace_id ?? (isLinked ? parent.traceId : run.id));
    this.#changed.add(run);
    this.#placed.add(run);
    path.delete(run);
  }

  #parentOf(run: SqliteRun, parentSpan: string | undefined): SqliteRun | undefined {
    if (run.fields.parent_run_id !== undefined) return this.find(run.fields.parent_run_id);
    const parent = parentSpan === undefined ? undefined : this.#findBySpan(parentSpan);
    if (parent === undefined || parent === run) return undefined;
    run.fields.parent_run_id = parent.id;
    return parent;
  }

  #findBySpan(span: string): SqliteRun | undefined {
    const known = this.#spans.get(span);
    if (known !== undefined) return known;
    const row = this.#connection.one<{ id: Uint8Array }>(BY_SPAN, this.#tenant, Buffer.from(span, 'hex'));
    return row && this.find(idText(row.id));
  }

  #linkedParent({ waitsFor, parentId }: SqliteRun): SqliteRun | undefined {
    return waitsFor !== undefined || parentId === undefined ? undefined : this.find(parentId);
  }

  #isBelow(run: SqliteRun, above: SqliteRun): boolean {
    const seen = new Set<SqliteRun>();
    for (let at: SqliteRun | undefined = run; at !== undefined && !seen.has(at); at = this.#linkedParent(at)) {
      if (at === above) return true;
      seen.add(at);
    }
    return false;
  }

  /** Links stored runs to parents that have just arrived. */
  #adopt(received: ReadonlySet<SqliteRun>): void {
    const parents = new Map<string | undefined, SqliteRun>();
    for (const run of received) parents.set(run.id.replaceAll('-', ''), run);
    for (const [span, run] of this.#spans) parents.set(span, run);
    const keys = JSON.stringify([...parents.keys()]);
    for (const { id } of this.#connection.all<{ id: Uint8Array }>(WAITING, this.#tenant, keys)) {
      const child = this.find(idText(id));
      const parent = parents.get(child?.waitsFor);
      if (child === undefined || parent === undefined || this.#isBelow(parent, child)) continue;
      child.waitsFor = undefined;
      child.fields.parent_run_id = parent.id;
      child.parentId = parent.id;
      if (!child.isNamed) this.#move(child, parent.traceId);
      this.#changed.add(child);
    }
  }

  /** Moves a run to another trace. Descendants without a `trace_id` move with the run. */
  #move(run: SqliteRun, traceId: string): void {
    const { trace: from, traceId: fromId } = run;
    const { n: to } = this.trace(traceId);
    if (from === to) return;
    const below = from === undefined ? [] : this.#unnamedBelow(run, from);
    for (const one of [run, ...below]) {
      one.trace = to;
      one.traceId = traceId;
      one.repeated = ALONE;
      this.#changed.add(one);
    }
    if (from !== undefined) this.trace(fromId);
  }

  /** Returns a run's descendants in a trace. Excludes runs with a `trace_id`, and their descendants. */
  #unnamedBelow(run: SqliteRun, trace: number): SqliteRun[] {
    const rows = this.#connection.all<{ id: Uint8Array }>(UNNAMED, trace);
    for (const { id } of rows) this.find(idText(id));
    return [...this.#runs.values()].filter((one) => {
      const path = new Set<SqliteRun>();
      let at: SqliteRun | undefined = one;
      while (at !== undefined && at !== run && at.trace === trace && !at.isNamed && !path.has(at)) {
        path.add(at);
        at = this.#linkedParent(at);
      }
      return at === run && one !== run;
    });
  }

  /** Returns whether a run that was above this run may now have no descendant with usage. */
  #hasLeftUsage({ row, trace, parentId, hasUsage }: SqliteRun): boolean {
    if (row === undefined) return false;
    const hasMoved = row.trace !== trace || (row.parent !== null && idText(row.parent) !== parentId);
    return hasMoved || (usageIn(row) !== undefined && !hasUsage);
  }

  #spreadUsage(run: SqliteRun): void {
    if (!run.hasUsage && !run.below) return;
    for (
      let at = this.#linkedParent(run);
      at?.trace === run.trace && at?.below === false;
      at = this.#linkedParent(at)
    ) {
      at.below = true;
      this.#changed.add(at);
    }
  }

  #write(run: SqliteRun): void {
    const { row: before, storedTraceId } = run;
    const after = run.write(this.#connection);
    const to = this.trace(run.traceId);
    if (before === undefined || before.trace === to.n) to.change(before, after);
    else {
      this.trace(storedTraceId).change(before, undefined);
      to.change(undefined, after);
      this.#connection.run('UPDATE feedback SET trace = ? WHERE run = ?', to.n, after.n);
    }
    if (before !== undefined) this.counters.add(before, -1);
    this.counters.add(after, 1);
    this.#written.set(after.n, after);
  }

  /** Sets whether a run is the root of a trace. Does nothing if the run is not in the trace. */
  setRoot(n: number | null | undefined, trace: number, isRoot: 0 | 1): void {
    const row = this.#written.get(n ?? -1);
    if (row === undefined) this.counters.setRoot(n, trace, isRoot);
    else if (row.trace === trace && row.is_root !== isRoot) {
      this.#connection.run('UPDATE runs SET is_root = ? WHERE n = ?', isRoot, row.n);
      // The counters read this row at the end of the transaction.
      row.is_root = isRoot;
    }
  }

  /** Recalculates which runs in a trace have a descendant with usage. */
  #recountUsage({ n: trace }: StoredTrace): void {
    const rows = this.#connection.all<{ id: Uint8Array; parent: Uint8Array | null; below: number; has: number }>(
      USAGE_OF_RUNS,
      trace,
    );
    const parents = new Map(rows.map(({ id, parent }) => [idText(id), parent === null ? undefined : idText(parent)]));
    const above = new Set<string>();
    for (const { id, has } of rows) {
      if (has === 0) continue;
      for (let at = parents.get(idText(id)); at !== undefined && !above.has(at); at = parents.get(at)) above.add(at);
    }
    for (const { id, below } of rows) {
      const run = above.has(idText(id)) === (below === 1) ? undefined : this.find(idText(id));
      if (run === undefined) continue;
      run.below = !run.below;
      this.#write(run);
    }
  }

  /** Finds the runs in a trace that record the same call as another run. The runs must be written first. */
  #compareCalls({ n: trace, hasSeveralSources }: StoredTrace): void {
    for (const [id, repeated] of hasSeveralSources ? changedCalls(this.#connection, trace) : []) {
      const run = this.find(id);
      if (run === undefined) continue;
      run.repeated = repeated;
      this.#write(run);
    }
  }
}

const BY_ID = `${SELECT_RUNS} WHERE runs.tenant = ? AND runs.id = ?`;
const BY_SPAN = 'SELECT id FROM runs WHERE tenant = ? AND span = ? ORDER BY n DESC LIMIT 1';
const WAITING = 'SELECT id FROM runs WHERE tenant = ? AND waits_for IN (SELECT unhex(value) FROM json_each(?))';
const UNNAMED = 'SELECT id FROM runs WHERE trace = ? AND is_named = 0 AND parent IS NOT NULL';
const USAGE_OF_RUNS = `SELECT id, parent, below, start_us IS NOT NULL AND
  coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL AS has FROM runs WHERE trace = ?`;
/** Columns of the table `traces` that are derived from runs. */
type TraceRow = {
  readonly n: number;
  readonly root: number | null;
  runs: number;
  pending: number;
  errors: number;
  end_us: number | null;
  readonly sources: string;
};

/**
 * A trace that is being changed. Changes to runs update the trace's totals incrementally, so changes cost the same in
 * large and small traces.
 */
class StoredTrace {
  readonly id: string;
  readonly n: number;
  readonly #row: TraceRow;
  /** Sources of the calls in the trace, and the runs that they name. */
  readonly #sources: Set<string | null>;
  /** See `ChangedTrace`. The totals change for the project of the root too. */
  readonly projects: Set<string> = new Set();
  #usage: Usage | undefined;
  /** Whether the totals must be recalculated from all runs. */
  isStale = false;

  /** Reads a trace. Creates the trace if it does not exist. */
  static open(connection: SqliteConnection, tenant: number, id: string): StoredTrace {
    const select = 'SELECT * FROM traces WHERE tenant = ? AND id = ?';
    const row = connection.one<TraceRow>(select, tenant, idBytes(id));
    if (row !== undefined) return new StoredTrace(row, id);
    connection.run(INSERT_TRACE, tenant, idBytes(id));
    return StoredTrace.open(connection, tenant, id);
  }

  private constructor(row: TraceRow, id: string) {
    this.id = id;
    this.n = row.n;
    this.#row = { ...row };
    this.#sources = new Set(JSON.parse(row.sources));
    this.#usage = usageIn(row);
  }

  /** Whether the trace has had calls of several sources, or calls that name a run, which may record the same call. */
  get hasSeveralSources(): boolean {
    return this.#sources.size > 1;
  }

  /**
   * Updates the totals for a changed run. `before` is undefined if the run joins the trace. `after` is undefined if the
   * run leaves the trace.
   */
  change(before: RunRow | undefined, after: RunRow | undefined): void {
    this.addProjects(before, after);
    const sums = this.#row;
    sums.runs += +isVisible(after) - +isVisible(before);
    sums.pending += +(after?.status === 'pending') - +(before?.status === 'pending');
    sums.errors += +isCountedError(after) - +isCountedError(before);
    if (after !== undefined && isCallType(after.run_type ?? '') && !this.hasSeveralSources) {
      const { source = null, sameCall } = evidenceIn(after);
      this.#sources.add(source);
      if (sameCall !== undefined) this.#sources.add(sameCall);
    }
    const [endBefore, endAfter] = [before?.end_us ?? 0, after?.end_us ?? 0];
    if (endBefore > endAfter) this.isStale = true;
    if (endAfter > 0) sums.end_us = Math.max(sums.end_us ?? 0, endAfter);
    const [usageBefore, usageAfter] = [before && countedUsageIn(before), after && countedUsageIn(after)];
    if (usageBefore === undefined) this.#usage = sumOfUsage(this.#usage, usageAfter);
    else if (USAGE_KEYS.some((key) => usageBefore[key] !== usageAfter?.[key])) this.isStale = true;
  }

  /** Writes the trace, or deletes a trace without runs. The runs must be written first. */
  write(connection: SqliteConnection, placement: Placement, seq: number, nowMs: number): void {
    const { n } = this;
    const [root, rootBefore] = [this.#findRoot(connection), this.#row.root];
    if (root === undefined && connection.one('SELECT 1 FROM runs WHERE trace = ?', n) === undefined) {
      connection.run('DELETE FROM traces WHERE n = ?', n);
      return;
    }
    if (this.isStale) {
      const totals = connection.one<Readonly<Record<string, number | null>>>(TOTALS, n);
      Object.assign(this.#row, totals);
      this.#usage = usageIn(totals ?? {});
    }
    if (root?.n !== rootBefore) {
      this.addProjects(connection.one<ProjectColumns>(PROJECT_OF_RUN, rootBefore));
      placement.setRoot(rootBefore, n, 0);
    }
    placement.setRoot(root?.n, n, 1);
    this.addProjects(root);
    const { runs, pending, errors, end_us } = this.#row;
    const usage = USAGE_KEYS.map((key) => this.#usage?.[key] ?? null);
    const sources = JSON.stringify([...this.#sources]);
    connection.run(UPDATE_TRACE, seq, nowMs, root?.n ?? null, runs, pending, errors, end_us, sources, ...usage, n);
  }

  /** Returns the run whose id is the trace id, or the first run if that run is missing. */
  #findRoot(connection: SqliteConnection): (ProjectColumns & { readonly n: number }) | undefined {
    return connection.one(OWN_ROOT, this.n, idBytes(this.id)) ?? connection.one(FIRST_ROOT, this.n);
  }

  addProjects(...rows: readonly (ProjectColumns | undefined)[]): void {
    for (const row of rows) for (const name of row ? projectNamesIn(row) : []) this.projects.add(name);
  }
}

function isVisible(row: RunRow | undefined): boolean {
  return row !== undefined && row.start_us !== null;
}

function isCountedError(row: RunRow | undefined): boolean {
  return row?.status === 'error' && row.same_call === null;
}

const INSERT_TRACE =
  'INSERT INTO traces (tenant, id, seq, changed_ms, runs, pending, errors) VALUES (?, ?, 0, 0, 0, 0, 0)';
const UPDATE_TRACE = `UPDATE traces SET seq = ?, changed_ms = ?, root = ?, runs = ?, pending = ?, errors = ?, end_us = ?, sources = ?,
  ${USAGE_KEYS.map((key) => `${key} = ?`).join(', ')} WHERE n = ?`;
const OWN_ROOT = `SELECT runs.n AS n, project, session_id FROM traces JOIN runs ON runs.tenant = traces.tenant AND runs.id = traces.id
  WHERE traces.n = ?1 AND traces.id = ?2 AND runs.trace = ?1 AND start_us IS NOT NULL`;
const FIRST_ROOT =
  'SELECT n, project, session_id FROM runs WHERE trace = ? AND start_us IS NOT NULL ORDER BY start_us, n LIMIT 1';
const PROJECT_OF_RUN = 'SELECT project, session_id FROM runs WHERE n = ?';
const TOTALS = `SELECT count(*) AS runs, coalesce(sum(status = 'pending'), 0) AS pending,
    coalesce(sum(status = 'error' AND same_call IS NULL), 0) AS errors, max(end_us) AS end_us,
    ${USAGE_KEYS.map((key) => `sum(${key}) FILTER (WHERE ${COUNTS_USAGE}) AS ${key}`).join(', ')}
  FROM runs WHERE trace = ? AND start_us IS NOT NULL`;
