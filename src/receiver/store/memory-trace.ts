import type { FeedbackFigures } from '../feedback/feedback.ts';
import type { FilteredRun } from './run-filter.ts';
import type { RunState } from './run-state.ts';
import { countsUsage, sumOfUsage } from './run-summary.ts';
import type { TraceSummary, Usage } from './run-view.ts';

/** A trace as lists show it: its root as a filter looks at it, and what the whole comes to. */
export interface ShownTrace {
  readonly root: FilteredRun;
  readonly whole: TraceSummary['trace'];
}

/** The runs of one trace. */
export class MemoryTrace {
  readonly id: string;
  readonly runs: Set<RunState> = new Set();
  /** Of the change that this trace last had a part in. */
  seq = 0;
  #aboveUsage: { readonly seq: number; readonly orders: ReadonlySet<string> } | undefined;
  #shown: { readonly seq: number; readonly trace: ShownTrace | undefined } | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Undefined as long as no run of it can be seen. */
  shown(): ShownTrace | undefined {
    if (this.#shown?.seq !== this.seq) this.#shown = { seq: this.seq, trace: this.#show() };
    return this.#shown.trace;
  }

  /** Returns the usage of a run of this trace if it is included in sums. */
  countedUsage(run: RunState): Usage | undefined {
    if (this.#aboveUsage?.seq !== this.seq) this.#aboveUsage = { seq: this.seq, orders: this.#ordersAboveUsage() };
    const summary = run.shown()?.summary;
    const hasUsageBelow = this.#aboveUsage.orders.has(run.place?.dottedOrder ?? '');
    return summary !== undefined && countsUsage(summary.run_type, hasUsageBelow) ? summary.usage : undefined;
  }

  #ordersAboveUsage(): Set<string> {
    const orders = new Set<string>();
    for (const run of this.runs) {
      let order = run.shown()?.summary.usage === undefined ? '' : (run.place?.dottedOrder ?? '');
      while (order !== '') {
        order = order.slice(0, Math.max(0, order.lastIndexOf('.')));
        if (orders.has(order)) break;
        orders.add(order);
      }
    }
    return orders;
  }

  #show(): ShownTrace | undefined {
    const whole: TraceSummary['trace'] = { runs: 0, pending: 0, errors: 0 };
    const keys = new Map<string, { count: number; scores: number[] }>();
    let first: RunState | undefined;
    for (const run of this.runs) {
      const summary = run.shown()?.summary;
      if (summary === undefined) continue;
      if (first === undefined || isBefore(run, first, this.id)) first = run;
      whole.runs += 1;
      if (summary.status === 'pending') whole.pending += 1;
      if (summary.status === 'error') whole.errors += 1;
      if (summary.end_time !== undefined && summary.end_time > (whole.end_time ?? ''))
        whole.end_time = summary.end_time;
      const usage = sumOfUsage(whole.usage, this.countedUsage(run));
      if (usage !== undefined) whole.usage = usage;
      for (const { key, score } of run.feedback) {
        const figures = keys.get(key) ?? { count: 0, scores: [] };
        keys.set(key, figures);
        figures.count += 1;
        if (score !== undefined) figures.scores.push(Number(score));
      }
    }
    if (keys.size > 0) whole.feedback = [...keys].map(figuresOf).sort((a, b) => (a.key < b.key ? -1 : 1));
    const root = first?.shown();
    return root && { root, whole };
  }
}

/** The root stands first, wherever its order does. */
function isBefore(run: RunState, other: RunState, traceId: string): boolean {
  if (run.id === traceId || other.id === traceId) return run.id === traceId;
  return (run.place?.dottedOrder ?? '') < (other.place?.dottedOrder ?? '');
}

function figuresOf([key, { count, scores }]: readonly [string, { count: number; scores: number[] }]): FeedbackFigures {
  if (scores.length === 0) return { key, count };
  return { key, count, average_score: scores.reduce((sum, score) => sum + score, 0) / scores.length };
}
