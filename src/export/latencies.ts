import type { Latency } from '../run/stats.ts';

/** How many are kept, by each exporter. */
const KEPT = 500;

/** The durations of the latest requests, in milliseconds. */
export class Latencies {
  readonly #ms: number[] = [];
  #next = 0;

  get values(): readonly number[] {
    return this.#ms;
  }

  add(ms: number): void {
    this.#ms[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
  }
}

/** The percentiles of all durations together; undefined when there are none. */
export function latencyOf(all: Iterable<Latencies>): Latency | undefined {
  const ms = [...all].flatMap(({ values }) => values).sort((a, b) => a - b);
  return ms.length === 0 ? undefined : { p50Ms: ofRank(ms, 0.5), p99Ms: ofRank(ms, 0.99) };
}

/** The smallest value that as large a share of all does not exceed. */
function ofRank(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(sorted.length * share) - 1] as number;
}
