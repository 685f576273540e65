import { isoTimestamp } from '../../run/time.ts';
import type { Figures, GroupKey, Ranged, Statistics, StatisticsQuery } from '../query/query.ts';
import { metadataKeyOf } from '../query/query-keys.ts';
import { type FilteredRun, metadataText, projectOf, threadOf, userOf } from './run-filter.ts';
import { USAGE_KEYS } from './run-summary.ts';
import type { RunStatus, Usage } from './run-view.ts';

const GROUPS = 50;
const BUCKETS = 60;

/** Total token counts and costs, in the order of `USAGE_KEYS`. */
export type UsageSums = number[];

export function usageSumsOf(usage: Usage | undefined): UsageSums {
  return USAGE_KEYS.map((key) => usage?.[key] ?? 0);
}

export function addUsage(to: UsageSums, sums: UsageSums, sign: 1 | -1): void {
  for (let at = 0; at < to.length; at += 1) to[at] = (to[at] ?? 0) + sign * (sums[at] ?? 0);
}

/** A run, or the total of several runs, to add to statistics. */
interface Counted {
  readonly startUs: number;
  readonly status: RunStatus;
  readonly runs: number;
  /** Usage that counts towards totals. */
  readonly usage: UsageSums;
  readonly latencies: Latencies;
}

/** Logarithm of the width of a latency bucket. Each bucket begins 2 % above the previous one. */
const BUCKET_LOG = Math.log(1.02);
/** Number of latency buckets. The last bucket contains all latencies above 10,000 years. */
const LATENCY_BUCKETS = 2_048;

/**
 * Number of runs in each latency bucket, encoded as pairs of characters. The first character's code is the bucket index
 * + 1. The second character's code is a number of runs + 2. All pairs for the same bucket are added up. When a run
 * leaves a bucket, a pair with -1 runs is appended. The encoding is text, because SQLite concatenates text much faster
 * than JavaScript reads separate rows.
 */
export type Latencies = string;

/** Maximum number of runs in a pair. Some larger numbers would become surrogate characters. */
const PAIR_RUNS_MAX = 30_000;

/**
 * Returns the pair that adds a run, or that removes the run if `sign` is -1. Runs that have not ended have no latency.
 */
export function latenciesOf(latencyUs: number | undefined, sign: 1 | -1 = 1): Latencies {
  return latencyUs === undefined ? '' : latencyPair(latencyBucketOf(latencyUs), sign);
}

/** `runs` must be between -1 and `PAIR_RUNS_MAX`. */
function latencyPair(bucket: number, runs: number): Latencies {
  return String.fromCharCode(bucket + 1, runs + 2);
}

/** Encodes the same latencies in as few pairs as possible. */
export function compactLatencies(latencies: Latencies): Latencies {
  let pairs = '';
  for (const [bucket, runs] of countsOf([latencies]).entries()) {
    for (let left = runs; left > 0; left -= PAIR_RUNS_MAX) pairs += latencyPair(bucket, Math.min(left, PAIR_RUNS_MAX));
  }
  return pairs;
}

/** Returns the number of runs in each latency bucket. */
function countsOf(parts: readonly Latencies[]): Float64Array {
  const counts = new Float64Array(LATENCY_BUCKETS);
  for (const pairs of parts) {
    for (let at = 0; at < pairs.length; at += 2) {
      const bucket = pairs.charCodeAt(at) - 1;
      counts[bucket] = (counts[bucket] ?? 0) + pairs.charCodeAt(at + 1) - 2;
    }
  }
  return counts;
}

function latencyBucketOf(latencyUs: number): number {
  return latencyUs <= 1 ? 0 : Math.min(LATENCY_BUCKETS - 1, Math.ceil(Math.log(latencyUs) / BUCKET_LOG));
}

/**
 * Returns the geometric mean of a bucket's bounds. The mean differs from every latency in the bucket by at most 1 %.
 */
function latencyUsOf(bucket: number): number {
  return bucket === 0 ? 0 : Math.round(Math.exp((bucket - 0.5) * BUCKET_LOG));
}

/** Start times of the first and the last run. */
export interface StartRange {
  readonly firstUs: number;
  readonly lastUs: number;
}

/** Calculates statistics from the runs that match a query. The runs may be in any order. */
export function statisticsOf(
  runs: readonly (FilteredRun & { readonly usage: Usage | undefined })[],
  query: Ranged<StatisticsQuery>,
): Statistics {
  let [firstUs, lastUs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { startUs } of runs) {
    firstUs = Math.min(firstUs, startUs);
    lastUs = Math.max(lastUs, startUs);
  }
  const { groupBy = 'name' } = query;
  const tally = new StatisticsTally(query, runs.length === 0 ? undefined : { firstUs, lastUs });
  for (const run of runs) {
    const { startUs, latencyUs, summary, usage } = run;
    const sums = { runs: 1, usage: usageSumsOf(usage), latencies: latenciesOf(latencyUs) };
    tally.add({ startUs, status: summary.status, ...sums }, groupsOf(groupBy, run));
  }
  return tally.statistics();
}

/** Returns the groups in which a run counts. */
function groupsOf(groupBy: GroupKey, { summary, metadata }: FilteredRun): readonly string[] {
  switch (groupBy) {
    case 'name':
    case 'model':
    case 'run_type':
    case 'status':
      return known(summary[groupBy]);
    case 'project':
      return [projectOf(summary)];
    case 'thread':
      return known(threadOf(metadata));
    case 'user':
      return known(userOf(metadata));
    default:
      return groupsInJson(groupBy, groupBy === 'tag' ? summary.tags : metadata);
  }
}

/** Returns the groups for the tags or the metadata of a run. */
export function groupsInJson(groupBy: GroupKey, json: readonly string[] | FilteredRun['metadata']): readonly string[] {
  if (json === undefined) return [];
  const key = metadataKeyOf(groupBy);
  if (key === undefined) return [...new Set(json as readonly string[])];
  return Object.hasOwn(json, key) ? [metadataText((json as Record<string, unknown>)[key])] : [];
}

function known(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}

/** Possible lengths of time buckets, in milliseconds. Longer buckets span a whole number of days. */
const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000),
];
const DAY_US = 86_400_000_000;

/** Time buckets for statistics. Each bucket except the first begins at a multiple of the bucket length. */
class TimeBuckets {
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

/**
 * Returns the time buckets for a query. If the query has no start or end time, the start of the first or last run is
 * used.
 */
function timeBucketsOf(
  { buckets = BUCKETS, range: { fromUs, beforeUs } }: Ranged<StatisticsQuery>,
  range: StartRange | undefined,
): TimeBuckets | undefined {
  const from = Number.isFinite(fromUs) ? fromUs : range?.firstUs;
  const to = Number.isFinite(beforeUs) ? beforeUs : range?.lastUs;
  return from === undefined || to === undefined ? undefined : new TimeBuckets(from, Math.max(from, to), buckets);
}

/** Adds up runs in total, by group and by time bucket. */
export class StatisticsTally {
  readonly #groupsMax: number;
  /** Time buckets. Undefined if there are no runs and the query has no time range. */
  readonly #time: TimeBuckets | undefined;
  readonly #total = new FiguresTally();
  readonly #groups = new Map<string, FiguresTally>();
  readonly #buckets: FiguresTally[];

  constructor(query: Ranged<StatisticsQuery>, range: StartRange | undefined) {
    this.#groupsMax = query.groups ?? GROUPS;
    this.#time = timeBucketsOf(query, range);
    this.#buckets = Array.from({ length: this.bucketsOf(this.stepUs) }, () => new FiguresTally());
  }

  /** Length of the time buckets, or 0 if there are none. */
  get stepUs(): number {
    return this.#time?.stepUs ?? 0;
  }

  /** Returns how many time buckets of the given length are needed. */
  bucketsOf(stepUs: number): number {
    return this.#time?.countOf(stepUs) ?? 0;
  }

  add(counted: Counted, groups: readonly string[]): void {
    this.#total.add(counted);
    for (const name of groups) {
      const group = this.#groups.get(name) ?? new FiguresTally();
      this.#groups.set(name, group);
      group.add(counted);
    }
    if (this.#time !== undefined)
      this.#buckets[Math.min(this.#buckets.length - 1, this.#time.indexOf(counted.startUs))]?.add(counted);
  }

  statistics(): Statistics {
    const time = this.#time;
    return {
      ...(time === undefined ? {} : { from: isoTimestamp(time.fromUs), to: isoTimestamp(time.toUs) }),
      total: this.#total.figures(),
      groups: [...this.#groups]
        .sort(([a, { runs: runsOfA }], [b, { runs: runsOfB }]) => runsOfB - runsOfA || (a < b ? -1 : 1))
        .slice(0, this.#groupsMax)
        .map(([group, tally]) => ({ group, ...tally.figures() })),
      buckets: this.#buckets.map((tally, index) => ({
        start_time: isoTimestamp(time?.startUsOf(index) ?? 0),
        ...tally.figures(),
      })),
    };
  }
}

class FiguresTally {
  runs = 0;
  #pending = 0;
  #errors = 0;
  readonly #usage: UsageSums = usageSumsOf(undefined);
  /**
   * Latencies that are not added up yet. Adding up latencies once at the end is faster, and skips groups that are
   * omitted.
   */
  readonly #latencies: Latencies[] = [];

  add({ status, runs, usage, latencies }: Counted): void {
    this.runs += runs;
    if (status === 'pending') this.#pending += runs;
    if (status === 'error') this.#errors += runs;
    if (latencies !== '') this.#latencies.push(latencies);
    addUsage(this.#usage, usage, 1);
  }

  figures(): Figures {
    const figures: Figures = { runs: this.runs, pending: this.#pending, errors: this.#errors };
    const latency = percentilesOf(this.#latencies);
    if (latency !== undefined) figures.latency_ms = latency;
    const kinds = USAGE_KEYS.map((key, index) => [key, this.#usage[index]] as const).filter(([, sum]) => sum !== 0);
    if (kinds.length > 0) figures.usage = Object.fromEntries(kinds);
    return figures;
  }
}

/**
 * Returns nearest-rank percentiles. The p-th percentile is the smallest latency that at least p percent of the runs do
 * not exceed. Returns undefined if there are no latencies.
 */
function percentilesOf(parts: readonly Latencies[]): Figures['latency_ms'] {
  if (parts.length === 0) return undefined;
  const counts = countsOf(parts);
  const total = counts.reduce((sum, runs) => sum + runs, 0);
  if (total === 0) return undefined;
  const at = (percent: number): number => {
    let left = Math.ceil((percent / 100) * total);
    const bucket = counts.findIndex((runs) => {
      left -= runs;
      return left <= 0 && runs > 0;
    });
    return latencyUsOf(Math.max(0, bucket)) / 1_000;
  };
  return { p50: at(50), p90: at(90), p95: at(95), p99: at(99), max: at(100) };
}
