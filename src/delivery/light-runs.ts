import { guard } from '../base/guard.ts';
import { clearTimer, DELAY_MAX_MS, setTimer } from '../platform/timers.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import type { LightRun, LightSink } from '../run/sink.ts';
import type { SlabWriter } from './slab-writer.ts';
import type { DeliveryStates, ExporterParts } from './states.ts';
import type { RunTexts } from './wire/part-buffer.ts';

/** Ended runs are removed from the list when it has at least this length. */
const LENGTH_MIN = 128;

/** The open runs of an exporter that have no `EncodedRun` yet. */
export class LightRuns implements LightSink {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #slabs: SlabWriter;
  /** Whether a run may be light now. */
  readonly #accepts: () => boolean;
  /** Called after light runs became runs of the queue. */
  readonly #began: () => void;
  /** In start order. Some have ended. */
  #runs: LightRun[] = [];
  #lengthMax = LENGTH_MIN;
  /** Time after which the start of a run is sent, in milliseconds. */
  readonly #dueMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    parts: ExporterParts,
    states: DeliveryStates,
    slabs: SlabWriter,
    accepts: () => boolean,
    began: () => void,
  ) {
    this.#parts = parts;
    this.#states = states;
    this.#slabs = slabs;
    this.#accepts = accepts;
    this.#began = began;
    this.#dueMs = Math.max(parts.limits.startDelayMs, parts.limits.lingerMs);
  }

  start(run: LightRun): boolean {
    if (this.#states.isFullFor(run) || !this.#accepts()) return false;
    this.#states.startLight();
    if (this.#runs.push(run) > this.#lengthMax) this.#removeEnded();
    this.#watch();
    return true;
  }

  begun(run: LightRun, record: EncodedRun): void {
    this.#states.beginLight(record, run.startedAtMs);
    this.#began();
  }

  finishSoon(run: LightRun): void {
    this.#slabs.finishSoon(run);
  }

  end(id: string, main: string, texts: RunTexts): boolean {
    if (this.#states.isOverfull || !this.#slabs.append(id, main, texts)) return false;
    this.#states.endLight();
    return true;
  }

  /** Makes runs of the light runs that started by this time. */
  begin(untilMs: number = Number.POSITIVE_INFINITY): void {
    this.#slabs.write();
    this.#removeEnded();
    const last = this.#runs.findLastIndex(({ startedAtMs }) => startedAtMs <= untilMs);
    for (const run of this.#runs.splice(0, last + 1)) guard('delivery', () => run.begin());
    this.#watch();
  }

  close(): void {
    clearTimer(this.#timer);
    this.begin();
  }

  #removeEnded(): void {
    this.#runs = this.#runs.filter(({ isLight }) => isLight);
    this.#lengthMax = Math.max(LENGTH_MIN, 2 * this.#runs.length);
  }

  /** Wakes when the start of the oldest run is due. */
  #watch(): void {
    const [oldest] = this.#runs;
    if (oldest === undefined || this.#timer !== undefined) return;
    const { limits, monotonicMs } = this.#parts;
    const leftMs = Math.max(1, oldest.startedAtMs + this.#dueMs - monotonicMs());
    this.#timer = setTimer(
      () => {
        this.#timer = undefined;
        // To save requests, starts that are due soon are sent, too.
        this.begin(monotonicMs() - this.#dueMs + limits.lingerMs);
      },
      Math.min(DELAY_MAX_MS, leftMs),
    ).unref();
  }
}
