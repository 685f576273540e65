import { KeptOfRuns } from './kept-of-runs.ts';
import { stringOf } from './protocol.ts';

/** Of runs that are older than these the link leads to the run itself. */
const RUNS_MAX = 200;

const traces = new KeptOfRuns('chat.traces', RUNS_MAX);

/** Remembers the trace that a run is part of: its root is a turn of the page. */
export function keepTrace(runId: string, traceId: string): void {
  traces.set(runId, traceId);
}

/** Where the viewer shows a run; undefined where there is none for browsers. */
export function traceUrl(viewerUrl: string | null | undefined, runId: string): string | undefined {
  if (viewerUrl === null || viewerUrl === undefined || !URL.canParse(viewerUrl)) return undefined;
  const url = new URL(viewerUrl);
  url.search = `${new URLSearchParams({ trace: stringOf(traces.get(runId)) ?? runId, run: runId })}`;
  return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : undefined;
}
