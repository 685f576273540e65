/**
 * Whole microseconds since 1970 of a time in seconds and nanoseconds, without a detour over fractions of a millisecond;
 * undefined when an application has passed a time that is none, or one that whole microseconds cannot hold.
 */
export function hrTimeUs(time: readonly [number, number] | undefined): number | undefined {
  if (time === undefined) return undefined;
  const us = time[0] * 1_000_000 + Math.floor(time[1] / 1_000);
  return Number.isSafeInteger(us) && us >= 0 ? us : undefined;
}
