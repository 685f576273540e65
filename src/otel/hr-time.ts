/**
 * Whole microseconds since 1970 of a time in seconds and nanoseconds, without a detour over fractions of a millisecond;
 * undefined when an application has passed a time that is none, or one that whole microseconds cannot hold.
 */
export function hrTimeUs(time: readonly [number, number] | undefined): number | undefined {
  const [seconds, nanoseconds]: readonly unknown[] = Array.isArray(time) ? time : [];
  if (typeof seconds !== 'number' || typeof nanoseconds !== 'number') return undefined;
  const us = seconds * 1_000_000 + Math.floor(nanoseconds / 1_000);
  return Number.isSafeInteger(us) && us >= 0 ? us : undefined;
}
