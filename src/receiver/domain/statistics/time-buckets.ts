import type { StatisticsQuery, TimeRange } from '../query/query.ts';

const BUCKETS = 60;

export interface StartRange {
  readonly firstUs: number;
  readonly lastUs: number;
}

/** Possible lengths of time buckets, in milliseconds. Longer buckets span a whole number of days. */
const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000),
];
const MINUTE_US = 60_000_000;
const HOUR_US = 60 * MINUTE_US;
const DAY_US = 24 * HOUR_US;

/** Returns the offset of a time zone from UTC at a time. Both are in microseconds. */
type OffsetAt = (us: number) => number;

interface BucketLimits {
  readonly countMax: number;
  readonly offsetAt: OffsetAt;
}

/** Time buckets for statistics. Each bucket except the first begins at a multiple of the bucket length in local time. */
export class TimeBuckets {
  readonly fromUs: number;
  readonly toUs: number;
  readonly stepUs: number;
  /** Start of each bucket. Where daylight saving begins or ends, a bucket of several hours is shorter or longer. */
  readonly starts: readonly number[];

  /** Selects the shortest bucket length that needs at most `countMax` buckets. `toUs` is exclusive. */
  constructor(fromUs: number, toUs: number, limits: BucketLimits) {
    this.fromUs = fromUs;
    this.toUs = toUs;
    const { stepUs, starts } = shortestBuckets(fromUs, Math.max(0, toUs - 1 - fromUs), limits);
    this.stepUs = stepUs;
    this.starts = starts;
  }

  /** A run before the first bucket, or after the last, counts in that bucket. */
  indexOf(startUs: number): number {
    const steps = Math.floor((startUs - this.fromUs) / this.stepUs);
    let index = Math.max(0, Math.min(this.starts.length - 1, steps));
    while ((this.starts[index + 1] ?? Number.POSITIVE_INFINITY) <= startUs) index += 1;
    while (index > 0 && (this.starts[index] ?? 0) > startUs) index -= 1;
    return index;
  }
}

function shortestBuckets(fromUs: number, lengthUs: number, { countMax, offsetAt }: BucketLimits) {
  const lastUs = fromUs + lengthUs;
  // The offsets of a time zone differ by less than two days, so that all buckets that start before this time count.
  const [localFromUs, localCountedUs] = [fromUs + offsetAt(fromUs), lastUs + offsetAt(lastUs) - 2 * DAY_US];
  for (let at = 0; ; at += 1) {
    const stepUs = (STEPS_MS[at] ?? 0) * 1_000 || (at - STEPS_MS.length + 2) * DAY_US;
    // The first bucket can be shorter, and a change of the offset can lengthen a bucket by hours.
    if (lengthUs > (countMax + 1) * stepUs) continue;
    // A range with a round time in the middle does not fit in one bucket of any length.
    const isLongest = stepUs >= lengthUs + DAY_US;
    const startsAfterFirst = Math.floor(localCountedUs / stepUs) - Math.floor(localFromUs / stepUs);
    if (!isLongest && startsAfterFirst >= countMax) continue;
    const starts = startsOf(fromUs, lastUs, stepUs, countMax, offsetAt);
    if (starts.length <= countMax || isLongest) return { stepUs, starts: starts.slice(0, countMax) };
  }
}

/** Returns the start of each bucket, but at most one more than `countMax`. */
function startsOf(fromUs: number, lastUs: number, stepUs: number, countMax: number, offsetAt: OffsetAt): number[] {
  const offset = offsetAt(fromUs);
  // Almost all changes of an offset are whole hours, so buckets of at most an hour keep their round times.
  const utcOf = (localUs: number): number =>
    localUs - (stepUs <= HOUR_US ? offset : offsetAt(localUs - offsetAt(localUs)));
  const starts = [fromUs];
  for (
    let localUs = (Math.floor((fromUs + offset) / stepUs) + 1) * stepUs;
    starts.length <= countMax;
    localUs += stepUs
  ) {
    if (utcOf(localUs) > lastUs) break;
    starts.push(utcOf(localUs));
  }
  return starts;
}

/** Returns the offsets of a time zone: an IANA name, or minutes east of UTC. Throws a RangeError if there is no such zone. */
export function offsetsOf(timeZone = '0'): OffsetAt {
  if (/^[+-]?\d{1,4}$/.test(timeZone)) return () => Number(timeZone) * MINUTE_US;
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  return (us) => {
    // For example `11/29/2026, GMT-03:30`
    const [, sign, hours = 0, minutes = 0] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(format.format(us / 1_000)) ?? [];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * MINUTE_US;
  };
}

/** How to calculate statistics: a query whose filter is parsed. */
export type StatisticsPlan = Omit<StatisticsQuery, 'filter'> & {
  readonly filter: { readonly range: TimeRange };
};

/** Returns the time buckets for a query. If it has no start or end, that of the first or last run is used. */
export function timeBucketsOf(
  { buckets: countMax = BUCKETS, filter, timeZone }: StatisticsPlan,
  range: StartRange | undefined,
): TimeBuckets | undefined {
  const { fromUs, beforeUs } = filter.range;
  const from = Number.isFinite(fromUs) ? fromUs : range?.firstUs;
  const to = Number.isFinite(beforeUs) ? beforeUs : range?.lastUs;
  if (from === undefined || to === undefined) return undefined;
  return new TimeBuckets(from, Math.max(from, to), { countMax, offsetAt: offsetsOf(timeZone) });
}
