import type { RunFigures } from '../query/query.ts';

/** Logarithm of the width of a latency bucket. Each bucket begins 2 % above the previous one. */
const BUCKET_LOG = Math.log(1.02);
/** Number of latency buckets. The last bucket contains all latencies above 10,000 years. */
export const LATENCY_BUCKETS = 2_048;

/**
 * Number of runs in each latency bucket, encoded as pairs of characters. The first character's code is the bucket index
 * + 1. The second character's code is a number of runs + 2. All pairs for the same bucket are added up. The encoding is
 * text, because SQLite concatenates text much faster than JavaScript reads separate rows.
 */
export type Latencies = string;

/** Maximum number of runs in a pair. Some larger numbers would become surrogate characters. */
const PAIR_RUNS_MAX = 30_000;

/** Returns the pair that adds a run. A run that has not ended has no latency. */
export function latenciesOf(latencyUs: number | undefined): Latencies {
  return latencyUs === undefined ? '' : latencyPair(latencyBucketOf(latencyUs), 1);
}

function latencyPair(bucket: number, runs: number): Latencies {
  return String.fromCharCode(bucket + 1, runs + 2);
}

export function latenciesOfCounts(counts: Iterable<readonly [bucket: number, runs: number]>): Latencies {
  let pairs = '';
  for (const [bucket, runs] of counts) {
    for (let left = runs; left > 0; left -= PAIR_RUNS_MAX) pairs += latencyPair(bucket, Math.min(left, PAIR_RUNS_MAX));
  }
  return pairs;
}

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

/** The bucket 0 is only for 0 µs, and the bucket 1 only for 1 µs. */
export function latencyBucketOf(latencyUs: number): number {
  const bucket = Math.max(1, Math.ceil(Math.log(latencyUs) / BUCKET_LOG));
  return latencyUs < 1 ? 0 : Math.min(LATENCY_BUCKETS - 1, bucket);
}

const PERCENTS: readonly number[] = [50, 90, 95, 99, 100];

/**
 * Returns nearest-rank percentiles. The p-th percentile is the smallest latency that at least p percent of the runs do
 * not exceed. Returns undefined if there are no latencies.
 */
export function percentilesOf(parts: readonly Latencies[]): RunFigures['latency_ms'] {
  if (parts.length === 0) return undefined;
  const counts = countsOf(parts);
  let total = 0;
  // An iterator takes several times as long.
  for (let bucket = 0; bucket < LATENCY_BUCKETS; bucket += 1) total += counts[bucket] ?? 0;
  if (total === 0) return undefined;
  const found: number[] = [];
  let bucket = -1;
  let runs = 0;
  for (const percent of PERCENTS) {
    const rank = Math.ceil((percent / 100) * total);
    while (runs < rank) runs += counts[++bucket] ?? 0;
    // The geometric mean of the bucket's bounds differs from each latency in it by at most 1 %.
    const meanUs = bucket === 0 ? 0 : Math.exp((bucket - 0.5) * BUCKET_LOG);
    // Rounding a larger mean to whole microseconds would add to that error.
    found.push((meanUs < 50 ? Math.round(meanUs) : Math.round(meanUs * 1_000) / 1_000) / 1_000);
  }
  const [p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0] = found;
  return { p50, p90, p95, p99, max };
}
