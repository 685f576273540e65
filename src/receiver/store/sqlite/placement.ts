import type { PriceList } from '../../domain/cost/prices.ts';
import { grouped } from '../../domain/grouped.ts';
import { isProvisional, mayJoin, type TraceNames } from '../../domain/identity.ts';
import { type ComparedRun, type RepeatedCall, repeatedCallsIn } from '../../domain/trace/repeated-calls.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { idBytes, idText, type SqliteConnection } from './file/database.ts';
import { IS_WAITING } from './file/schema.ts';
import { StoredTrace } from './reads/stored-trace.ts';
import { freeNames, HiddenKind, keepNames, NameKind } from './removed-names.ts';
import {
  COUNTS_ALONE,
  plainColumns,
  projectNamesIn,
  type RootColumns,
  type RunRow,
  rowUsage,
  runAt,
} from './run-row.ts';
import { deleteRun, SqliteRun, setRoot } from './sqlite-run.ts';

/**
 * Holds the runs and traces that a call changes. Assigns each run to its trace and its parent, even if the parent
 * arrives later. Updates the totals of each trace.
 */
export class TracePlacement implements TraceNames<StoredTrace> {
  readonly #connection: SqliteConnection;
  readonly #prices: PriceList;
  readonly tenant: number;
  readonly #runs = new Map<string, SqliteRun>();
  readonly #traces = new Map<number | string, StoredTrace>();
  readonly #changed = new Set<SqliteRun>();
  readonly #written = new Map<number, RunRow>();
  /** The traces of runs that are being deleted by request. */
  readonly #hidden = new Map<string, StoredTrace>();

  constructor(connection: SqliteConnection, prices: PriceList, tenant: number) {
    this.#connection = connection;
    this.#prices = prices;
    this.tenant = tenant;
  }

  find(id: string): SqliteRun | undefined {
    const known = this.#runs.get(id);
    if (known !== undefined || this.#hidden.has(id)) return known;
    // Most runs are new, and this query is faster.
    const stored = this.#connection.one<{ n: number }>(STORED, this.tenant, idBytes(id));
    const row = stored && runAt(this.#connection, stored.n);
    if (row?.hidden === HiddenKind.RUNS) return undefined;
    if (row?.hidden === HiddenKind.EVICTED) {
      // The trace is being deleted to stay within the limits, so the run is deleted now and counts as unknown. The next
      // message for the run creates it again.
      deleteRun(this.#connection, row.n);
      return undefined;
    }
    const trace = row && this.#trace(row.trace);
    if (row === undefined || trace === undefined) return undefined;
    if (trace.isHidden) {
      this.#hidden.set(id, trace);
      return undefined;
    }
    const run = SqliteRun.fromRow(row, trace, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  findOrCreate(id: string): SqliteRun {
    const run = this.find(id) ?? new SqliteRun(id, this.tenant, this.#prices);
    this.#runs.set(id, run);
    return run;
  }

  ofRun(id: string): StoredTrace | undefined {
    return this.find(id)?.trace ?? this.#hidden.get(id);
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
    if (trace?.hidden === HiddenKind.RUNS) {
      freeNames(this.#connection, n);
      return undefined;
    }
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
    const recounted = this.#join();
    for (const run of [...this.#changed]) {
      if (run.trace !== undefined && this.#hasLeftUsage(run)) recounted.add(run.trace);
      this.#spreadUsage(run);
    }
    // Write received runs first, because lists show runs with equal values in arrival order.
    for (const run of new Set([...received, ...this.#changed])) this.#write(run);
    for (const trace of recounted) this.#recountUsage(trace);
    for (const trace of this.changedTraces()) this.#compareCalls(trace);
  }

  /** Deletes runs of traces that stay. Their children wait for them in vain. */
  deleteRuns(rows: readonly RunRow[]): void {
    keepNames(this.#connection, rows, NameKind.RUN);
    for (const row of rows) {
      this.#connection.run(LEAVE_PARENT, row.trace, row.id);
      deleteRun(this.#connection, row.n);
    }
    for (const [n, own] of grouped(rows, ({ trace }) => trace)) {
      const trace = this.#trace(n);
      trace?.forget(own);
      if (trace !== undefined) this.#recountUsage(trace);
      if (trace !== undefined) this.#compareCalls(trace);
    }
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
    const isMissing = parentId !== undefined && !hasArrived(run, this.find(parentId));
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

  #adopt(received: ReadonlySet<SqliteRun>, bySpan: ReadonlyMap<string, SqliteRun>): void {
    const byId = new Map([...received].map((run) => [run.id.replaceAll('-', ''), run]));
    const keys = [...byId.keys(), ...[...received].flatMap(({ identity: { span } }) => span ?? [])];
    for (const { id } of this.#connection.all<{ id: Uint8Array }>(WAITING, this.tenant, JSON.stringify(keys))) {
      const child = this.find(idText(id));
      if (child?.trace === undefined || child.isLinked || child.waitsFor === undefined) continue;
      const ofSpan = child.parentId === undefined;
      const parent = ofSpan ? bySpan.get(spanIn(child.trace, child.waitsFor)) : byId.get(child.waitsFor);
      if (parent === undefined || !hasArrived(child, parent)) continue;
      if (!ofSpan) child.waitsFor = undefined;
      child.parentId = parent.id;
      this.#changed.add(child);
    }
  }

  /** Moves the runs of provisional traces to the traces of the parents that have arrived. Returns the latter. */
  #join(): Set<StoredTrace> {
    const joins = new Map<StoredTrace, StoredTrace>();
    const traceNow = (trace: StoredTrace | undefined): StoredTrace | undefined => {
      let now = trace;
      for (let next = now; next !== undefined; next = joins.get(next)) now = next;
      return now;
    };
    for (const run of this.#changed) {
      const from = traceNow(run.trace);
      const into = isProvisional(run, from) ? traceNow(this.#linkedParent(run)?.trace) : undefined;
      if (from === undefined || into === undefined || into === from) continue;
      setRoot(this.#connection, from.root, from.n, undefined);
      into.takeOver(this.#connection, from);
      joins.set(from, into);
    }
    if (joins.size === 0) return new Set();
    for (const run of this.#runs.values()) {
      const trace = traceNow(run.trace);
      if (trace !== undefined && trace !== run.trace) run.moveTo(trace);
    }
    for (const [name, trace] of this.#traces) this.#traces.set(name, traceNow(trace) ?? trace);
    return new Set([...joins.values()].filter((trace) => !joins.has(trace)));
  }

  /** Returns whether a run that was above this run may now have no descendant with usage. */
  #hasLeftUsage({ row, parentId, hasUsage }: SqliteRun): boolean {
    if (row === undefined) return false;
    const hasMoved = row.parent !== null && idText(row.parent) !== parentId;
    return hasMoved || (rowUsage(row) !== undefined && !hasUsage);
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
    this.#written.set(after.n, after);
  }

  /** Makes a run the root of a trace, or no root. Does nothing if the run is not in the trace. */
  #setRoot(n: number | null | undefined, trace: number, shown: RootColumns | undefined): void {
    const row = this.#written.get(n ?? -1);
    if (row === undefined) setRoot(this.#connection, n, trace, shown);
    else if (row.trace === trace) {
      const columns = shown ?? plainColumns(row);
      this.#connection.update('runs', row.n, row, columns);
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

const LEAVE_PARENT = 'UPDATE runs SET waits_for = parent WHERE trace = ? AND parent = ?';
const ADD_NAME = 'INSERT INTO trace_names VALUES (?, ?, ?)';
const STORED = 'SELECT n FROM runs WHERE tenant = ? AND id = ?';
const TRACE_BY_ID = 'SELECT n FROM traces WHERE tenant = ? AND id = ?';
const TRACE_BY_NAME = 'SELECT trace AS n FROM trace_names WHERE tenant = ? AND id = ?';
const BY_SPAN = 'SELECT id FROM runs WHERE tenant = ? AND span = ? AND +trace = ? ORDER BY n DESC LIMIT 1';
const WAITING = `SELECT id FROM runs WHERE tenant = ? AND waits_for IN (SELECT unhex(value) FROM json_each(?)) AND ${IS_WAITING}`;
const USAGE_OF_RUNS = `SELECT id, parent, below, start_us IS NOT NULL AND
  coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL AS has FROM runs WHERE trace = ?`;

/** Returns whether a run has its parent. For a provisional trace, a parent whose trace it may not join is missing. */
function hasArrived(run: SqliteRun, parent: SqliteRun | undefined): boolean {
  if (parent === undefined || !isProvisional(run, run.trace)) return parent !== undefined;
  return parent.trace === run.trace || mayJoin(run.fields, projectNamesIn(parent.shown));
}

function spanIn({ n }: StoredTrace, span: string): string {
  return `${n} ${span}`;
}

/** A run as selected by `CALLS`. Ids are hex digits, or empty if there is none. */
interface StoredCall extends ComparedRun {
  readonly countsAlone: 0 | 1;
  readonly headId: string;
  readonly isUsageRepeated: 0 | 1;
}

/** Compares the calls in a trace. Returns the new result of each run whose stored result is wrong, by run id. */
function changedCalls(connection: SqliteConnection, trace: number): Map<string, RepeatedCall> {
  const calls: StoredCall[] = JSON.parse(connection.one<{ calls: string }>(CALLS, trace)?.calls ?? '[]');
  const repeated = repeatedCallsIn(calls, ({ countsAlone }) => countsAlone === 1);
  const changed = new Map<string, RepeatedCall>();
  for (const stored of calls) {
    const { headId = '', isUsageRepeated = false } = repeated.get(stored.id) ?? {};
    if (stored.headId === headId && stored.isUsageRepeated === +isUsageRepeated) continue;
    changed.set(textOfHex(stored.id), { headId: headId === '' ? undefined : textOfHex(headId), isUsageRepeated });
  }
  return changed;
}

function textOfHex(hex: string): string {
  return idText(Buffer.from(hex, 'hex'));
}

/**
 * Selects the runs of a trace as one JSON text, because reading each row would take three times as long. Adds the
 * columns to the evidence about the call. `json_patch` omits columns that are null.
 */
const CALLS = `SELECT json_group_array(json_patch(coalesce(call, '{}'), json_object(
  'id', hex(id), 'parentId', nullif(hex(parent), ''), 'name', name, 'type', run_type, 'model', model, 'status', status,
  'startUs', start_us, 'endUs', end_us, 'sameCall', upper(replace(call ->> 'sameCall', '-', '')),
  'countsAlone', ${COUNTS_ALONE} AND coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL,
  'headId', hex(same_call), 'isUsageRepeated', is_repeated))) AS calls
  FROM runs WHERE trace = ? AND start_us IS NOT NULL`;
