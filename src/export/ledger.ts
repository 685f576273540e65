import type { Backlog, DeliveryError, Latency, Stats } from '../run/stats.ts';

export type { DropReason, Stats } from '../run/stats.ts';

/** The counters of `Stats`. */
export type Counts = Omit<Stats, 'backlog' | 'latency' | 'lastError'>;

/** The states of a run in the ledger. */
export type Place = 'open' | 'queued' | 'inFlight' | 'spooled' | 'sent';

/** The counters of an exporter and the figures of its requests. A ledger outlives its exporter. */
export class Ledger {
  readonly counts: Counts = noCounts();
  readonly latencies: Latencies = new Latencies();
  lastError: DeliveryError | undefined;

  /** Adds the figures of a ledger that no longer changes. */
  absorb(other: Ledger): void {
    addInto(this.counts, other.counts);
    for (const ms of other.latencies.values) this.latencies.add(ms);
    this.lastError = latest([this, other]);
  }
}

/** Returns the sum of ledgers and of the backlogs of their exporters. */
export function totalStats(ledgers: readonly Ledger[], backlogs: readonly Backlog[] = []): Stats {
  const counts = noCounts();
  for (const ledger of ledgers) addInto(counts, ledger.counts);
  return {
    ...counts,
    backlog: {
      bytes: backlogs.reduce((sum, { bytes }) => sum + bytes, 0),
      oldestMs: backlogs.reduce((oldest, { oldestMs }) => Math.max(oldest, oldestMs), 0),
    },
    latency: latencyOf(ledgers),
    lastError: latest(ledgers),
  };
}

/** Returns `Stats` in which every counter is 0. */
export function noStats(): Stats {
  return totalStats([]);
}

/** Number of durations that an exporter keeps. */
const DURATIONS_MAX = 500;

/** The durations of the latest requests, in milliseconds. */
class Latencies {
  readonly #durationsMs: number[] = [];
  #next = 0;

  get values(): readonly number[] {
    return this.#durationsMs;
  }

  add(ms: number): void {
    this.#durationsMs[this.#next] = ms;
    this.#next = (this.#next + 1) % DURATIONS_MAX;
  }
}

/** Returns the percentiles of all durations together, or undefined if there are none. */
function latencyOf(ledgers: readonly Ledger[]): Latency | undefined {
  const sorted = ledgers.flatMap(({ latencies }) => latencies.values).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const nearestRank = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] as number;
  return { p50Ms: nearestRank(0.5), p99Ms: nearestRank(0.99) };
}

function noCounts(): Counts {
  return {
    created: 0,
    recovered: 0,
    open: 0,
    queued: 0,
    inFlight: 0,
    spooled: 0,
    sent: 0,
    dropped: 0,
    droppedByReason: { queue_full: 0, too_large: 0, rejected: 0, expired: 0, corrupt: 0, closed: 0 },
    sampledOut: 0,
    requests: { multipart: 0, simple: 0 },
  };
}

function addInto(total: object, part: object): void {
  for (const [key, value] of Object.entries(part)) {
    const sums = total as Record<string, number | object>;
    if (typeof value === 'object') addInto(sums[key] as object, value);
    else sums[key] = (sums[key] as number) + value;
  }
}

/** Returns the latest error. Timestamps in ISO 8601 sort as text. */
function latest(ledgers: readonly Ledger[]): DeliveryError | undefined {
  let found: DeliveryError | undefined;
  for (const { lastError } of ledgers) {
    if (lastError !== undefined && (found === undefined || lastError.at > found.at)) found = lastError;
  }
  return found && { ...found };
}
