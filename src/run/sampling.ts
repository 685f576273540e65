import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { shown } from '../base/text.ts';
import { type Checks, FUNCTION } from '../config/checker.ts';
import { type RunContext, spanTraceId, untraced } from './context.ts';
import { projectText } from './encoded-run.ts';
import { newRunId } from './ids.ts';
import { projectIn, type RunOptions } from './run-options.ts';
import type { Capturing, SamplingDecision, TraceStart } from './sink.ts';

/**
 * Function that decides whether a trace is recorded. Called when the first run in a trace starts. Return true to record
 * the trace, false to leave it out, or a sample rate from 0 to 1 for this trace. The function must be synchronous. If
 * the sampler throws, or returns `undefined` or an invalid value, `sampleRate` applies. Invalid values are logged once.
 */
export type Sampler = (start: TraceStart) => boolean | number | undefined;

export const samplingChecks: Checks<{ sampleRate?: number; sampler?: Sampler }> = {
  sampleRate: ['a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1],
  sampler: FUNCTION,
};

export interface SamplingResult {
  readonly isSampled: boolean;
  /**
   * The run id that the sampling decision is based on. Undefined if there is no decision, for example for a nested run.
   */
  readonly id: string | undefined;
}

const SAMPLED: SamplingResult = { isSampled: true, id: undefined };
const LEFT_OUT: SamplingResult = { isSampled: false, id: undefined };

/**
 * The sink makes a sampling decision for the first run in a trace. All nested runs follow this decision. In an
 * OpenTelemetry trace, the decision is based on OpenTelemetry's trace id, so that it is the same for all first runs.
 */
export function sample(
  run: Pick<RunOptions, 'name' | 'runType' | 'id' | 'project' | 'projectId' | 'root'>,
  parent: RunContext | undefined,
  sink: Capturing | undefined,
  otelTraceId?: string,
): SamplingResult {
  if (parent?.sampled === false) return LEFT_OUT;
  const decide = sink?.capture.sampling;
  if (sink === undefined || decide === undefined || parent?.id !== undefined) return SAMPLED;
  const isAlone = run.root === true || sink.capture.otelSampling === false;
  const id = otelTraceId ?? (isAlone ? undefined : spanTraceId());
  const traceId = id ?? run.id?.toLowerCase() ?? newRunId(clock.nowUs());
  const { name, runType = 'chain' } = run;
  const project = projectText(projectIn(run) ?? sink.capture.project);
  return { isSampled: decide({ traceId, name, runType, project }), id: id === undefined ? traceId : undefined };
}

export function samplingDecision(rate: number, sampler: Sampler | undefined): SamplingDecision | undefined {
  if (sampler === undefined) return rate >= 1 ? undefined : ({ traceId }) => isWithin(traceId, rate);
  let isSampling = false;
  return (start) => {
    // Traces that start inside the sampler use `sampleRate`, because calling the sampler again would loop endlessly.
    if (isSampling) return isWithin(start.traceId, rate);
    isSampling = true;
    const result: unknown = guard('sampler', () => untraced(sampler, start));
    isSampling = false;
    if (typeof result === 'boolean') return result;
    if (typeof result === 'number' && result >= 0) return isWithin(start.traceId, result);
    ignoreRejection(result);
    if (result !== undefined) {
      diagnostics.warnOnce(
        'sampler answer',
        `sampler: expected true, false, a number from 0 to 1 or undefined, got ${shown(result)}; \`sampleRate\` is used.`,
      );
    }
    return isWithin(start.traceId, rate);
  };
}

function isWithin(traceId: string, rate: number): boolean {
  return rate >= 1 || shareOf(traceId) < rate;
}

/**
 * Maps a lower-case trace id to a number from 0 to 1. Every process and version computes the same number, so services
 * with the same sample rate record the same traces. The number is the 32-bit FNV-1a hash with MurmurHash3's finaliser,
 * divided by 2^32.
 */
export function shareOf(traceId: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < traceId.length; at++) hash = Math.imul(hash ^ traceId.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
