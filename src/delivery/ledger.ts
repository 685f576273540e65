import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { setSoon } from '../platform/timers.ts';
import { untraced } from '../run/context/current.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import {
  type Backlog,
  type DeliveryError,
  type DroppedRun,
  type DropReason,
  type Latency,
  publish,
  type Stats,
} from '../run/stats.ts';

export type { DropReason, Stats } from '../run/stats.ts';

export type Counts = Omit<Stats, 'backlog' | 'latency' | 'lastError'>;

export type RunCounter = 'open' | 'queued' | 'inFlight' | 'spooled' | 'sent';

/** An exporter's counters, request durations and last error. Stays in memory longer than the exporter. */
export class Ledger {
  readonly counts: Counts = noCounts();
  /** Durations of the last 500 requests in milliseconds, unsorted. */
  readonly durationsMs: number[] = [];
  #requests = 0;
  lastError: DeliveryError | undefined;

  addRequest(durationMs: number): void {
    this.durationsMs[this.#requests++ % DURATIONS_MAX] = durationMs;
  }

  /** Adds the data from the ledger of a garbage-collected exporter. */
  absorb(other: Ledger): void {
    addInto(this.counts, other.counts);
    for (const ms of other.durationsMs) this.addRequest(ms);
    this.lastError = latest([this, other]);
  }
}

export function totalStats(ledgers: readonly Ledger[] = [], backlogs: readonly Backlog[] = []): Stats {
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

const DURATIONS_MAX = 500;

function latencyOf(ledgers: readonly Ledger[]): Latency | undefined {
  const sorted = ledgers.flatMap(({ durationsMs }) => durationsMs).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const nearestRank = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] as number;
  return { p50Ms: nearestRank(0.5), p99Ms: nearestRank(0.99) };
}

function noCounts(): Counts {
  return {
    ...{ created: 0, recovered: 0, open: 0, queued: 0, inFlight: 0, spooled: 0, sent: 0, dropped: 0 },
    droppedByReason: { queue_full: 0, too_large: 0, rejected: 0, repeated: 0, expired: 0, corrupt: 0, closed: 0 },
    sampledOut: 0,
    held: 0,
    requests: { multipart: 0, simple: 0, otlp: 0 },
  };
}

function addInto(total: object, part: object): void {
  for (const [key, value] of Object.entries(part)) {
    const sums = total as Record<string, number | object>;
    if (typeof value === 'object') addInto(sums[key] as object, value);
    else sums[key] = (sums[key] as number) + value;
  }
}

/** Returns the latest error. Timestamps in ISO 8601 can be compared as strings. */
function latest(ledgers: readonly Ledger[]): DeliveryError | undefined {
  let found: DeliveryError | undefined;
  for (const { lastError } of ledgers) {
    if (lastError !== undefined && (found === undefined || lastError.at > found.at)) found = lastError;
  }
  return found && { ...found };
}

// ── Flushes ──

/**
 * Resolves a flush when all runs recorded before the flush are delivered or dropped. Undelivered run updates are
 * counted in groups, and each flush starts a new group. A flush resolves when the groups before the new one are empty.
 * There is at most one more group than pending flushes.
 */
export class FlushTracker {
  /** Groups from oldest to newest. New run updates are counted in the last group. */
  readonly #groups: FlushGroup[] = [{ flush: undefined, pending: 0, joined: undefined }];
  readonly waiting: Set<Flush> = new Set();

  get size(): number {
    return this.#groups.length;
  }

  /** Counts a run update, and returns its group. The caller passes the group to `leave` when the update is settled. */
  enter(): FlushGroup {
    return this.join(this.#groups[this.#groups.length - 1] as FlushGroup);
  }

  /** Counts another run update in a group. */
  join(group: FlushGroup): FlushGroup {
    const counting = countedIn(group);
    counting.pending++;
    return counting;
  }

  /** Whether no flush has begun since the group was entered. */
  isNewest(group: FlushGroup | undefined): boolean {
    return group !== undefined && countedIn(group) === this.#groups.at(-1);
  }

  enterOldest(deliveries: readonly { readonly group: FlushGroup | undefined }[]): FlushGroup {
    const groups = new Set(deliveries.map(({ group }) => group && countedIn(group)));
    const oldest = this.#groups.find((group) => groups.has(group)) as FlushGroup;
    oldest.pending++;
    return oldest;
  }

  leave(group: FlushGroup): void {
    if (--countedIn(group).pending === 0) this.#advance();
  }

  /** The flush of a closing exporter ignores refused probes. */
  begin(endMs: number, isClosing: boolean): Flush {
    const flush = new Flush(endMs, isClosing);
    this.waiting.add(flush);
    (this.#groups[this.#groups.length - 1] as FlushGroup).flush = flush;
    this.#groups.push({ flush: undefined, pending: 0, joined: undefined });
    this.#advance();
    return flush;
  }

  /** Removes a flush that has ended. The group that it started joins the group before it. */
  end(flush: Flush): void {
    this.waiting.delete(flush);
    const at = this.#groups.findIndex((group) => group.flush === flush);
    const [group, next] = this.#groups.slice(at, at + 2);
    if (at < 0 || group === undefined || next === undefined) return;
    group.flush = next.flush;
    group.pending += next.pending;
    next.joined = group;
    this.#groups.splice(at + 1, 1);
  }

  paused(untilMs: number): void {
    for (const flush of this.waiting) if (untilMs > flush.endMs) flush.resolve(false);
  }

  /** Ends flushes that see a probe refused twice for the same reason. */
  refused(reason: string | number): void {
    for (const flush of this.waiting) {
      if (flush.isClosing) continue;
      flush.reasons.push(reason);
      if (flush.isRefused) flush.resolve(false);
    }
  }

  #advance(): void {
    while (this.#groups.length > 1 && this.#groups[0]?.pending === 0) {
      this.#groups.shift()?.flush?.resolve(true);
    }
  }
}

/** Counts the undelivered run updates that were created between two flushes. */
export interface FlushGroup {
  /** The flush that waits for this group and those before it. The last group has none. */
  flush: Flush | undefined;
  pending: number;
  /** The group that counts the updates of this one, after the flush between them has ended. */
  joined: FlushGroup | undefined;
}

/** Returns the group that counts the updates of a group. Shortens the path to it for the next call. */
function countedIn(group: FlushGroup): FlushGroup {
  let at = group;
  while (at.joined !== undefined) {
    at.joined = at.joined.joined ?? at.joined;
    at = at.joined;
  }
  return at;
}

class Flush {
  readonly endMs: number;
  readonly isClosing: boolean;
  readonly done: Promise<boolean>;
  resolve: (isDone: boolean) => void = () => {};
  /** Reasons why the service refused probes during this flush. */
  readonly reasons: (string | number)[] = [];

  constructor(endMs: number, isClosing: boolean) {
    this.endMs = endMs;
    this.isClosing = isClosing;
    this.done = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** Whether two probes were refused for the same reason. */
  get isRefused(): boolean {
    return new Set(this.reasons).size < this.reasons.length;
  }
}

// ── Reports ──

/** Callback for each dropped run. */
export type OnDrop = (reason: DropReason, run: DroppedRun) => void;

const REPORT_EVERY_MS = 60_000;

const MEANINGS: Readonly<Record<DropReason, string>> = {
  queue_full: 'the queue was full; raise limits.queueRuns or limits.queueBytes',
  too_large: 'too large for the service even without payloads',
  rejected: 'rejected by the service',
  repeated: 'the service already had a run with this id; give each run an `id` of its own',
  expired: 'not delivered within limits.ageMs, or within limits.spoolAgeMs if kept on disk',
  corrupt: 'the record on disk could not be read',
  closed: 'the exporter was closed before delivery',
};

/** Reports each dropped run to `onDrop` and a diagnostics channel. Logs their number at most once a minute. */
export class DropNotice {
  readonly #onDrop: OnDrop | undefined;
  readonly #monotonicMs: () => number;
  readonly #endpoint: string;
  readonly #unreported = new Map<DropReason, { count: number; detail: string | undefined }>();
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #isScheduled = false;

  constructor(onDrop: OnDrop | undefined, monotonicMs: () => number, endpoint: string) {
    this.#onDrop = onDrop;
    this.#monotonicMs = monotonicMs;
    this.#endpoint = endpoint;
  }

  add(reason: DropReason, { id, traceId, name }: Pick<EncodedRun, 'id' | 'traceId' | 'name'>, detail?: string): void {
    this.#unreported.set(reason, { count: (this.#unreported.get(reason)?.count ?? 0) + 1, detail });
    const run: DroppedRun = { id, traceId, name, ...(detail !== undefined && { detail }) };
    const onDrop = this.#onDrop;
    if (onDrop !== undefined) ignoreRejection(guard('onDrop', () => untraced(onDrop, reason, run)));
    publish('runspan:run:dropped', () => ({ endpoint: this.#endpoint, reason, run }));
    if (this.#isScheduled || this.#monotonicMs() - this.#reportedAtMs < REPORT_EVERY_MS) return;
    // Logs in the next turn of the event loop, because several runs are often dropped at once.
    this.#isScheduled = true;
    setSoon(() => this.report());
  }

  report(): void {
    this.#isScheduled = false;
    if (this.#unreported.size === 0) return;
    for (const [reason, { count, detail }] of this.#unreported) {
      const runs = count === 1 ? 'run was' : 'runs were';
      const last = detail === undefined ? '' : ` (last: ${detail})`;
      diagnostics.warn(`${count} ${runs} dropped (${reason}): ${MEANINGS[reason]}${last}`);
    }
    this.#unreported.clear();
    this.#reportedAtMs = this.#monotonicMs();
  }
}

/** Logs that requests fail, at most once a minute, and that they are accepted again. */
export class FailureNotice {
  readonly #address: string;
  #isFailing = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(address: string) {
    this.#address = address;
  }

  /** `isKept` is whether the runs are kept on disk when the process ends. */
  failed(error: string, nowMs: number, isKept: boolean): void {
    if (this.#isFailing || nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return;
    this.#isFailing = true;
    this.#reportedAtMs = nowMs;
    const retried = `the runs are retried while the process runs${isKept ? ', and then kept on disk' : ''}`;
    diagnostics.warn(`delivery to ${this.#address} failed: ${error}; ${retried}`);
  }

  accepted(): void {
    if (!this.#isFailing) return;
    this.#isFailing = false;
    diagnostics.warn(`delivery to ${this.#address} works again`);
  }
}
