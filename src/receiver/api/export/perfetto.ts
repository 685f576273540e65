import { timesOf } from '../../domain/run-values.ts';
import type { RunOutline } from '../../domain/run-view.ts';

/** A run as a bar on the time axis. */
interface Slice {
  readonly run: RunOutline;
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * Yields the JSON text of a trace in the "Trace Event Format" of Perfetto and Chrome, as complete events. Viewers can
 * only draw nested slices in a lane, so overlapping runs get different lanes. A pending run extends to the latest time
 * in the trace.
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

/** Returns the slices sorted by start time. An outer slice comes before the slices inside it. */
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
 * Assigns a lane to each slice. A slice that fits into the innermost open slice in its parent's lane gets the parent's
 * lane. Any other slice gets a free lane.
 */
function lanesOf(slices: readonly Slice[]): number[] {
  /** End times of the open slices in each lane, outermost slice first. */
  const open: number[][] = [];
  const free: number[] = [];
  /** Lanes in use, sorted by the end of their outermost slice, latest first. */
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
