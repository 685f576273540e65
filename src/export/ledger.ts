/** Why runs were given up; the words are part of the public interface. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/**
 * Where every run is that was ever created, each counted once:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 */
export interface Stats {
  created: number;
  /** Taken over from an earlier process. */
  recovered: number;
  /** Started, and the end not yet recorded. */
  open: number;
  /** Ended, with some part waiting to be sent. */
  queued: number;
  /** Ended, with all that is left of it under way. */
  inFlight: number;
  /** Ended, and kept on disk. */
  spooled: number;
  /** The service has accepted its end. */
  sent: number;
  /** Some part of it was given up. */
  dropped: number;
  /** The same by reason. */
  droppedByReason: Record<DropReason, number>;
  /** Left out by sampling; no loss, and not part of the sum. */
  sampledOut: number;
  /** Requests sent, retries included, by endpoint kind. */
  requests: { multipart: number; simple: number };
}

/** Where a run can be while it is counted. */
export type Place = 'open' | 'queued' | 'inFlight' | 'spooled' | 'sent';

/** An empty ledger. */
export function noStats(): Stats {
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

/** Adds ledgers up. */
export function totalStats(all: Iterable<Readonly<Stats>>): Stats {
  const total = noStats();
  for (const stats of all) addInto(total, stats);
  return total;
}

function addInto(total: object, part: object): void {
  for (const [key, value] of Object.entries(part)) {
    const sums = total as Record<string, number | object>;
    if (typeof value === 'object') addInto(sums[key] as object, value);
    else sums[key] = (sums[key] as number) + value;
  }
}
