import { clock } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { guard, ignoreRejection } from '../../base/guard.ts';
import { shown } from '../../base/text.ts';
import { type Checks, FUNCTION } from '../../config/checker.ts';
import { type RunContext, SAMPLED as SAMPLED_FLAG, type SpanIds } from '../context/context.ts';
import { spanTraceId, untraced } from '../context/current.ts';
import { type HeldTrace, projectText } from '../encoded-run.ts';
import { newRunId } from '../ids.ts';
import type { RunOptions } from '../run-options.ts';
import type { Capturing, SamplingDecision, TraceStart } from '../sink.ts';

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
  /** The run id on which the decision is based. Undefined if there is no decision, as for a nested run. */
  readonly id: string | undefined;
  /** Returns the trace that holds the run. Undefined if the run is passed to its sink at once. */
  readonly hold?: () => HeldTrace;
}

const SAMPLED: SamplingResult = { isSampled: true, id: undefined };
const LEFT_OUT: SamplingResult = { isSampled: false, id: undefined };

/**
 * The sink makes a sampling decision for the first run in a trace. All nested runs follow this decision. In an
 * OpenTelemetry trace, the decision is based on OpenTelemetry's trace id, so that it is the same for all first runs.
 * `span` contains the ids of the span, if the run is that of a span.
 */
export function sample(
  run: Pick<RunOptions, 'name' | 'runType' | 'id' | 'project' | 'root'>,
  parent: RunContext | undefined,
  sink: Capturing | undefined,
  span?: Pick<SpanIds, 'traceId' | 'traceFlags'>,
): SamplingResult {
  if (parent?.sampled === false) return LEFT_OUT;
  const { held, heldRate, id: parentId } = parent ?? {};
  if (held !== undefined) return held.state === 'leftOut' ? LEFT_OUT : { ...SAMPLED, hold: () => held };
  if (heldRate !== undefined && parentId !== undefined) return heldOrLeftOut(undefined, heldRate, sink);
  if (sink === undefined || parentId !== undefined) return SAMPLED;
  const { sampling: decide } = sink.capture;
  const isSpanSampled = heldRate === undefined && (span === undefined || (span.traceFlags & SAMPLED_FLAG) !== 0);
  if (decide === undefined) return isSpanSampled ? SAMPLED : heldOrLeftOut(undefined, Number.NaN, sink);
  const spanTrace = span?.traceId ?? (run.root === true ? undefined : spanTraceId());
  const traceId = spanTrace ?? run.id?.toLowerCase() ?? newRunId(clock.nowUs());
  const { name, runType = 'chain' } = run;
  const project = projectText(run.project ?? sink.capture.project);
  const id = spanTrace === undefined ? traceId : undefined;
  const decision = decide({ traceId, name, runType, project });
  if (decision === false) return { isSampled: false, id };
  if (decision !== true) return heldOrLeftOut(id, decision, sink);
  return isSpanSampled ? { isSampled: true, id } : heldOrLeftOut(id, Number.NaN, sink);
}

/** A trace that a sample rate drops is held if the sink can hold it. */
function heldOrLeftOut(id: string | undefined, rate: number, sink: Capturing | undefined): SamplingResult {
  const hold = sink?.hold;
  return hold === undefined ? { isSampled: false, id } : { isSampled: true, id, hold: () => hold(rate) };
}

export function samplingDecision(rate: number, sampler: Sampler | undefined): SamplingDecision | undefined {
  if (sampler === undefined) return rate >= 1 ? undefined : ({ traceId }) => atRate(traceId, rate);
  let isSampling = false;
  return (start) => {
    // Traces that start inside the sampler use `sampleRate`, because calling the sampler again would loop endlessly.
    if (isSampling) return atRate(start.traceId, rate);
    isSampling = true;
    const result: unknown = guard('sampler', () => untraced(sampler, start));
    isSampling = false;
    if (typeof result === 'boolean') return result;
    if (typeof result === 'number' && result >= 0) return atRate(start.traceId, result);
    ignoreRejection(result);
    if (result !== undefined) {
      diagnostics.warnOnce(
        'sampler answer',
        `sampler: expected true, false, a number from 0 to 1 or undefined, got ${shown(result)}; \`sampleRate\` is used.`,
      );
    }
    return atRate(start.traceId, rate);
  };
}

/** Returns true if the trace is recorded at this rate, otherwise the rate. */
function atRate(traceId: string, rate: number): true | number {
  return rate >= 1 || shareOf(traceId) < rate || rate;
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
