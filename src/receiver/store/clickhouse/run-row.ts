import { latencyBucketOf } from '../latencies.ts';
import type { MemoryTrace, TracedRun } from '../memory-run.ts';
import { errorText, metadataTextOf, projectOf } from '../run-filter.ts';
import { USAGE_KEYS } from '../run-summary.ts';
import type { Usage } from '../run-view.ts';
import type { InsertRow } from './connection.ts';
import type { Group } from './groups.ts';
import { dayOfMs } from './messages.ts';

/**
 * Returns the rows of the table `runs` for linked groups. A row with an earlier start time of a run, or of a deleted run, is
 * marked as deleted.
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

function columnsOf(trace: MemoryTrace, traced: TracedRun): InsertRow {
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
    latency_bucket: latencyUs === undefined ? 0 : latencyBucketOf(latencyUs) + 1,
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
