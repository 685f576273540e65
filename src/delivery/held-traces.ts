import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { shown } from '../base/text.ts';
import { untraced } from '../run/context/current.ts';
import {
  type EncodedRun,
  encodeLazy,
  type HeldRunSink,
  type HeldTrace,
  recordOf,
  releaseRun,
} from '../run/encoded-run.ts';
import type { RunRecord } from '../run/record.ts';
import { hasFailed } from '../run/sampling/keep.ts';
import type { EndedTrace, KeepRules } from '../run/sink.ts';
import { sizeOfContent } from './delivery.ts';
import type { Counts } from './ledger.ts';

/** Maximum number and size of the runs that an exporter holds. Beyond this, the oldest trace is decided on. */
const RUNS_MAX = 10_000;
const BYTES_MAX = 16 * 1_024 * 1_024;

interface HeldOptions {
  readonly rules: KeepRules;
  readonly counts: Counts;
  /** Time after which a trace is decided on, in milliseconds. Checked when another trace starts. */
  readonly ageMs: number;
  readonly monotonicMs: () => number;
  readonly decided: () => void;
}

/** The traces of an exporter that a sample rate drops, until a rule of `keep` applies or their first run ends. */
export class HeldTraces {
  readonly options: HeldOptions;
  /** Oldest first. */
  readonly #traces = new Set<Trace>();
  #bytes = 0;
  #isClosed = false;

  constructor(options: HeldOptions) {
    this.options = options;
  }

  get isEmpty(): boolean {
    return this.#traces.size === 0;
  }

  hold(rate: number): HeldTrace {
    const { ageMs, monotonicMs } = this.options;
    const nowMs = monotonicMs();
    for (const trace of this.#traces) {
      if (nowMs - trace.startedAtMs < ageMs) break;
      this.#giveUp(trace);
    }
    const trace = new Trace(this, rate, nowMs);
    if (this.#isClosed) trace.leaveOut();
    else this.#traces.add(trace);
    return trace;
  }

  /** Decides on all traces, because the process or the exporter ends. */
  settle(): void {
    for (const trace of this.#traces) trace.decide();
  }

  close(): void {
    this.settle();
    this.#isClosed = true;
  }

  add(runs: number, bytes: number): void {
    const { counts } = this.options;
    counts.held += runs;
    this.#bytes += bytes;
    for (const trace of this.#traces) {
      if (counts.held <= RUNS_MAX && this.#bytes <= BYTES_MAX) return;
      this.#giveUp(trace);
    }
  }

  /** Called before a decision on a trace takes effect. */
  remove(trace: Trace, runs: number, bytes: number): void {
    this.#traces.delete(trace);
    this.options.counts.held -= runs;
    this.#bytes -= bytes;
  }

  #giveUp(trace: Trace): void {
    trace.decide();
    if (trace.state === 'kept') return;
    diagnostics.warnOnce(
      'held traces',
      'a trace is left out before its end, because `keep` holds at most 10,000 runs and 16 MiB, each for at most an hour; logged once',
    );
  }
}

function sizeOf(run: EncodedRun): number {
  const { inputs, outputs } = run.lazy ?? {};
  return sizeOfContent({ run }) + (inputs?.length ?? 0) + (outputs?.length ?? 0);
}

/** A run of a held trace. While the trace is held, this is the state that its sink keeps for the run. */
class HeldRun {
  readonly run: EncodedRun;
  readonly sink: HeldRunSink;
  readonly bytes: number;
  isEnded = false;

  constructor(run: EncodedRun, sink: HeldRunSink) {
    this.run = run;
    this.sink = sink;
    this.bytes = sizeOf(run);
  }
}

class Trace implements HeldTrace {
  state: HeldTrace['state'] = 'held';
  readonly rate: number;
  readonly startedAtMs: number;
  readonly #traces: HeldTraces;
  /** In start order. Empty after the decision. */
  #runs: HeldRun[] = [];
  #bytes = 0;
  /** The rule that keeps the trace. */
  #reason = '';
  /** The sink that has refused a run. It then refuses all later ones, so that a trace is not sent with gaps. */
  #refusing: HeldRunSink | undefined;
  #isDeciding = false;

  constructor(traces: HeldTraces, rate: number, startedAtMs: number) {
    this.#traces = traces;
    this.rate = rate;
    this.startedAtMs = startedAtMs;
  }

  start(run: EncodedRun, sink: HeldRunSink): boolean {
    if (this.state === 'kept') return this.#pass(run, sink);
    if (this.state === 'leftOut') {
      sink.skip();
      return true;
    }
    const held = new HeldRun(run, sink);
    run.sinkState = held;
    this.#runs.push(held);
    this.#bytes += held.bytes;
    this.#traces.add(1, held.bytes);
    return true;
  }

  end(run: EncodedRun, sink: HeldRunSink): void {
    const held = run.sinkState;
    if (this.state === 'leftOut' || run.refused) releaseRun(run);
    else if (held instanceof HeldRun) this.#ended(held);
    else {
      // If the decision was made while the payload was read, the payload is not encoded yet.
      encodeLazy(run);
      sink.end(run);
    }
  }

  /** During a decision, functions of the application may end runs, which the decision then includes. */
  #ended(held: HeldRun): void {
    held.isEnded = true;
    if (this.state !== 'held') return;
    if (held === this.#runs[0] || (this.#traces.options.rules.onError && hasFailed(held.run))) this.decide();
    else {
      const grown = sizeOf(held.run) - held.bytes;
      this.#bytes += grown;
      this.#traces.add(0, grown);
    }
  }

  /** Called when a run has failed, the first run has ended, or the trace can be held no longer. */
  decide(): void {
    if (this.#isDeciding) return;
    this.#isDeciding = true;
    const { rules, monotonicMs } = this.#traces.options;
    const first = this.#runs[0];
    // The first run could not start.
    if (first === undefined) return void this.leaveOut();
    const { startTime, endTime } = first.run;
    const durationMs =
      endTime === undefined ? monotonicMs() - this.startedAtMs : Date.parse(endTime) - Date.parse(startTime);
    // A failed run may still wait for late content.
    if (rules.onError && this.#runs.some(({ run }) => hasFailed(run))) this.#keep('kept-error');
    else if (durationMs > rules.slowMs) this.#keep('kept-slow');
    else if (rules.functions.length > 0 && this.#isSelected(durationMs)) this.#keep('kept-function');
    else this.leaveOut();
  }

  leaveOut(): void {
    for (const { run, sink, isEnded } of this.#decided('leftOut')) {
      sink.skip();
      if (isEnded) releaseRun(run);
    }
    this.#traces.options.decided();
  }

  #keep(reason: string): void {
    this.#reason = reason;
    for (const held of this.#decided('kept')) {
      this.#pass(held.run, held.sink);
      if (held.isEnded) this.end(held.run, held.sink);
    }
    this.#traces.options.decided();
  }

  #decided(state: HeldTrace['state']): readonly HeldRun[] {
    if (this.state !== 'held') return [];
    const runs = this.#runs;
    this.state = state;
    this.#runs = [];
    this.#traces.remove(this, runs.length, this.#bytes);
    return runs;
  }

  #pass(run: EncodedRun, sink: HeldRunSink): boolean {
    const metadata = new Map(run.metadata).set('sampling', JSON.stringify(this.#reason));
    if (Number.isFinite(this.rate)) metadata.set('sample_rate', String(this.rate));
    run.metadata = metadata;
    encodeLazy(run);
    run.sinkState = undefined;
    if (this.#refusing === sink) run.refused = true;
    if (sink.start(run)) return true;
    run.refused = true;
    this.#refusing = sink;
    return false;
  }

  #isSelected(durationMs: number): boolean {
    const trace = endedTrace(this.#runs, durationMs);
    return this.#traces.options.rules.functions.some((select) => {
      const answer: unknown = guard('keep', () => untraced(select, trace));
      if (answer === undefined || typeof answer === 'boolean') return answer === true;
      ignoreRejection(answer);
      diagnostics.warnOnce('keep answer', `keep: expected true or false, got ${shown(answer)}; it counts as false.`);
      return false;
    });
  }
}

/** Returns what a function in `keep` receives. The runs are copied when they are first read. */
function endedTrace(held: readonly HeldRun[], durationMs: number): EndedTrace {
  const { traceId, name } = (held[0] as HeldRun).run;
  let runs: readonly RunRecord[] | undefined;
  return {
    traceId,
    name,
    durationMs,
    get runs() {
      runs ??= held.map(({ run }) => recordOf(run));
      return runs;
    },
  };
}
