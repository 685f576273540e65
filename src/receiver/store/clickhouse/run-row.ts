import { createHash } from 'node:crypto';
import { MODEL_TYPES } from '../../../run/same-call.ts';
import type { AssembledTrace, TracedRun } from '../../domain/assemble.ts';
import { LATENCY_BUCKETS, latencyBucketOf } from '../../domain/latencies.ts';
import { errorText, metadataTextOf, projectOf } from '../../domain/run-values.ts';
import type { TraceOutcome, Usage } from '../../domain/run-view.ts';
import { kindOf, ROOT_KINDS, type RunKind } from '../../domain/statistics.ts';
import { toolsIn, USAGE_KEYS } from '../../domain/summary.ts';
import { ordersOf } from '../../domain/tree.ts';
import type { InsertRow } from './connection.ts';
import type { Group } from './groups.ts';
import { dayOfMs } from './messages.ts';

/** The kinds of runs that are no model calls. A run's kind is stored as its index, plus their number for model calls. */
const STATES: readonly Omit<RunKind, 'isModelCall'>[] = [undefined, ...ROOT_KINDS].flatMap((root) =>
  [
    { isError: false, isPending: false, root },
    { isError: true, isPending: false, root },
    { isError: false, isPending: true, root },
  ].filter(({ isError, isPending }) => {
    if (root === 'other') return !isError;
    return root === 'error' ? isError : root !== 'failed_below' || !(isError || isPending);
  }),
);
export const KINDS: number = 2 * STATES.length;
/** Number of latency codes. A pending run has the code 0. Other runs have their latency bucket plus 1. */
export const LATENCIES: number = LATENCY_BUCKETS + 1;
/** Number of possible values of the column `figures_code`. */
export const FIGURES_CODES: number = KINDS * LATENCIES;

/** Encodes a run's kind and latency as one number, so that statistics group runs by one column instead of four. */
function figuresCode({ summary, latencyUs, isRepeat }: TracedRun, outcome: TraceOutcome | undefined): number {
  const { isModelCall, ...kind } = kindOf(summary.status, summary.run_type, outcome, isRepeat);
  const state = STATES.findIndex(
    ({ isError, isPending, root }) => isError === kind.isError && isPending === kind.isPending && root === kind.root,
  );
  const code = state + (isModelCall ? STATES.length : 0);
  return code * LATENCIES + (latencyUs === undefined ? 0 : latencyBucketOf(latencyUs) + 1);
}

export function runKindOf(code: number): RunKind {
  const state = STATES[code % STATES.length] as (typeof STATES)[number];
  return { ...state, isModelCall: code >= STATES.length };
}

export const ERROR_KINDS: readonly number[] = [...Array(KINDS).keys()].filter((code) => runKindOf(code).isError);

/** A row of the table `runs`. */
export interface DerivedRow {
  readonly tenant: string;
  readonly day: string;
  readonly start_us: number;
  readonly id: string;
  readonly group_id: string;
  readonly trace: string;
  readonly version: bigint;
  readonly seen_us: number;
  readonly is_deleted: 0 | 1;
  readonly is_root: 0 | 1;
  /** Fingerprint of the other columns. */
  readonly hash: string;
  /** Time at which the latest message of the run arrived. */
  readonly latestUs: number;
  readonly columns: InsertRow;
}

/** See `projectNames`. */
export function projectNamesIn({ columns: { project, session_id } }: DerivedRow): string[] {
  return [project, session_id].filter((name) => typeof name === 'string');
}

/**
 * Yields the rows of the table `runs` for a group, that of the root last. The start time is part of the sort key, so a
 * run whose start time has changed also gets a row that deletes its previous row.
 */
export function* rowsOf(group: Group): Generator<DerivedRow> {
  const { tenant, group_id, trace, merged, seenUs, version, isPart = false } = group;
  const shownUs = new Map(trace.runs.map(({ id, startUs }) => [id, startUs] as const));
  const rowOf = (
    id: string,
    startUs: number,
    row: Pick<DerivedRow, 'trace' | 'is_deleted' | 'is_root' | 'columns'>,
  ): DerivedRow => ({
    ...{ tenant, day: dayOfMs(startUs / 1_000), start_us: startUs, id, group_id, version, seen_us: seenUs },
    ...{ latestUs: merged.get(id)?.latestUs ?? 0, hash: hashOf(row) },
    ...row,
  });
  for (const [id, { startsUs }] of merged) {
    for (const startUs of startsUs) {
      if (startUs !== shownUs.get(id)) yield rowOf(id, startUs, { trace: id, is_deleted: 1, is_root: 0, columns: {} });
    }
  }
  const orders = storedOrders(trace.runs);
  const nested = trace.runs.filter((run) => run !== trace.root);
  for (const run of trace.root === undefined ? nested : [...nested, trace.root]) {
    const columns = { ...columnsOf(trace, run, isPart), dotted_order: orders.get(run.id) ?? '' };
    yield rowOf(run.id, run.startUs, { trace: trace.id, is_deleted: 0, is_root: run === trace.root ? 1 : 0, columns });
  }
}

/**
 * Returns the `dotted_order` of the runs in a trace. Omits those whose messages contain one that follows from the parents
 * and the start times, because queries derive it.
 */
function storedOrders(runs: readonly TracedRun[]): Map<string, string> {
  const derived = ordersOf(runs.map(({ id, parentId, startUs }) => ({ id, parentId, startUs, order: undefined })));
  const orders = ordersOf(runs);
  return new Map(
    runs.flatMap(({ id, order: own }) => {
      const order = orders.get(id) ?? '';
      return own !== undefined && order === derived.get(id) ? [] : [[id, order] as const];
    }),
  );
}

function hashOf(row: object): string {
  return BigInt(`0x${createHash('md5').update(JSON.stringify(row)).digest('hex').slice(0, 16)}`).toString();
}

function columnsOf(trace: AssembledTrace, traced: TracedRun, isPart: boolean): InsertRow {
  const { run, summary, costSource, latencyUs, metadata = {}, error } = traced;
  const isRoot = traced === trace.root;
  const { outcome, ...ofTrace } = (isRoot ? trace.shown() : undefined) ?? {};
  const totals = isRoot ? trace.totals() : undefined;
  const { feedback: _, ...shown } = totals ?? {};
  const { id: _id, trace_id: _trace, inputs_preview, outputs_preview, ...listed } = summary;
  // The usage of a run that is no call does not count beside that of its calls, which are not read.
  const isCounted = !isPart || MODEL_TYPES.includes(summary.run_type);
  const texts = Object.keys(metadata).map((key) => [key, metadataTextOf(metadata, key) ?? '']);
  return {
    n: run.n,
    latency_us: latencyUs ?? null,
    figures_code: figuresCode(traced, outcome),
    outcome: outcome ?? null,
    internal: summary.internal === true ? 1 : 0,
    project: projectOf(summary),
    session_id: summary.session_id ?? null,
    name: summary.name,
    run_type: summary.run_type,
    status: summary.status,
    model: summary.model ?? null,
    thread: summary.thread ?? null,
    user: summary.user ?? null,
    tags: summary.tags ?? [],
    metadata: Object.fromEntries(texts),
    error: errorText(error) ?? '',
    ...usageColumns('', summary.usage, null),
    ...usageColumns('counted_', isCounted ? trace.countedUsage(traced) : undefined, 0),
    ...usageColumns('trace_', totals?.usage, null),
    summary: JSON.stringify({ ...listed, tools: toolsIn(summary, run.facts) }),
    previews: JSON.stringify({ inputs_preview, outputs_preview }),
    totals: totals === undefined ? '' : JSON.stringify({ outcome, ...ofTrace, trace: shown }),
    cost_source: JSON.stringify(costSource),
  };
}

function usageColumns(prefix: string, usage: Usage | undefined, missing: 0 | null): InsertRow {
  return Object.fromEntries(USAGE_KEYS.map((key) => [prefix + key, usage?.[key] ?? missing]));
}
