import type { Prices } from '../prices.ts';
import type { Contribution, Counters } from './counters.ts';
import { idBytes, idText, type Row, type SqliteConnection } from './database.ts';
import { deleteRun } from './delete-run.ts';
import { SELECT_RUN, StoredRun } from './stored-run.ts';
import { StoredTrace } from './stored-trace.ts';

/** Where a run was when the call began. */
interface Origin {
  readonly trace: number | undefined;
  readonly traceId: string;
  readonly parentId: string | undefined;
  readonly isLinked: boolean;
}

/**
 * The runs and traces that a call changes. It places each run in its trace and below its parent, also if the parent
 * arrives later, and keeps the sums of traces.
 */
export class Placement {
  readonly #connection: SqliteConnection;
  readonly #counters: Counters;
  readonly #prices: Prices;
  readonly #tenant: number;
  readonly #runs = new Map<string, StoredRun>();
  readonly #spans = new Map<string, StoredRun>();
  readonly #origins = new Map<StoredRun, Origin>();
  readonly #traces = new Map<string, StoredTrace>();
  readonly #changed = new Set<StoredRun>();
  readonly #placed = new Set<StoredRun>();
  /** Traces in which runs may no longer have usage below them. */
  readonly #recounted = new Set<StoredTrace>();

  constructor(connection: SqliteConnection, counters: Counters, prices: Prices, tenant: number) {
    this.#connection = connection;
    this.#counters = counters;
    this.#prices = prices;
    this.#tenant = tenant;
  }

  find(id: string): StoredRun | undefined {
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    const row = this.#connection.one(BY_ID, this.#tenant, idBytes(id));
    return row === undefined ? undefined : this.#loaded(row);
  }

  findOrCreate(id: string): StoredRun {
    const run = this.find(id) ?? new StoredRun(id, this.#tenant);
    this.#runs.set(id, run);
    return run;
  }

  trace(id: string): StoredTrace {
    const trace = this.#traces.get(id) ?? StoredTrace.open(this.#connection, this.#tenant, id);
    this.#traces.set(id, trace);
    return trace;
  }

  /** Writes the runs that received messages, and all runs and traces that change with them. */
  write(received: ReadonlySet<StoredRun>): void {
    for (const run of received) {
      const { span } = run.spans;
      if (span !== undefined) this.#spans.set(span, run);
    }
    for (const run of received) this.#place(run, received, new Set());
    for (const run of received) for (const child of this.#waitingFor(run)) this.#adopt(child, run);
    for (const run of this.#changed) run.refresh(this.#connection, this.#prices);
    for (const run of [...this.#changed]) this.#reportUsage(run);
    // Received runs come first, because lists have runs with the same value in the order in which they arrived.
    for (const run of new Set([...received, ...this.#changed])) this.#write(run);
    for (const trace of this.#recounted) this.#recountUsage(trace);
  }

  /** Writes the traces. Returns their ids. */
  finish(seq: number, nowMs: number): string[] {
    for (const trace of this.#traces.values()) trace.write(this.#connection, seq, nowMs);
    return [...this.#traces.keys()];
  }

  /** Loads a run. A run of an evicted trace is deleted at once, because later messages create it again. */
  #loaded(row: Row): StoredRun | undefined {
    if (row.evicted === 1) {
      deleteRun(this.#connection, this.#counters, row.n as number);
      return undefined;
    }
    const run = StoredRun.fromRow(row, this.#tenant);
    this.#runs.set(run.id, run);
    const { trace, traceId, parentId, waitsFor } = run;
    this.#origins.set(run, { trace, traceId, parentId, isLinked: parentId !== undefined && waitsFor === undefined });
    return run;
  }

  #findBySpan(span: string): StoredRun | undefined {
    const known = this.#spans.get(span);
    if (known !== undefined) return known;
    const row = this.#connection.one<{ id: Uint8Array }>(BY_SPAN, this.#tenant, Buffer.from(span, 'hex'));
    return row === undefined ? undefined : this.find(idText(row.id));
  }

  /** `path` has the runs that are being placed, each the child of the next. */
  #place(run: StoredRun, received: ReadonlySet<StoredRun>, path: Set<StoredRun>): void {
    if (this.#placed.has(run)) return;
    path.add(run);
    const { parentSpan } = run.spans;
    const parent = this.#parentOf(run, parentSpan);
    if (parent !== undefined && received.has(parent) && !path.has(parent)) this.#place(parent, received, path);
    const isLinked = parent !== undefined && !path.has(parent) && !(run.n !== undefined && this.#isBelow(parent, run));
    run.parentId = run.fields.parent_run_id;
    run.waitsFor = isLinked ? undefined : (run.parentId?.replaceAll('-', '') ?? parentSpan);
    run.isNamed = run.fields.trace_id !== undefined;
    this.#move(run, run.fields.trace_id ?? (isLinked ? parent.traceId : run.id));
    this.#changed.add(run);
    this.#placed.add(run);
    path.delete(run);
  }

  #parentOf(run: StoredRun, parentSpan: string | undefined): StoredRun | undefined {
    if (run.fields.parent_run_id !== undefined) return this.find(run.fields.parent_run_id);
    const parent = parentSpan === undefined ? undefined : this.#findBySpan(parentSpan);
    if (parent === undefined || parent === run) return undefined;
    run.fields.parent_run_id = parent.id;
    return parent;
  }

  /** Whether `run` is `above` or nested below it. */
  #isBelow(run: StoredRun, above: StoredRun): boolean {
    const seen = new Set<StoredRun>();
    for (let at: StoredRun | undefined = run; at !== undefined && !seen.has(at); ) {
      if (at === above) return true;
      seen.add(at);
      at = at.waitsFor !== undefined || at.parentId === undefined ? undefined : this.find(at.parentId);
    }
    return false;
  }

  /** Returns the stored runs whose parent is a run that has just arrived. */
  #waitingFor(run: StoredRun): StoredRun[] {
    const { span } = run.spans;
    const keys = [idBytes(run.id), span === undefined ? null : Buffer.from(span, 'hex')];
    const rows = this.#connection.all<{ id: Uint8Array }>(WAITING, this.#tenant, ...keys);
    return rows.flatMap(({ id }) => this.find(idText(id)) ?? []);
  }

  #adopt(child: StoredRun, parent: StoredRun): void {
    if (child.waitsFor === undefined || this.#isBelow(parent, child)) return;
    if (child.waitsFor !== parent.id.replaceAll('-', '') && child.waitsFor !== parent.spans.span) return;
    child.waitsFor = undefined;
    child.fields.parent_run_id = parent.id;
    child.parentId = parent.id;
    if (!child.isNamed) this.#move(child, parent.traceId);
    this.#changed.add(child);
  }

  /** Moves a run, and all below it that name no trace, to another trace. */
  #move(run: StoredRun, traceId: string): void {
    const to = this.trace(traceId);
    const from = run.trace;
    if (from === to.n) return;
    const fromId = run.traceId;
    const moved = from === undefined ? [] : this.#subtree(run, from);
    for (const one of [run, ...moved]) {
      one.trace = to.n;
      one.traceId = traceId;
      this.#changed.add(one);
    }
    if (from !== undefined) this.trace(fromId);
  }

  /** Returns the runs below a run in a trace, except those that name the trace and what is below them. */
  #subtree(run: StoredRun, trace: number): StoredRun[] {
    const children = new Map<string, string[]>();
    const rows = this.#connection.all<{ id: Uint8Array; parent: Uint8Array }>(UNNAMED, trace);
    const stored = rows.map(({ id, parent }) => [idText(id), idText(parent)] as const);
    const own = [...this.#runs.values()].filter((one) => one.trace === trace && !one.isNamed);
    for (const [id, parentId] of [...stored, ...own.map((one) => [one.id, one.parentId ?? ''] as const)]) {
      const siblings = children.get(parentId);
      if (siblings === undefined) children.set(parentId, [id]);
      else siblings.push(id);
    }
    const below = new Set<StoredRun>();
    const pending = [...(children.get(run.id) ?? [])];
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      const one = this.find(id);
      if (one === undefined || one === run || one.trace !== trace || below.has(one)) continue;
      below.add(one);
      pending.push(...(children.get(id) ?? []));
    }
    return [...below];
  }

  /** Tells the ancestors of a run that there is usage below them. */
  #reportUsage(run: StoredRun): void {
    const hasUsage = run.hasUsage || run.below;
    const origin = this.#origins.get(run);
    if (run.reported && origin?.isLinked === true) {
      const hasMoved = origin.trace !== run.trace || origin.parentId !== run.parentId;
      if (!hasUsage || hasMoved) this.#recounted.add(this.trace(origin.traceId));
    }
    // Runs below it may have stayed in the other trace, or may have been in this trace before.
    if (origin !== undefined && origin.trace !== run.trace) this.#recounted.add(this.trace(run.traceId));
    if (!hasUsage || run.waitsFor !== undefined) return;
    for (let at = run; at.parentId !== undefined; ) {
      const parent = this.find(at.parentId);
      if (parent === undefined || parent.trace !== run.trace || parent.below) return;
      parent.below = true;
      parent.refresh(this.#connection, this.#prices);
      this.#changed.add(parent);
      at = parent;
    }
  }

  #write(run: StoredRun): void {
    const { contribution: before } = run;
    const origin = this.#origins.get(run);
    const after = run.write(this.#connection);
    run.contribution = after;
    const to = this.trace(run.traceId);
    if (before !== undefined && before.trace !== to.n && origin !== undefined) {
      this.trace(origin.traceId).change(before, undefined);
      to.change(undefined, after);
    } else to.change(before, after);
    if (origin !== undefined && origin.trace !== to.n) {
      this.#connection.run('UPDATE feedback SET trace = ? WHERE run = ?', to.n, run.n ?? null);
      this.#origins.set(run, { ...origin, trace: to.n, traceId: run.traceId });
    }
    this.#count(before, after);
  }

  #count(before: Contribution | undefined, after: Contribution | undefined): void {
    if (before !== undefined) this.#counters.add(before, -1);
    if (after !== undefined) this.#counters.add(after, 1);
  }

  /** Finds out again which runs of a trace have usage below them. */
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
    for (const row of rows) {
      const run = above.has(idText(row.id)) === (row.below === 1) ? undefined : this.find(idText(row.id));
      if (run === undefined) continue;
      run.below = !run.below;
      run.refresh(this.#connection, this.#prices);
      this.#write(run);
    }
  }
}

const BY_ID = `${SELECT_RUN} WHERE runs.tenant = ? AND runs.id = ?`;
const BY_SPAN = 'SELECT id FROM runs WHERE tenant = ? AND span = ? ORDER BY n DESC LIMIT 1';
const WAITING = 'SELECT id FROM runs WHERE tenant = ? AND waits_for IN (?, ?)';
const UNNAMED = 'SELECT id, parent FROM runs WHERE trace = ? AND is_named = 0 AND parent IS NOT NULL';
const USAGE_OF_RUNS = `SELECT id, parent, below, start_us IS NOT NULL AND
  coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL AS has FROM runs WHERE trace = ?`;
