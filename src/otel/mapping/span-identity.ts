import { clock } from '../../base/clock.ts';
import { safeText } from '../../base/text.ts';
import { isHex, newRunId, spanRunId } from '../../run/ids.ts';
import type { ScopeLike, SpanContextLike, SpanLike } from '../span-like.ts';

export function scopeOf({ instrumentationScope, instrumentationLibrary }: SpanLike): ScopeLike | undefined {
  return instrumentationScope ?? instrumentationLibrary;
}

export function startUsOf(span: SpanLike): number {
  return hrTimeUs(span.startTime) ?? clock.nowUs();
}

/** Returns the name of a span's run. Services reject a run without a name. */
export function runNameOf(spanName: unknown): string {
  return safeText(spanName) || 'span';
}

/** Returns the run id for a span. If a custom id generator created ids that are not hexadecimal, returns a new id. */
export function runIdOf(startUs: number, { traceId, spanId }: SpanContextLike): string {
  // The run id contains digits from both ids, so the digits must be hexadecimal.
  const isUsable = isHex(spanId, 16) && isHex(traceId.slice(29), 3);
  return isUsable ? spanRunId(startUs, traceId, spanId) : newRunId(startUs);
}

/** Converts seconds and nanoseconds to microseconds since 1970. Undefined if the time is invalid or too large. */
export function hrTimeUs(time: readonly [number, number] | undefined): number | undefined {
  if (!Array.isArray(time)) return undefined;
  const [seconds, nanoseconds]: readonly unknown[] = time;
  if (typeof seconds !== 'number' || typeof nanoseconds !== 'number') return undefined;
  const us = seconds * 1_000_000 + Math.floor(nanoseconds / 1_000);
  return Number.isSafeInteger(us) && us >= 0 ? us : undefined;
}
