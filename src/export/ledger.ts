import type { Backlog, DeliveryError, Stats } from '../run/stats.ts';
import { Latencies, latencyOf } from './latencies.ts';

export type { DropReason, Stats } from '../run/stats.ts';

/** What is counted, and only ever counted up or moved: the part of `Stats` that adds up. */
export type Counts = Omit<Stats, 'backlog' | 'latency' | 'lastError'>;

/** Where a run can be while it is counted. */
export type Place = 'open' | 'queued' | 'inFlight' | 'spooled' | 'sent';

/** What an exporter counts and what its requests have told. It is there for longer than the exporter. */
export class Ledger {
  readonly counts: Counts = noCounts();
  readonly latencies: Latencies = new Latencies();
  lastError: DeliveryError | undefined;

  /** Takes over what another one holds, which nobody writes to any more. */
  absorb(other: Ledger): void {
    addInto(this.counts, other.counts);
    for (const ms of other.latencies.values) this.latencies.add(ms);
    this.lastError = latest([this, other]);
  }
}

/** Adds ledgers up, and what their exporters hold at the moment. */
export function totalStats(ledgers: readonly Ledger[], backlogs: readonly Backlog[] = []): Stats {
  const counts = noCounts();
  for (const ledger of ledgers) addInto(counts, ledger.counts);
  return {
    ...counts,
    backlog: {
      bytes: backlogs.reduce((sum, { bytes }) => sum + bytes, 0),
      oldestMs: backlogs.reduce((oldest, { oldestMs }) => Math.max(oldest, oldestMs), 0),
    },
    latency: latencyOf(ledgers.map(({ latencies }) => latencies)),
    lastError: latest(ledgers),
  };
}

/** The stats of nothing. */
export function noStats(): Stats {
  return totalStats([]);
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

/** Times in ISO 8601 sort as text. */
function latest(ledgers: readonly Ledger[]): DeliveryError | undefined {
  let found: DeliveryError | undefined;
  for (const { lastError } of ledgers) {
    if (lastError !== undefined && (found === undefined || lastError.at > found.at)) found = lastError;
  }
  return found && { ...found };
}
