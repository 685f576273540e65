import { timesOf } from '../store/run-filter.ts';
import type { RunOutline } from '../store/run-view.ts';

/** A run as a bar on the time axis. */
interface Slice {
  readonly run: RunOutline;
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * Yields a trace's events as JSON text in Perfetto's and Chrome's "Trace Event Format" (complete events). Viewers draw
 * a lane's slices correctly only if they are nested, so overlapping runs are in different lanes. A pending run lasts
 * until the trace's latest time.
 */
export function* perfettoEvents(runs: readonly RunOutline[]): Generator<string> {
  const slices = slicesOf(runs);
  const lanes = lanesOf(slices);
  yield JSON.stringify({ ph: 'M', name: 'process_name', pid: 1, args: { name: runs[0]?.name ?? '' } });
  for (const lane of new Set(lanes)) {
    yield JSON.stringify({ ph: 'M', name: 'thread_name', pid: 1, tid: lane, args: { name: `runs ${lane}` } });
  }
  for (const [at, { run, startUs, endUs }] of slices.entries()) {
    const { id, status, error, model, usage, name, run_type: cat } = run;
    const args = { id, status, error, model, ...usage };
    yield JSON.stringify({ ph: 'X', name, cat, ts: startUs, dur: endUs - startUs, pid: 1, tid: lanes[at], args });
  }
}

/** Returns the slices sorted by start. An outer slice precedes the slices within it. */
function slicesOf(runs: readonly RunOutline[]): Slice[] {
  const timed = runs.map((run) => ({ run, ...timesOf(run) }));
  const lastUs = timed.reduce((last, { startUs, latencyUs = 0 }) => Math.max(last, startUs + latencyUs), 0);
  return timed
    .map(({ run, startUs, latencyUs }) => ({
      run,
      startUs,
      endUs: latencyUs === undefined ? lastUs : startUs + latencyUs,
    }))
    .sort((a, b) => a.startUs - b.startUs || b.endUs - a.endUs);
}

/**
 * Returns each slice's lane. A slice gets its parent's lane if it fits into the innermost open slice there, otherwise a
 * free lane.
 */
function lanesOf(slices: readonly Slice[]): number[] {
  /** For each lane, the end times of its open slices, outermost first. */
  const open: number[][] = [];
  const free: number[] = [];
  /** The lanes in use. The lane whose outermost slice ends last comes first. */
  const used: { readonly lane: number; readonly endUs: number }[] = [];
  const laneOfRun = new Map<string, number>();
  return slices.map(({ run, startUs, endUs }) => {
    for (let next = used.at(-1); next !== undefined && next.endUs <= startUs; next = used.at(-1)) {
      free.push(next.lane);
      used.pop();
    }
    let lane = laneOfRun.get(run.parent_run_id ?? '') ?? -1;
    const around = open[lane] ?? [];
    while ((around.at(-1) ?? Number.POSITIVE_INFINITY) <= startUs) around.pop();
    if ((around.at(-1) ?? 0) >= endUs) around.push(endUs);
    else {
      lane = free.pop() ?? open.length;
      open[lane] = [endUs];
      used.splice(used.findLastIndex((other) => other.endUs >= endUs) + 1, 0, { lane, endUs });
    }
    laneOfRun.set(run.id, lane);
    return lane + 1;
  });
}
