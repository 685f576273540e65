import type { AssembledTrace, TracedRun } from '../../domain/assemble.ts';
import { LATENCY_BUCKETS, latencyBucketOf } from '../../domain/latencies.ts';
import { errorText, metadataTextOf, projectOf } from '../../domain/run-values.ts';
import type { Usage } from '../../domain/run-view.ts';
import { kindOf, type RunKind } from '../../domain/statistics.ts';
import { USAGE_KEYS } from '../../domain/summary.ts';
import type { InsertRow } from './connection.ts';
import type { Group } from './groups.ts';
import { dayOfMs } from './messages.ts';

/** A run's kind is stored as the sum of these numbers. */
const ERROR = 1;
const PENDING = 2;
const ROOT = 4;
const MODEL_CALL = 8;
export const KINDS = 16;
/** Number of latency codes. A pending run has the code 0. Other runs have their latency bucket plus 1. */
export const LATENCIES: number = LATENCY_BUCKETS + 1;
/** Number of possible values of the column `figures_code`. */
export const FIGURES_CODES: number = KINDS * LATENCIES;

/** Encodes a run's kind and latency as one number, so that statistics group runs by one column instead of four. */
function figuresCode({ summary, latencyUs }: TracedRun, isRoot: boolean): number {
  const kind = kindOf(summary.status, summary.run_type, isRoot, summary.same_call_as !== undefined);
  const status = kind.isError ? ERROR : kind.isPending ? PENDING : 0;
  const code = status + (isRoot ? ROOT : 0) + (kind.isModelCall ? MODEL_CALL : 0);
  return code * LATENCIES + (latencyUs === undefined ? 0 : latencyBucketOf(latencyUs) + 1);
}

/** Decodes a kind. */
export function runKindOf(code: number): RunKind {
  const has = (part: number): boolean => (code & part) !== 0;
  return { isError: has(ERROR), isPending: has(PENDING), isRoot: has(ROOT), isModelCall: has(MODEL_CALL) };
}

/**
 * Returns the rows of the table `runs` for linked groups. The start time is part of the sort key, so a run whose start
 * time has changed also gets a row that deletes its previous row.
 */
export function rowsOf(tenant: string, { grps, traces, startsUs, version }: Group): InsertRow[] {
  const visible = traces.flatMap(({ runs }) => runs);
  const shownUs = new Map(visible.map(({ id, startUs }) => [id, startUs]));
  const shared = { tenant, grps, version: `${version}` };
  const deleted = [...startsUs].flatMap(([id, starts]) =>
    [...starts]
      .filter((startUs) => startUs !== shownUs.get(id))
      .map((startUs) => ({ ...shared, day: dayOfMs(startUs / 1_000), start_us: startUs, id, is_deleted: 1 })),
  );
  return [...visible.map((run) => ({ ...shared, is_deleted: 0, ...columnsOf(run.trace, run) })), ...deleted];
}

function columnsOf(trace: AssembledTrace, traced: TracedRun): InsertRow {
  const { run, summary, startUs, latencyUs, metadata = {}, error } = traced;
  const isRoot = traced === trace.root;
  const totals = isRoot ? trace.totals() : undefined;
  const { feedback: _, ...shown } = totals ?? {};
  const texts = Object.keys(metadata).map((key) => [key, metadataTextOf(metadata, key) ?? '']);
  return {
    day: dayOfMs(startUs / 1_000),
    start_us: startUs,
    id: run.id,
    n: run.n,
    trace: trace.id,
    is_root: +isRoot,
    latency_us: latencyUs ?? null,
    figures_code: figuresCode(traced, isRoot),
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
    ...usageColumns('counted_', trace.countedUsage(traced), 0),
    ...usageColumns('trace_', totals?.usage, null),
    summary: JSON.stringify({ ...summary, id: undefined, trace_id: undefined }),
    totals: totals === undefined ? '' : JSON.stringify(shown),
  };
}

function usageColumns(prefix: string, usage: Usage | undefined, missing: 0 | null): InsertRow {
  return Object.fromEntries(USAGE_KEYS.map((key) => [prefix + key, usage?.[key] ?? missing]));
}
