import { parseIsoTimestamp } from '../../run/time.ts';
import type { RunOutline } from '../store/run-view.ts';

/** One slice of a lane. */
interface Slice {
  readonly run: RunOutline;
  readonly startUs: number;
  readonly endUs: number;
  readonly lane: number;
}

/**
 * The events of a trace as Perfetto and Chrome's tracing page read them ("Trace Event Format", complete events). Runs that
 * overlap without one being within the other go to lanes of their own; one that has not ended reaches to the end of the trace.
 */
export function* perfettoEvents(runs: readonly RunOutline[]): Generator<object> {
  const slices = inLanes(runs);
  yield { ph: 'M', name: 'process_name', pid: 1, args: { name: runs[0]?.name ?? '' } };
  for (const lane of new Set(slices.map(({ lane }) => lane))) {
    yield { ph: 'M', name: 'thread_name', pid: 1, tid: lane, args: { name: `runs ${lane}` } };
  }
  for (const { run, startUs, endUs, lane } of slices) {
    const { id, status, error, model, usage, name, run_type: cat } = run;
    const args = { id, status, error, model, ...usage };
    yield { ph: 'X', name, cat, ts: startUs, dur: endUs - startUs, pid: 1, tid: lane, args };
  }
}

/** Viewers nest what stands within one another on a lane, and draw everything else there wrong. */
function inLanes(runs: readonly RunOutline[]): Slice[] {
  const timed = runs.map((run) => ({ run, startUs: timeOf(run.start_time), endUs: timeOf(run.end_time ?? '') }));
  const lastUs = timed.reduce((last, { startUs, endUs }) => Math.max(last, startUs, endUs), 0);
  const ended = timed.map(({ run, startUs, endUs }) => ({
    run,
    startUs,
    endUs: Math.max(startUs, run.end_time === undefined ? lastUs : endUs),
  }));
  ended.sort((a, b) => a.startUs - b.startUs || b.endUs - a.endUs);
  const lanes = new Lanes(ended);
  const laneOf = new Map<string, number>();
  return ended.map((slice) => {
    const lane = lanes.put(slice, laneOf.get(slice.run.parent_run_id ?? ''));
    laneOf.set(slice.run.id, lane);
    return { ...slice, lane: lane + 1 };
  });
}

type Timed = Omit<Slice, 'lane'>;

/** Who stands where, in time that goes with the number of slices, however many of them overlap. */
class Lanes {
  /** For each lane the ends of the slices that are open at the moment, the outermost first. */
  readonly #open: number[][] = [];
  readonly #byEnd: readonly Timed[];
  /** So many of these have ended. */
  #past = 0;
  /** The lanes of slices that stand within no other. */
  readonly #laneOf = new Map<Timed, number>();
  /** Lanes whose outermost slice has ended; one of them may have got another since. */
  readonly #free: number[] = [];

  constructor(slices: readonly Timed[]) {
    this.#byEnd = [...slices].sort((a, b) => a.endUs - b.endUs);
  }

  /** The lane of a slice, that of its parent if it fits there. They have to come in order of their start. */
  put(slice: Timed, ofParent: number | undefined): number {
    const { startUs, endUs } = slice;
    const fits = ofParent !== undefined && (this.#openIn(ofParent, startUs).at(-1) ?? endUs) >= endUs;
    const lane = fits ? ofParent : this.#freeAt(startUs);
    const open = this.#openIn(lane, startUs);
    if (open.length === 0) this.#laneOf.set(slice, lane);
    // It has been passed over among those that have ended.
    if (open.length === 0 && endUs <= startUs) this.#free.push(lane);
    open.push(endUs);
    return lane;
  }

  #openIn(lane: number, atUs: number): number[] {
    const open = this.#open[lane] ?? [];
    while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= atUs) open.pop();
    return open;
  }

  #freeAt(atUs: number): number {
    for (let slice = this.#byEnd[this.#past]; slice !== undefined && slice.endUs <= atUs; ) {
      const lane = this.#laneOf.get(slice);
      if (lane !== undefined) this.#free.push(lane);
      this.#past += 1;
      slice = this.#byEnd[this.#past];
    }
    for (let lane = this.#free.pop(); lane !== undefined; lane = this.#free.pop()) {
      if (this.#openIn(lane, atUs).length === 0) return lane;
    }
    return this.#open.push([]) - 1;
  }
}

function timeOf(text: string): number {
  return parseIsoTimestamp(text) ?? 0;
}
