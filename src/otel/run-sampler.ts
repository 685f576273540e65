import { type Context, isSpanContextValid, trace } from '@opentelemetry/api';
import { guard } from '../base/guard.ts';
import { SAMPLED } from '../run/context.ts';
import { usableOptions } from '../run/run-options.ts';
import { type Sampler, sample, samplingChecks, samplingDecision } from '../run/sampling.ts';
import { type Capturing, currentSink, noopSink } from '../run/sink.ts';
import { isRoot, observeActiveSpan, runAbove } from './live/active-spans.ts';
import { runNameOf } from './mapping/span-identity.ts';

const NOT_RECORD = 0;
const RECORD_AND_SAMPLED = 2;

/** Options of `RunSampler`. If no option is set, the `sampleRate` and `sampler` of `configure` apply. */
export interface RunSamplerOptions {
  /** Share of traces to sample, from 0 to 1. */
  sampleRate?: number;
  /** Function that decides whether to sample a trace. If the function returns undefined, `sampleRate` decides. */
  sampler?: Sampler;
}

/**
 * OpenTelemetry sampler that makes the same decisions as this library, so that runs and the spans of other exporters
 * belong to the same traces. A span without a parent span gets the decision of the current run. If there is no current
 * run, the decision depends on the trace id. All other spans get the decision of their parent span. While tracing is
 * off, all traces are sampled unless an option is set.
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

  shouldSample(parentContext: Context, traceId: string, spanName: string): { decision: 0 | 2 } {
    const isSampled = guard('RunSampler', () => this.#isSampled(parentContext, traceId, spanName)) ?? true;
    return { decision: isSampled ? RECORD_AND_SAMPLED : NOT_RECORD };
  }

  toString(): string {
    return 'RunSampler';
  }

  #isSampled(parentContext: Context, traceId: string, spanName: string): boolean {
    const parent = trace.getSpanContext(parentContext);
    if (parent !== undefined && isSpanContextValid(parent)) return (parent.traceFlags & SAMPLED) !== 0;
    const around = isRoot(parentContext) ? undefined : runAbove(parentContext);
    return sample({ name: runNameOf(spanName) }, around, this.#given ?? currentSink(), traceId).isSampled;
  }
}
