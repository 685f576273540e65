import { CALL_TYPES, isCallType, MODEL_TYPES } from '../../../../run/calls/same-call.ts';
import type { KnownTrace } from '../../../domain/identity.ts';
import type { TraceSummary, Usage } from '../../../domain/run-view.ts';
import { sumOfUsage, USAGE_KEYS } from '../../../domain/summary.ts';
import {
  DECIDES,
  DECIDING_FIELDS,
  type DecidingField,
  type DecidingRuns,
  decidedTrace,
  decidingRun,
  RunFlag,
} from '../../../domain/trace/trace-summary.ts';
import type { ChangedTrace } from '../../subscribers.ts';
import { idBytes, idText, type SqliteConnection } from '../file/database.ts';
import {
  COUNTS_USAGE,
  countedUsageIn,
  evidenceIn,
  IS_TOP,
  type ProjectColumns,
  projectNamesIn,
  type RootColumns,
  type RunRow,
  rowUsage,
  SummarizedRow,
} from '../run-row.ts';

/** Columns of the table `traces` that are derived from runs. */
type TraceRow = Pick<TraceSummary['trace'], 'runs' | 'pending' | 'errors' | 'model_calls'> & {
  readonly n: number;
  readonly tenant: number;
  readonly id: Uint8Array;
  readonly is_named: number;
  readonly root: number | null;
  end_us: number | null;
  readonly sources: string;
  readonly deciding: string;
  /** See `HiddenTrace`. */
  readonly evicted: number | null;
};

/** A trace that is being changed. Its totals change with each run, which costs the same in large traces. */
export class StoredTrace implements KnownTrace {
  id: string;
  isNamed: boolean;
  readonly n: number;
  readonly #row: TraceRow;
  /** Sources of the calls in the trace, and the runs that they name. */
  readonly #sources: Set<string | null>;
  /** See `AssembledTrace`. */
  shownId: string;
  /** Earlier ids of the trace, also those with which answers showed it. */
  readonly #otherIds: string[] = [];
  /** See `ChangedTrace`. The totals change for the project of the root too. */
  readonly #projects = new Set<string>();
  #usage: Usage | undefined;
  readonly #written: RunRow[] = [];
  /** Fields of the summary whose deciding run may have lost its place. */
  readonly #lost = new Set<DecidingField>();
  readonly #deciding: DecidingRuns<number>;
  isChanged = false;
  /** Whether the totals must be recalculated from all runs. */
  isStale = false;

  static read(connection: SqliteConnection, n: number): StoredTrace | undefined {
    const row = connection.one<TraceRow>(TRACE, n);
    return row && new StoredTrace(row);
  }

  static create(connection: SqliteConnection, tenant: number, id: string, isNamed: boolean): StoredTrace {
    const n = connection.insert(INSERT_TRACE, tenant, idBytes(id), +isNamed);
    return new StoredTrace({ ...NEW_TRACE, n, tenant, id: idBytes(id), is_named: +isNamed });
  }

  private constructor(row: TraceRow) {
    this.id = idText(row.id);
    this.shownId = this.id;
    this.isNamed = row.is_named === 1;
    this.n = row.n;
    this.#row = { ...row };
    this.#sources = new Set(JSON.parse(row.sources));
    this.#deciding = JSON.parse(row.deciding);
    this.#usage = rowUsage(row);
  }

  setId(connection: SqliteConnection, id: string): void {
    connection.run('UPDATE traces SET id = ?, is_named = 1 WHERE n = ?', idBytes(id), this.n);
    if (id !== this.id) this.#otherIds.push(this.id);
    this.id = id;
    this.isNamed = true;
    this.isChanged = true;
  }

  /** Whether the trace is being deleted by request. */
  get isHidden(): boolean {
    return this.#row.evicted === 0;
  }

  /** The key of the run that is the root in the table. */
  get root(): number | null {
    return this.#row.root;
  }

  /** Moves the runs and the names of a trace to this one, and deletes the other trace, whose root must be a plain run. */
  takeOver(connection: SqliteConnection, other: StoredTrace): void {
    const rows = connection.all<RunRow>('SELECT * FROM runs WHERE trace = ?', other.n);
    for (const table of ['runs', 'feedback', 'trace_names']) {
      connection.run(`UPDATE ${table} SET trace = ? WHERE trace = ?`, this.n, other.n);
    }
    connection.run('INSERT INTO trace_names SELECT tenant, id, ? FROM traces WHERE n = ?', this.n, other.n);
    connection.run('DELETE FROM traces WHERE n = ?', other.n);
    for (const source of other.#sources) this.#sources.add(source);
    this.#otherIds.push(other.id);
    for (const row of rows) {
      this.#written.push(row);
      this.addProjects(row);
    }
    this.isStale = true;
  }

  /** Makes the trace forget runs that were deleted. */
  forget(rows: readonly RunRow[]): void {
    this.addProjects(...rows);
    for (const field of DECIDING_FIELDS) this.#lost.add(field);
    this.isStale = true;
  }

  /** The trace under each of its ids. */
  get changes(): ChangedTrace[] {
    return [...new Set([this.shownId, this.id, ...this.#otherIds])].map((id) => ({
      id,
      projects: [...this.#projects],
    }));
  }

  /** Whether the trace has had calls of several sources, or calls that name a run, which may record the same call. */
  get hasSeveralSources(): boolean {
    return this.#sources.size > 1;
  }

  /** Updates the totals for a changed run. `before` is undefined if the run is new. */
  change(before: RunRow | undefined, after: RunRow): void {
    this.addProjects(before, after);
    this.#written.push(after);
    const sums = this.#row;
    sums.runs += +isVisible(after) - +isVisible(before);
    sums.pending += +(after.status === 'pending') - +(before?.status === 'pending');
    sums.errors += +isCountedError(after) - +isCountedError(before);
    sums.model_calls += +isModelCall(after) - +isModelCall(before);
    if (before !== undefined) this.#checkDeciding(before, after);
    if (isCallType(after.run_type ?? '') && !this.hasSeveralSources) {
      const { source = null, sameCall } = evidenceIn(after);
      this.#sources.add(source);
      if (sameCall !== undefined) this.#sources.add(sameCall);
    }
    const [endBefore, endAfter] = [before?.end_us ?? 0, after.end_us ?? 0];
    if (endBefore > endAfter) this.isStale = true;
    if (endAfter > 0) sums.end_us = Math.max(sums.end_us ?? 0, endAfter);
    const [usageBefore, usageAfter] = [before && countedUsageIn(before), countedUsageIn(after)];
    if (usageBefore === undefined) this.#usage = sumOfUsage(this.#usage, usageAfter);
    else if (USAGE_KEYS.some((key) => usageBefore[key] !== usageAfter?.[key])) this.isStale = true;
  }

  #checkDeciding(before: RunRow, after: RunRow): void {
    const [from, to] = [new SummarizedRow(before), new SummarizedRow(after)];
    const isMoved = from.startUs !== to.startUs || from.type !== to.type || from.isTop !== to.isTop;
    for (const field of DECIDING_FIELDS) {
      if (this.#deciding[field] === after.n && (isMoved || !DECIDES[field].counts(to))) this.#lost.add(field);
    }
  }

  /** Writes the trace, or deletes a trace without runs. The runs must be written first. */
  write(connection: SqliteConnection, setRoot: SetRoot, seq: number, nowMs: number): void {
    const { n } = this;
    const [root, rootBefore] = [this.#findRoot(connection), this.#row.root];
    if (root === undefined && connection.one('SELECT 1 FROM runs WHERE trace = ?', n) === undefined) {
      connection.run('DELETE FROM traces WHERE n = ?', n);
      forgetNames(connection, n);
      return;
    }
    if (this.isStale) {
      const totals = connection.one<Readonly<Record<string, number | null>>>(TOTALS, n);
      Object.assign(this.#row, totals);
      this.#usage = rowUsage(totals ?? {});
    }
    if (root?.n !== rootBefore) {
      const row = rootBefore === null ? undefined : connection.one<RunRow>(RUN, rootBefore);
      this.addProjects(row);
      this.#otherIds.push(this.#shownWith(row));
      setRoot(rootBefore, n, undefined);
    }
    this.shownId = this.#shownWith(root);
    if (root !== undefined) {
      const shown = this.#decide(connection, root);
      if (!isShown(root, shown)) setRoot(root.n, n, shown);
      this.addProjects(root);
    }
    const { runs, pending, errors, model_calls, end_us } = this.#row;
    const usage = USAGE_KEYS.map((key) => this.#usage?.[key] ?? null);
    const texts = [JSON.stringify([...this.#sources]), JSON.stringify(this.#deciding)];
    const totals = [runs, pending, errors, model_calls, end_us];
    connection.run(UPDATE_TRACE, seq, nowMs, root?.n ?? null, ...totals, ...texts, ...usage, n);
  }

  /** Finds the runs that decide the summary, from the runs that have been written and those that have decided it before. */
  #decide(connection: SqliteConnection, rootRow: RunRow): RootColumns {
    const root = new SummarizedRow(rootRow);
    const rows = new Map([rootRow, ...this.#written].map((row) => [row.n, new SummarizedRow(row)]));
    const candidates = [...rows.values()].filter(({ row }) => isVisible(row));
    const deciding: DecidingRuns<SummarizedRow> = {};
    for (const field of DECIDING_FIELDS) {
      const n = this.#deciding[field];
      const known = rows.get(n ?? -1);
      const row = this.#lost.has(field)
        ? connection.one<RunRow>(decidingSql(field), this.n)
        : (known?.row ?? (n && connection.one<RunRow>(RUN, n)));
      deciding[field] = decidingRun(field, candidates, row ? new SummarizedRow(row) : undefined);
      this.#deciding[field] = deciding[field]?.row.n;
    }
    const { outcome, thread, user } = decidedTrace(root, !root.isTop && root.id !== this.id, deciding);
    return { is_root: 1, outcome, thread: thread?.row.thread ?? null, user: user?.row.user ?? null };
  }

  #findRoot(connection: SqliteConnection): RunRow | undefined {
    const id = idBytes(this.id);
    const written = this.#written.findLast((row) => isVisible(row) && Buffer.compare(row.id, id) === 0);
    const own = written ?? connection.one<RunRow>(OWN_ROOT, this.n, this.#row.tenant, id);
    return (
      own ?? connection.one(TOP_ROOT, this.n) ?? connection.one(FIRST_ROOT, this.n) ?? connection.one(ANY_ROOT, this.n)
    );
  }

  /** Returns the id with which answers show the trace if a run is its root. */
  #shownWith(root: RunRow | undefined): string {
    return this.isNamed || root === undefined || !new SummarizedRow(root).isTop ? this.id : idText(root.id);
  }

  addProjects(...rows: readonly (ProjectColumns | undefined)[]): void {
    this.isChanged = true;
    for (const row of rows) for (const name of row ? projectNamesIn(row) : []) this.#projects.add(name);
  }
}

function isVisible(row: RunRow | undefined): boolean {
  return row !== undefined && row.start_us !== null;
}

function isShown(row: RunRow, { is_root, outcome, thread, user }: RootColumns): boolean {
  return row.is_root === is_root && row.outcome === outcome && row.thread === thread && row.user === user;
}

function isCountedError(row: RunRow | undefined): boolean {
  return row?.status === 'error' && row.same_call === null;
}

function isModelCall(row: RunRow | undefined): boolean {
  return row !== undefined && row.same_call === null && MODEL_TYPES.includes(row.run_type ?? '');
}

export function forgetNames(connection: SqliteConnection, trace: number): void {
  connection.run('DELETE FROM trace_names WHERE trace = ?', trace);
}

type SetRoot = (n: number | null | undefined, trace: number, shown: RootColumns | undefined) => void;

const NEW_SUMS = { runs: 0, pending: 0, errors: 0, model_calls: 0, end_us: null };
const NEW_TRACE = { root: null, evicted: null, ...NEW_SUMS, sources: '[]', deciding: '{}' };
const INSERT_TRACE = `INSERT INTO traces (tenant, id, is_named, seq, changed_ms, runs, pending, errors, model_calls)
  VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0)`;
const UPDATED = ['seq', 'changed_ms', 'root', ...Object.keys(NEW_SUMS), 'sources', 'deciding', ...USAGE_KEYS];
const UPDATE_TRACE = `UPDATE traces SET ${UPDATED.map((column) => `${column} = ?`).join(', ')} WHERE n = ?`;
const TRACE = `SELECT traces.*, (SELECT is_evicted FROM hidden WHERE trace = traces.n) AS evicted
  FROM traces WHERE n = ?`;
const RUN = 'SELECT * FROM runs WHERE n = ?';
const FIRST = 'SELECT * FROM runs WHERE start_us IS NOT NULL AND trace = ?';
const IS_CALL = `run_type IN (${CALL_TYPES.map((type) => `'${type}'`).join(', ')})`;
/** The order of `decidingRun`. */
const ORDER = ['start_us', `iif(${IS_TOP}, 0, 1 + (${IS_CALL}) + (run_type = 'llm'))`, 'id'];
/** SQL conditions for the runs that count for a field, see `DECIDES`. */
const CONDITIONS: Readonly<Record<DecidingField, string>> = {
  asked: `flags & ${RunFlag.ASKS}`,
  thread: `flags & ${RunFlag.HAS_THREAD}`,
  user: `flags & ${RunFlag.HAS_USER}`,
  answered: `flags & ${RunFlag.ANSWERS}`,
  called: `same_call IS NULL AND ${IS_CALL}`,
  failed: "same_call IS NULL AND status = 'error'",
};

function decidingSql(field: DecidingField): string {
  const order = ORDER.map((column) => (DECIDES[field].isFirst ? column : `${column} DESC`)).join(', ');
  return `${FIRST} AND ${CONDITIONS[field]} ORDER BY ${order} LIMIT 1`;
}

const OWN_ROOT = `${FIRST.replace('trace', '+trace')} AND tenant = ? AND id = ?`;
const TOP_ROOT = `${FIRST} AND parent IS NULL AND waits_for IS NULL ORDER BY start_us, n LIMIT 1`;
const FIRST_ROOT = `${FIRST} AND flags & ${RunFlag.INTERNAL} = 0 ORDER BY start_us, n LIMIT 1`;
const ANY_ROOT = `${FIRST} ORDER BY start_us, n LIMIT 1`;
const TOTALS = `SELECT count(*) AS runs, coalesce(sum(status = 'pending'), 0) AS pending,
    coalesce(sum(status = 'error' AND same_call IS NULL), 0) AS errors, max(end_us) AS end_us,
    coalesce(sum(run_type IN (${MODEL_TYPES.map((type) => `'${type}'`).join(', ')}) AND same_call IS NULL), 0) AS model_calls,
    ${USAGE_KEYS.map((key) => `sum(${key}) FILTER (WHERE ${COUNTS_USAGE}) AS ${key}`).join(', ')}
  FROM runs WHERE trace = ? AND start_us IS NOT NULL`;
