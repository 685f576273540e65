import { isCallType } from '../../../../run/calls/same-call.ts';
import type { KnownTrace } from '../../../domain/identity.ts';
import type { TraceOutcome } from '../../../domain/run-view.ts';
import { decidedTrace, has, outcomeOf, RunFlag } from '../../../domain/trace/trace-summary.ts';
import type { ChangedTrace } from '../../subscribers.ts';
import { idBytes, idText, type SqliteConnection, type SqlValue } from '../file/database.ts';
import { forgetNames, HiddenKind } from '../removed-names.ts';
import {
  evidenceIn,
  type ProjectColumns,
  projectNamesIn,
  type RootColumns,
  type RunRow,
  SummarizedRow,
} from '../run-row.ts';
import {
  FIGURES,
  type FiguresRow,
  isVisible,
  NO_FIGURES,
  type OwnFigures,
  RUN,
  StoredFigures,
} from './stored-figures.ts';

type TraceRow = FiguresRow & {
  readonly n: number;
  readonly tenant: number;
  readonly id: Uint8Array;
  readonly is_named: number;
  readonly root: number | null;
  readonly sources: string;
  /** `OwnFigures` if runs in several projects are in the trace. */
  readonly own: string | null;
  /** See `HiddenKind`. Null unless the trace is being deleted. */
  readonly hidden: number | null;
};

/** A trace that is being changed. */
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
  readonly #written: RunRow[] = [];
  readonly #figures: StoredFigures;
  #own: StoredFigures | undefined;
  /** Whether the project of a run or the root has changed, so that runs in other projects may be in the trace. */
  #isMoved = false;
  isChanged = false;

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
    this.#figures = new StoredFigures(row);
    const own: OwnFigures | null = JSON.parse(row.own ?? 'null');
    if (own !== null) this.#own = new StoredFigures(own, own.project);
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
    return this.hidden === HiddenKind.REQUESTED;
  }

  get hidden(): number | null {
    return this.#row.hidden;
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
    this.#figures.isStale = true;
    this.#own?.lose();
  }

  /** Makes the trace forget runs that were deleted. */
  forget(rows: readonly RunRow[]): void {
    this.addProjects(...rows);
    this.#figures.lose();
    this.#own?.lose();
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
    this.#figures.change(before, after);
    this.#own?.change(before, after);
    if (isVisible(before) && before?.project !== after.project) this.#isMoved = true;
    if (isCallType(after.run_type ?? '') && !this.hasSeveralSources) {
      const { source = null, sameCall } = evidenceIn(after);
      this.#sources.add(source);
      if (sameCall !== undefined) this.#sources.add(sameCall);
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
    if (root?.n !== rootBefore) {
      const row = rootBefore === null ? undefined : connection.one<RunRow>(RUN, rootBefore);
      this.addProjects(row);
      if (row !== undefined && row.project !== root?.project) this.#isMoved = true;
      this.#otherIds.push(this.#shownWith(row));
      setRoot(rootBefore, n, undefined);
    }
    this.shownId = this.#shownWith(root);
    let own: OwnFigures | undefined;
    if (root !== undefined) {
      const { ownOutcome, ...shown } = this.#decide(connection, root);
      const figures = this.#own?.row(connection, n);
      own = figures && { ...figures, project: root.project ?? '', outcome: ownOutcome };
      if (!isShown(root, shown)) setRoot(root.n, n, shown);
      this.addProjects(root);
    }
    const figures: Readonly<Record<string, SqlValue | undefined>> = this.#figures.row(connection, n);
    const texts = [JSON.stringify([...this.#sources]), own === undefined ? null : JSON.stringify(own)];
    const values = FIGURES.map((column) => figures[column] ?? null);
    connection.run(UPDATE_TRACE, seq, nowMs, root?.n ?? null, ...texts, ...values, n);
  }

  #decide(connection: SqliteConnection, rootRow: RunRow): RootColumns & { ownOutcome: TraceOutcome } {
    const { project } = rootRow;
    const root = new SummarizedRow(rootRow);
    const rows = new Map([rootRow, ...this.#written].map((row) => [row.n, new SummarizedRow(row)]));
    if ((this.#own !== undefined || this.#hasOthers(rootRow)) && this.#own?.project !== project) {
      this.#own = StoredFigures.of(project ?? '');
    }
    const all = this.#figures.decide(connection, this.n, rows);
    const deciding = this.#own?.decide(connection, this.n, rows) ?? all;
    const isMissing = !root.isTop && root.id !== this.id;
    const [outcome, ownOutcome] = [outcomeOf(root, isMissing, all), outcomeOf(root, isMissing, deciding)];
    const { thread, user } = decidedTrace(root, outcome, deciding);
    return { is_root: 1, outcome, thread: thread?.row.thread ?? null, user: user?.row.user ?? null, ownOutcome };
  }

  /** Finds the root by the rule of `AssembledTrace`, which for most traces needs only an index. */
  #findRoot(connection: SqliteConnection): RunRow | undefined {
    const id = idBytes(this.id);
    const written = this.#written.findLast((row) => isVisible(row) && Buffer.compare(row.id, id) === 0);
    const own = written ?? connection.one<RunRow>(OWN_ROOT, this.n, this.#row.tenant, id);
    const root =
      own ??
      connection.one<RunRow>(TOP_ROOT, this.n) ??
      connection.one<RunRow>(FIRST_ROOT, this.n) ??
      connection.one<RunRow>(ANY_ROOT, this.n);
    if (root === undefined || !has({ flags: root.flags ?? 0 }, RunFlag.LIMITED)) return root;
    const before = root.n === this.#row.root ? root : connection.one<RunRow>(RUN, this.#row.root);
    const isShared = this.#own !== undefined || this.#hasOthers(root) || (before ?? root).project !== root.project;
    const first = isShared ? connection.one<RunRow>(FIRST_RECEIVED, this.n) : root;
    return first?.project === root.project ? root : connection.one(ROOT_IN_PROJECT, this.n, first?.project ?? null, id);
  }

  /** Returns whether a run in another project may have been added. */
  #hasOthers({ project }: RunRow): boolean {
    return this.#isMoved || this.#written.some((row) => isVisible(row) && row.project !== project);
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

function isShown(row: RunRow, { is_root, outcome, thread, user }: RootColumns): boolean {
  return row.is_root === is_root && row.outcome === outcome && row.thread === thread && row.user === user;
}

type SetRoot = (n: number | null | undefined, trace: number, shown: RootColumns | undefined) => void;

const NEW_TRACE = { root: null, hidden: null, own: null, ...NO_FIGURES, sources: '[]' };
const INSERT_TRACE = `INSERT INTO traces (tenant, id, is_named, seq, changed_ms, runs, pending, errors, model_calls)
  VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0)`;
const UPDATED = ['seq', 'changed_ms', 'root', 'sources', 'own', ...FIGURES];
const UPDATE_TRACE = `UPDATE traces SET ${UPDATED.map((column) => `${column} = ?`).join(', ')} WHERE n = ?`;
const TRACE = `SELECT traces.*, (SELECT kind FROM hidden WHERE trace = traces.n) AS hidden
  FROM traces WHERE n = ?`;
const FIRST = 'SELECT * FROM runs WHERE start_us IS NOT NULL AND trace = ?';
const OWN_ROOT = `${FIRST.replace('trace', '+trace')} AND tenant = ? AND id = ?`;
const IS_TOP_RUN = 'parent IS NULL AND waits_for IS NULL';
const TOP_ROOT = `${FIRST} AND ${IS_TOP_RUN} ORDER BY start_us, n LIMIT 1`;
const FIRST_ROOT = `${FIRST} AND flags & ${RunFlag.INTERNAL} = 0 ORDER BY start_us, n LIMIT 1`;
const ANY_ROOT = `${FIRST} ORDER BY start_us, n LIMIT 1`;
const IS_LIMITED = `flags & ${RunFlag.LIMITED}`;
const HAS_PARENT = `EXISTS (SELECT 1 FROM runs AS parents
  WHERE parents.tenant = runs.tenant AND parents.id = runs.parent AND parents.trace = runs.trace)`;
const FIRST_RECEIVED = `${FIRST} ORDER BY ${HAS_PARENT}, ${IS_LIMITED}, n LIMIT 1`;
const ROOT_IN_PROJECT = `${FIRST} AND (NOT ${IS_LIMITED} OR project = ?)
  ORDER BY id = ? DESC, (${IS_TOP_RUN}) DESC, flags & ${RunFlag.INTERNAL}, start_us, n LIMIT 1`;
