/** Maximum time of a quick query that calls `check`, in milliseconds. Other queries wait for it. */
const QUICK_MAX_MS = 100;
/** Maximum time of a query in another thread, in milliseconds. */
const SLOW_MAX_MS = 10_000;
/** Maximum time of the outline of a trace before Node 23.9, which cannot tell the CPU time of a thread. */
const OUTLINE_MAX_MS = 60_000;
/** Queries that may read all runs of a store on purpose. In the threads for other queries, they have no maximum time. */
const UNLIMITED: readonly string[] = ['runKeys', 'removable'];

export interface TimeLimit {
  readonly now: () => number;
  readonly maxMs: number;
  /** What the client is told. */
  readonly problem: string;
}

export function timeLimitOf(name: string, isQuick: boolean): TimeLimit {
  if (name === 'outline' && !isQuick) return ofOutline();
  const maxMs = isQuick ? QUICK_MAX_MS : UNLIMITED.includes(name) ? Number.POSITIVE_INFINITY : SLOW_MAX_MS;
  const problem = 'The query takes too long: choose a shorter time range';
  return { now: () => performance.now(), maxMs, problem };
}

/** A trace has no shorter time range, so its limit is CPU time, which other work on the machine does not use up. */
function ofOutline(): TimeLimit {
  const problem = 'The trace takes too long to read: it has too many runs';
  const { threadCpuUsage } = process as { readonly threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage === undefined) return { now: () => performance.now(), maxMs: OUTLINE_MAX_MS, problem };
  const now = (): number => {
    const { user, system } = threadCpuUsage();
    return (user + system) / 1_000;
  };
  return { now, maxMs: SLOW_MAX_MS, problem };
}
