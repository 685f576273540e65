import type { TraceNames } from '../../domain/identity.ts';
import type { PriceList } from '../../domain/prices.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { changedCalls } from './call-comparison.ts';
import type { Counters } from './counters.ts';
import { idBytes, idText, type SqliteConnection } from './database.ts';
import { plainColumns, type RootColumns, type RunRow, SELECT_RUNS, type SelectedRun, usageIn } from './run-row.ts';
import { IS_WAITING } from './schema.ts';
import { deleteRun, SqliteRun } from './sqlite-run.ts';
import { StoredTrace } from './stored-trace.ts';

/**
 * Holds the runs and traces that a call changes. Assigns each run to its trace and its parent, even if the parent
 * arrives later. Updates the totals of each trace.
 */
export class Placement implements TraceNames<StoredTrace> {
  readonly counters: Counters;
  readonly #connection: SqliteConnection;
  readonly #prices: PriceList;
  readonly tenant: number;
  readonly #runs = new Map<string, SqliteRun>();
  /** Traces by key and by name. */
  readonly #traces = new Map<number | string, StoredTrace>();
  readonly #changed = new Set<SqliteRun>();
  readonly #written = new Map<number, RunRow>();

  constructor(connection: SqliteConnection, counters: Counters, prices: PriceList, tenant: number) {
    this.#connection = connection;
    this.counters = counters;
    this.#prices = prices;
    this.tenant = tenant;
  }

  find(id: string): SqliteRun | undefined {
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    // Most runs are new, and this query is faster.
    const stored = this.#connection.one<{ n: number }>(STORED, this.tenant, idBytes(id));
    const row = stored && this.#connection.one<SelectedRun>(BY_KEY, stored.n);
    if (row?.evicted === 1) {
      // The trace is being deleted, so the run is deleted now and counts as unknown. The next message for the run
      // creates it again.
      deleteRun(this.#connection, this.counters, row.n);
      return undefined;
    }
    const trace = row && this.#trace(row.trace);
    if (trace === undefined) return undefined;
    const run = SqliteRun.fromRow(row as SelectedRun, trace, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  findOrCreate(id: string): SqliteRun {
    const run = this.find(id) ?? new SqliteRun(id, this.tenant, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  ofRun(id: string): StoredTrace | undefined {
    return this.find(id)?.trace;
  }

  named(name: string): StoredTrace | undefined {
    const known = this.#traces.get(name);
    if (known !== undefined) return known;
    const [tenant, id] = [this.tenant, idBytes(name)];
    const row = this.#connection.one<{ n: number }>(TRACE_BY_ID, tenant, id);
    const found = row ?? this.#connection.one<{ n: number }>(TRACE_BY_NAME, tenant, id);
    const trace = found && this.#trace(found.n);
    if (trace !== undefined) this.#traces.set(name, trace);
    return trace;
  }

  create(key: string, isNamed: boolean): StoredTrace {
    const trace = StoredTrace.create(this.#connection, this.tenant, key, isNamed);
    this.#traces.set(trace.n, trace).set(key, trace);
    return trace;
  }

  setName(trace: StoredTrace, name: string, isTraceId: boolean): void {
    const other = isTraceId ? trace.id : name;
    if (isTraceId) trace.setId(this.#connection, name);
    if (other !== trace.id) this.#connection.run(ADD_NAME, this.tenant, idBytes(other), trace.n);
    this.#traces.set(name, trace);
  }

  #trace(n: number): StoredTrace | undefined {
    const trace = this.#traces.get(n) ?? StoredTrace.read(this.#connection, n);
    if (trace !== undefined) this.#traces.set(n, trace);
    return trace;
  }

  /** Writes the runs that received messages, and all runs that changed as a result. */
  write(received: ReadonlySet<SqliteRun>, traces: ReadonlyMap<string, StoredTrace>): void {
    const bySpan = new Map<string, SqliteRun>();
    for (const run of received) {
      run.trace ??= traces.get(run.id) as StoredTrace;
      if (run.identity.span !== undefined) bySpan.set(spanIn(run.trace, run.identity.span), run);
    }
    for (const run of received) this.#link(run, bySpan);
    this.#adopt(received, bySpan);
    const recounted = new Set<StoredTrace>();
    for (const run of [...this.#changed]) {
      if (run.trace !== undefined && this.#hasLeftUsage(run)) recounted.add(run.trace);
      this.#spreadUsage(run);
    }
    // Write received runs first, because lists show runs with equal values in arrival order.
    for (const run of new Set([...received, ...this.#changed])) this.#write(run);
    for (const trace of recounted) this.#recountUsage(trace);
    for (const trace of this.changedTraces()) this.#compareCalls(trace);
  }

  finish(seq: number, nowMs: number): ChangedTrace[] {
    const setRoot = this.#setRoot.bind(this);
    return this.changedTraces().flatMap((trace) => {
      trace.write(this.#connection, setRoot, seq, nowMs);
      return trace.changes;
    });
  }

  changedTraces(): StoredTrace[] {
    return [...new Set(this.#traces.values())].filter(({ isChanged }) => isChanged);
  }

  /** Finds the parent of a received run. Spans find only parents in their trace. */
  #link(run: SqliteRun, bySpan: ReadonlyMap<string, SqliteRun>): void {
    const { parentId, parentSpan } = run.identity;
    run.parentId = parentId ?? this.#parentBySpan(run, bySpan)?.id;
    const isMissing = parentId !== undefined && this.find(parentId) === undefined;
    run.waitsFor = isMissing ? parentId.replaceAll('-', '') : parentSpan;
    this.#changed.add(run);
  }

  #parentBySpan({ identity: { parentSpan }, trace }: SqliteRun, bySpan: ReadonlyMap<string, SqliteRun>) {
    if (parentSpan === undefined || trace === undefined) return undefined;
    const received = bySpan.get(spanIn(trace, parentSpan));
    if (received !== undefined) return received;
    const span = Buffer.from(parentSpan, 'hex');
    const row = this.#connection.one<{ id: Uint8Array }>(BY_SPAN, this.tenant, span, trace.n);
    return row && this.find(idText(row.id));
  }

  #linkedParent({ isLinked, parentId }: SqliteRun): SqliteRun | undefined {
    return isLinked && parentId !== undefined ? this.find(parentId) : undefined;
  }

  /** Links stored runs to parents that have just arrived. */
  #adopt(received: ReadonlySet<SqliteRun>, bySpan: ReadonlyMap<string, SqliteRun>): void {
    const byId = new Map([...received].map((run) => [run.id.replaceAll('-', ''), run]));
    const keys = [...byId.keys(), ...[...received].flatMap(({ identity: { span } }) => span ?? [])];
    for (const { id } of this.#connection.all<{ id: Uint8Array }>(WAITING, this.tenant, JSON.stringify(keys))) {
      const child = this.find(idText(id));
      if (child?.trace === undefined || child.isLinked || child.waitsFor === undefined) continue;
      const ofSpan = child.parentId === undefined;
      const parent = ofSpan ? bySpan.get(spanIn(child.trace, child.waitsFor)) : byId.get(child.waitsFor);
      if (parent === undefined) continue;
      if (!ofSpan) child.waitsFor = undefined;
      child.parentId = parent.id;
      this.#changed.add(child);
    }
  }

  /** Returns whether a run that was above this run may now have no descendant with usage. */
  #hasLeftUsage({ row, parentId, hasUsage }: SqliteRun): boolean {
    if (row === undefined) return false;
    const hasMoved = row.parent !== null && idText(row.parent) !== parentId;
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
    const { row: before } = run;
    const after = run.write(this.#connection);
    run.trace?.change(before, after);
    if (before !== undefined) this.counters.add(before, -1);
    this.counters.add(after, 1);
    this.#written.set(after.n, after);
  }

  /** Makes a run the root of a trace, or no root. Does nothing if the run is not in the trace. */
  #setRoot(n: number | null | undefined, trace: number, shown: RootColumns | undefined): void {
    const row = this.#written.get(n ?? -1);
    if (row === undefined) this.counters.setRoot(n, trace, shown);
    else if (row.trace === trace) {
      const columns = shown ?? plainColumns(row);
      this.#connection.update('runs', row.n, row, columns);
      // The counters read this row at the end of the transaction.
      Object.assign(row, columns);
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

const ADD_NAME = 'INSERT INTO trace_names VALUES (?, ?, ?)';
const STORED = 'SELECT n FROM runs WHERE tenant = ? AND id = ?';
const TRACE_BY_ID = 'SELECT n FROM traces WHERE tenant = ? AND id = ?';
const TRACE_BY_NAME = 'SELECT trace AS n FROM trace_names WHERE tenant = ? AND id = ?';
const BY_KEY = `${SELECT_RUNS} WHERE runs.n = ?`;
const BY_SPAN = 'SELECT id FROM runs WHERE tenant = ? AND span = ? AND +trace = ? ORDER BY n DESC LIMIT 1';
const WAITING = `SELECT id FROM runs WHERE tenant = ? AND waits_for IN (SELECT unhex(value) FROM json_each(?)) AND ${IS_WAITING}`;
const USAGE_OF_RUNS = `SELECT id, parent, below, start_us IS NOT NULL AND
  coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL AS has FROM runs WHERE trace = ?`;

function spanIn({ n }: StoredTrace, span: string): string {
  return `${n} ${span}`;
}
