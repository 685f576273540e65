import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { ignoreRejection } from '../base/rejection.ts';
import { shown } from '../base/text.ts';
import { untraced } from './untraced.ts';

/** What is known of a trace when its first run is about to start. */
export interface TraceStart {
  readonly traceId: string;
  /** The name and type of the first run, and the name or id of its project. */
  readonly name: string;
  readonly runType: string;
  readonly project: string;
}

/**
 * Called when the first run of a trace starts, to decide whether the trace is recorded. Returns true, false or the
 * fraction of such traces to record, from 0 to 1. The function must be synchronous. If it returns `undefined` or
 * throws, `sampleRate` applies. Any other result is logged once, and `sampleRate` applies as well.
 */
export type Sampler = (start: TraceStart) => boolean | number | undefined;

/** A trace is recorded whole or not at all. */
export type SamplingDecision = (start: TraceStart) => boolean;

/** Puts rate and sampler together; undefined when every trace is recorded. */
export function samplingDecision(rate: number, sampler: Sampler | undefined): SamplingDecision | undefined {
  if (sampler === undefined) return rate >= 1 ? undefined : ({ traceId }) => isWithin(traceId, rate);
  let isAsking = false;
  return (start) => {
    // A sampler that starts a trace all the same is not asked about that.
    if (isAsking) return isWithin(start.traceId, rate);
    isAsking = true;
    const answer: unknown = guard('sampler', () => untraced(sampler, start));
    isAsking = false;
    if (typeof answer === 'boolean') return answer;
    if (typeof answer === 'number' && answer >= 0) return isWithin(start.traceId, answer);
    if (answer !== undefined) refuse(answer);
    return isWithin(start.traceId, rate);
  };
}

function refuse(answer: unknown): void {
  ignoreRejection(answer);
  diagnostics.warnOnce(
    'sampler answer',
    `sampler: expected true, false, a number from 0 to 1 or undefined, at once, got ${shown(answer)}; \`sampleRate\` decides.`,
  );
}

function isWithin(traceId: string, rate: number): boolean {
  return rate >= 1 || shareOf(traceId) < rate;
}

/**
 * A number from 0 up to 1 that a trace id always gives, in every process and every version: the text of the id in lower
 * case, hashed by 32-bit FNV-1a with the finaliser of MurmurHash3, over 2^32. A trace is thus recorded by all services with
 * the same rate or by none, and one with a higher rate records all that one with a lower does.
 */
export function shareOf(traceId: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < traceId.length; at++) hash = Math.imul(hash ^ traceId.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
