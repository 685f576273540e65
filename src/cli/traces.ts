import { visibleJson } from '../base/text.ts';
import type { ListQuery, Page } from '../receiver/query/query.ts';
import type { TraceSummary } from '../receiver/store/run-view.ts';
import { parseIsoTimestamp } from '../run/time.ts';
import type { TracesInvocation } from './query-arguments.ts';
import type { RunSource } from './run-source.ts';
import { counted } from './terminal-text.ts';
import { drawRun, type TreeOptions, tokensText } from './tree.ts';

/** Characters at the end of an id that tell traces apart; those at its beginning are the time. */
const SHORT_ID = 12;

/** The list of traces as it is printed, each on a line of its own. */
export async function listTraces(
  source: RunSource,
  { query, isJson }: Pick<TracesInvocation, 'query' | 'isJson'>,
  options: Required<TreeOptions>,
): Promise<string> {
  const { status, runType, model } = query;
  // Almost every trace contains a run that succeeded. Without a run type or a model, a filter for `success` therefore
  // applies to the root only.
  const isOfRoot = runType === undefined && model === undefined && (status?.includes('success') ?? true);
  const { items, next } = await (isOfRoot ? source.traces(query) : tracesWithRun(source, query));
  if (isJson) return items.map((trace) => `${visibleJson(JSON.stringify(trace))}\n`).join('');
  if (items.length === 0) return 'no traces\n';
  const lines = items.map((trace) => lineOf(trace, options));
  return `${[...lines, ...(next === undefined ? [] : ['… and more: --limit shows more of them'])].join('\n')}\n`;
}

const RUNS_PAGE = 1_000;
const REQUESTS_AT_ONCE = 25;

/**
 * Returns traces with a run that matches the status, type and model of the query, and with a root that matches its
 * other filters.
 */
async function tracesWithRun(
  source: RunSource,
  { status, runType, model, limit = Number.POSITIVE_INFINITY, ...ofRoot }: ListQuery,
): Promise<Page<TraceSummary>> {
  const ofRun: ListQuery = {
    limit: RUNS_PAGE,
    ...(status && { status }),
    ...(runType && { runType }),
    ...(model && { model }),
    // A run never starts before its root run, so the lower bound also applies to runs.
    ...(ofRoot.startedFrom && { startedFrom: ofRoot.startedFrom }),
  };
  const seen = new Set<string>();
  const found: TraceSummary[] = [];
  for (let page = await source.runs(ofRun); ; page = await source.runs({ ...ofRun, cursor: page.next })) {
    const traceIds = [...new Set(page.items.map((run) => run.trace_id))].filter((id) => !seen.has(id));
    for (const id of traceIds) seen.add(id);
    for (let at = 0; at < traceIds.length; at += REQUESTS_AT_ONCE) {
      const group = traceIds.slice(at, at + REQUESTS_AT_ONCE);
      const traces = await Promise.all(group.map((traceId) => source.traces({ ...ofRoot, traceId, limit: 1 })));
      found.push(...traces.flatMap(({ items }) => items));
      if (found.length > limit) return { items: sorted(found.slice(0, limit)), next: '' };
    }
    if (page.next === undefined) return { items: sorted(found) };
  }
}

/** Sorts the traces by start time, the latest first. */
function sorted(traces: TraceSummary[]): TraceSummary[] {
  return traces.sort((one, other) => (one.start_time < other.start_time ? 1 : -1));
}

function lineOf(trace: TraceSummary, { widthColumns, paint }: Required<TreeOptions>): string {
  const { runs, errors, pending, usage } = trace.trace;
  const head = `${momentText(trace.start_time)}  ${trace.trace_id.slice(-SHORT_ID)}  `;
  const below = errors - (trace.status === 'error' ? 1 : 0);
  const more = [
    runs === 1 ? [] : counted(runs, 'run'),
    below > 0 ? `${below} failed below` : [],
    pending > 0 && trace.status !== 'pending' ? `${pending} not ended` : [],
    trace.usage === undefined && usage !== undefined ? (tokensText({ usage }) ?? []) : [],
  ].flat();
  return paint('detail', head) + drawRun(trace, more, { widthColumns: widthColumns - head.length, paint });
}

/** In the time of this machine. */
export function momentText(isoTime: string): string {
  const at = new Date((parseIsoTimestamp(isoTime) ?? 0) / 1_000);
  const two = (number: number): string => String(number).padStart(2, '0');
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
