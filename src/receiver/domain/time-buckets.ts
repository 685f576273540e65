import type { StatisticsQuery, TimeRange } from './query.ts';

const BUCKETS = 60;

/** Start times of the first and the last run. */
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
const DAY_US = 86_400_000_000;

/** Time buckets for statistics. Each bucket except the first begins at a multiple of the bucket length. */
export class TimeBuckets {
  readonly fromUs: number;
  readonly toUs: number;
  readonly stepUs: number;

  /** Selects the shortest bucket length that needs at most `countMax` buckets. `toUs` is exclusive. */
  constructor(fromUs: number, toUs: number, countMax: number) {
    this.fromUs = fromUs;
    this.toUs = toUs;
    const fits = (stepUs: number): boolean => this.countOf(stepUs) <= countMax;
    let stepUs = STEPS_MS.map((ms) => ms * 1_000).find(fits);
    for (let days = 2; stepUs === undefined; days += 1) if (fits(days * DAY_US)) stepUs = days * DAY_US;
    this.stepUs = stepUs;
  }

  /** Returns how many buckets of the given length are needed. */
  countOf(stepUs: number): number {
    const lastUs = Math.max(this.fromUs, this.toUs - 1);
    return indexOf(lastUs, stepUs) - indexOf(this.fromUs, stepUs) + 1;
  }

  indexOf(startUs: number): number {
    return indexOf(startUs, this.stepUs) - indexOf(this.fromUs, this.stepUs);
  }

  startUsOf(index: number): number {
    return Math.max(this.fromUs, (indexOf(this.fromUs, this.stepUs) + index) * this.stepUs);
  }
}

function indexOf(startUs: number, stepUs: number): number {
  return Math.floor(startUs / stepUs);
}

/** How to calculate statistics: a query whose filter is parsed. */
export type StatisticsPlan = Pick<StatisticsQuery, 'groupBy' | 'groups' | 'buckets' | 'series'> & {
  readonly filter: { readonly range: TimeRange };
};

/**
 * Returns the time buckets for a query. If the query has no start or end time, the start of the first or last run is
 * used.
 */
export function timeBucketsOf(
  { buckets = BUCKETS, filter }: StatisticsPlan,
  range: StartRange | undefined,
): TimeBuckets | undefined {
  const { fromUs, beforeUs } = filter.range;
  const from = Number.isFinite(fromUs) ? fromUs : range?.firstUs;
  const to = Number.isFinite(beforeUs) ? beforeUs : range?.lastUs;
  return from === undefined || to === undefined ? undefined : new TimeBuckets(from, Math.max(from, to), buckets);
}
