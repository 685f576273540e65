import { keep, kept } from './kept.ts';

const KEY = 'chat.traces';
/** Runs that are remembered; of older ones the link leads to the run itself. */
const RUNS_MAX = 200;

/** Remembers the trace that a run is part of: its root is a turn of the page. */
export function keepTrace(runId: string, traceId: string): void {
  keep(KEY, JSON.stringify([...traces().filter(([id]) => id !== runId), [runId, traceId]].slice(-RUNS_MAX)));
}

/** Where the viewer shows a run; undefined where there is none for browsers. */
export function traceUrl(viewerUrl: string | null | undefined, runId: string): string | undefined {
  if (viewerUrl === null || viewerUrl === undefined || !URL.canParse(viewerUrl)) return undefined;
  const traceId = traces().find(([id]) => id === runId)?.[1] ?? runId;
  const url = new URL(viewerUrl);
  url.search = `${new URLSearchParams({ trace: traceId, run: runId })}`;
  return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : undefined;
}

function traces(): [string, string][] {
  try {
    const read: unknown = JSON.parse(kept(KEY) ?? '[]');
    return Array.isArray(read) ? read.filter((pair) => Array.isArray(pair) && pair.length === 2) : [];
  } catch {
    return [];
  }
}
