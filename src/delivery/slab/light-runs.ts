import { guard } from '../../base/guard.ts';
import type { EncodedRun } from '../../run/encoded-run.ts';
import type { EndedTexts, LightRun, LightSink } from '../../run/sink.ts';
import type { DeliveryStates } from '../states.ts';
import type { SlabWriter } from './slab-writer.ts';

/** Ended runs are removed from the list when it has at least this length. */
const LENGTH_MIN = 128;

/** The open runs of an exporter that have no `EncodedRun` yet. */
export class LightRuns implements LightSink {
  readonly #states: DeliveryStates;
  readonly #slabs: SlabWriter;
  /** Returns whether a run may be light now, and counts the run then. */
  readonly #accept: () => boolean;
  /** Called after the oldest run has started, and after light runs became runs of the queue. */
  readonly #changed: () => void;
  /** In start order. Some have ended. */
  #runs: LightRun[] = [];
  #lengthMax = LENGTH_MIN;

  constructor(states: DeliveryStates, slabs: SlabWriter, accept: () => boolean, changed: () => void) {
    this.#states = states;
    this.#slabs = slabs;
    this.#accept = accept;
    this.#changed = changed;
  }

  /** Monotonic time at which the oldest run started. Infinity if there is none. */
  get firstAtMs(): number {
    return this.#runs[0]?.startedAtMs ?? Number.POSITIVE_INFINITY;
  }

  start(run: LightRun): boolean {
    if (this.#states.isFullFor(run) || !this.#accept()) return false;
    this.#states.startLight();
    const length = this.#runs.push(run);
    if (length > this.#lengthMax) this.#removeEnded();
    if (length === 1) this.#changed();
    return true;
  }

  begun(run: LightRun, record: EncodedRun): void {
    this.#states.beginLight(record, run.startedAtMs);
    this.#changed();
  }

  end(run: EndedTexts): void {
    this.#slabs.add(run);
  }

  /** Makes runs of the light runs that started by this time. */
  begin(untilMs: number = Number.POSITIVE_INFINITY): void {
    this.#slabs.write();
    this.#removeEnded();
    const last = this.#runs.findLastIndex(({ startedAtMs }) => startedAtMs <= untilMs);
    for (const run of this.#runs.splice(0, last + 1)) guard('delivery', () => run.begin());
  }

  #removeEnded(): void {
    this.#runs = this.#runs.filter(({ isLight }) => isLight);
    this.#lengthMax = Math.max(LENGTH_MIN, 2 * this.#runs.length);
  }
}
