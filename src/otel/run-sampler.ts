import { type Context, isSpanContextValid, trace } from '@opentelemetry/api';
import { guard } from '../base/guard.ts';
import { heldRateOf, SAMPLED } from '../run/context/context.ts';
import { usableOptions } from '../run/run-options.ts';
import { type Sampler, sample, samplingChecks, samplingDecision } from '../run/sampling/sampling.ts';
import { type Capturing, currentSink, noopSink } from '../run/sink.ts';
import { isRoot, observeActiveSpan, runAbove } from './live/active-spans.ts';
import { runNameOf } from './mapping/span-identity.ts';

/** OpenTelemetry's decisions. A span that is recorded but not sampled is passed to span processors only. */
const NOT_RECORD = 0;
const RECORD = 1;
const RECORD_AND_SAMPLED = 2;

/** Options of `RunSampler`. If no option is set, the `sampleRate` and `sampler` of `configure` apply. */
export interface RunSamplerOptions {
  /** Share of traces to sample, from 0 to 1. */
  sampleRate?: number;
  /** Function that decides whether to sample a trace. If the function returns undefined, `sampleRate` decides. */
  sampler?: Sampler;
}

/**
 * OpenTelemetry sampler that makes the same decisions as this library, so that runs and the spans of OpenTelemetry exporters
 * belong to the same traces. A span without a parent span gets the decision of the current run. If there is no current
 * run, the decision depends on the trace id. All other spans get the decision of their parent span. While tracing is
 * off, all traces are sampled unless an option is set. With `keep`, spans of traces that the sample rate drops are
 * recorded, but not sampled: span processors receive them, and OpenTelemetry exporters do not. A
 * `ParentBasedSampler` around this sampler would leave out the spans below them.
 */
export class RunSampler {
  readonly #given: Capturing | undefined;

  constructor(options?: RunSamplerOptions) {
    const { sampleRate, sampler } = usableOptions<RunSamplerOptions>('RunSampler', options, samplingChecks);
    if (sampleRate !== undefined || sampler !== undefined) {
      const sampling = samplingDecision(sampleRate ?? 1, sampler);
      this.#given = { capture: { ...noopSink.capture, sampling } };
    }
    observeActiveSpan();
  }

  shouldSample(parentContext: Context, traceId: string, spanName: string): { decision: 0 | 1 | 2 } {
    const decision = guard('RunSampler', () => this.#decide(parentContext, traceId, spanName));
    return { decision: decision ?? RECORD_AND_SAMPLED };
  }

  toString(): string {
    return 'RunSampler';
  }

  #decide(parentContext: Context, traceId: string, spanName: string): 0 | 1 | 2 {
    const parent = trace.getSpanContext(parentContext);
    const hasParent = parent !== undefined && isSpanContextValid(parent);
    if (hasParent && (parent.traceFlags & SAMPLED) !== 0) return RECORD_AND_SAMPLED;
    const present = currentSink();
    if (hasParent && present?.hold !== undefined && trace.getSpan(parentContext)?.isRecording()) return RECORD;
    const around = isRoot(parentContext) ? undefined : runAbove(parentContext);
    // A span below an unsampled parent span is left out, unless the run of the parent span is held.
    if (hasParent && heldRateOf(around) === undefined) return NOT_RECORD;
    const sink = this.#given && { ...this.#given, hold: present?.hold };
    const { isSampled, hold } = sample({ name: runNameOf(spanName) }, around, sink ?? present, {
      traceId,
      traceFlags: SAMPLED,
    });
    if (hold !== undefined) return RECORD;
    return isSampled ? RECORD_AND_SAMPLED : NOT_RECORD;
  }
}
