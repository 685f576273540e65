import { CALL_TYPES, MODEL_TYPES } from '../../../../run/calls/same-call.ts';
import type { TraceOutcome, TraceSummary, Usage } from '../../../domain/run-view.ts';
import { sumOfUsage, USAGE_KEYS } from '../../../domain/summary.ts';
import {
  DECIDES,
  DECIDING_FIELDS,
  type DecidingField,
  type DecidingRuns,
  decidingRun,
  RunFlag,
} from '../../../domain/trace/trace-summary.ts';
import type { SqliteConnection } from '../file/database.ts';
import {
  COUNTS_USAGE,
  countedUsageIn,
  IS_TOP,
  type RunRow,
  rowUsage,
  SummarizedRow,
  type UsageColumns,
} from '../run-row.ts';

type Sums = Pick<TraceSummary['trace'], 'runs' | 'pending' | 'errors' | 'model_calls'> & { end_us: number | null };

/** Figures as columns of the table `traces`. `deciding` is JSON of the keys of the `DecidingRuns`. */
export type FiguresRow = Readonly<Sums> & Partial<UsageColumns> & { readonly deciding: string };

/** The figures of the runs in the project of a trace's root, as JSON in the column `own`. */
export type OwnFigures = FiguresRow & { readonly project: string; readonly outcome: TraceOutcome };

export const NO_FIGURES: FiguresRow = { runs: 0, pending: 0, errors: 0, model_calls: 0, end_us: null, deciding: '{}' };
export const FIGURES: readonly string[] = [...Object.keys(NO_FIGURES), ...USAGE_KEYS];

/** The figures of all runs in a trace, or of those in a project. They change with each run, which costs the same in large traces. */
export class StoredFigures {
  readonly project: string | undefined;
  readonly #sums: Sums;
  #usage: Usage | undefined;
  readonly #deciding: DecidingRuns<number>;
  /** Fields of the summary whose deciding run may have lost its place. */
  readonly #lost = new Set<DecidingField>();
  /** Whether the totals must be recalculated from all runs. */
  isStale = false;

  constructor({ runs, pending, errors, model_calls, end_us, ...row }: FiguresRow, project?: string) {
    this.project = project;
    this.#sums = { runs, pending, errors, model_calls, end_us };
    this.#usage = rowUsage(row);
    this.#deciding = JSON.parse(row.deciding);
  }

  /** Returns the figures of the runs in a project. Reads them all. */
  static of(project: string): StoredFigures {
    const figures = new StoredFigures(NO_FIGURES, project);
    figures.lose();
    return figures;
  }

  /** Forgets what is known of the runs. */
  lose(): void {
    for (const field of DECIDING_FIELDS) this.#lost.add(field);
    this.isStale = true;
  }

  /** Changes the figures for a changed run. `before` is undefined if the run is new. */
  change(before: RunRow | undefined, after: RunRow): void {
    const wasIn = before !== undefined && this.#has(before);
    if (this.#has(after)) this.#add(wasIn ? before : undefined, after);
    else if (wasIn) this.lose();
  }

  #add(before: RunRow | undefined, after: RunRow): void {
    const sums = this.#sums;
    sums.runs += +isVisible(after) - +isVisible(before);
    sums.pending += +(after.status === 'pending') - +(before?.status === 'pending');
    sums.errors += +isCountedError(after) - +isCountedError(before);
    sums.model_calls += +isModelCall(after) - +isModelCall(before);
    if (before !== undefined) this.#checkDeciding(before, after);
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

  /** Finds the runs that decide the summary, from runs that have been written and those that have decided it before. */
  decide(
    connection: SqliteConnection,
    trace: number,
    rows: ReadonlyMap<number, SummarizedRow>,
  ): DecidingRuns<SummarizedRow> {
    const candidates = [...rows.values()].filter(({ row }) => isVisible(row) && this.#has(row));
    const deciding: DecidingRuns<SummarizedRow> = {};
    for (const field of DECIDING_FIELDS) {
      const n = this.#deciding[field];
      const known = rows.get(n ?? -1);
      const row = this.#lost.has(field)
        ? connection.one<RunRow>(decidingSql(field), trace, this.project ?? null)
        : (known?.row ?? (n && connection.one<RunRow>(RUN, n)));
      deciding[field] = decidingRun(field, candidates, row ? new SummarizedRow(row) : undefined);
      this.#deciding[field] = deciding[field]?.row.n;
    }
    return deciding;
  }

  #has({ project }: RunRow): boolean {
    return this.project === undefined || project === this.project;
  }

  /** Recalculates the totals if that is needed. Returns all figures. */
  row(connection: SqliteConnection, trace: number): FiguresRow {
    if (this.isStale) {
      const totals = connection.one<Sums & UsageColumns>(TOTALS, trace, this.project ?? null);
      if (totals !== undefined) {
        const { runs, pending, errors, model_calls, end_us, ...usage } = totals;
        Object.assign(this.#sums, { runs, pending, errors, model_calls, end_us });
        this.#usage = rowUsage(usage);
      }
      this.isStale = false;
    }
    return { ...this.#sums, ...this.#usage, deciding: JSON.stringify(this.#deciding) };
  }
}

export function isVisible(row: RunRow | undefined): boolean {
  return row !== undefined && row.start_us !== null;
}

function isCountedError(row: RunRow | undefined): boolean {
  return row?.status === 'error' && row.same_call === null;
}

function isModelCall(row: RunRow | undefined): boolean {
  return row !== undefined && row.same_call === null && MODEL_TYPES.includes(row.run_type ?? '');
}

export const RUN = 'SELECT * FROM runs WHERE n = ?';
const IN_PROJECT = 'trace = ?1 AND start_us IS NOT NULL AND (?2 IS NULL OR project = ?2)';
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
  return `SELECT * FROM runs WHERE ${IN_PROJECT} AND ${CONDITIONS[field]} ORDER BY ${order} LIMIT 1`;
}

const TOTALS = `SELECT count(*) AS runs, coalesce(sum(status = 'pending'), 0) AS pending,
    coalesce(sum(status = 'error' AND same_call IS NULL), 0) AS errors, max(end_us) AS end_us,
    coalesce(sum(run_type IN (${MODEL_TYPES.map((type) => `'${type}'`).join(', ')}) AND same_call IS NULL), 0) AS model_calls,
    ${USAGE_KEYS.map((key) => `sum(${key}) FILTER (WHERE ${COUNTS_USAGE}) AS ${key}`).join(', ')}
  FROM runs WHERE ${IN_PROJECT}`;
