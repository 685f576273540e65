import { diagnostics } from '../base/diagnostics.ts';
import { publish } from '../run/stats.ts';
import { Batch, halves, type Item, strip } from './delivery.ts';
import type { BatchSize } from './queue.ts';
import { decide } from './retry-policy.ts';
import type { DeliveryStates, ExporterParts } from './states.ts';
import type { Outcome } from './wire/outcome.ts';

const REPORT_EVERY_MS = 60_000;

const NEVER = Number.POSITIVE_INFINITY;

type Failed = Extract<Outcome, { readonly kind: 'failed' }>;

/** Runs that were never sent. */
export interface NewRuns {
  /** Time at which a batch of new runs is sent. */
  readonly dueMs: number;
  readonly take: (size: BatchSize) => Item[];
}

/** Chooses the runs of each request, and applies the decision of `retry-policy.ts` after the response. */
export class Attempts {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  /** Age at which a failed run is dropped, in milliseconds. */
  readonly #ageMs: number;
  #isFailing = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ExporterParts, states: DeliveryStates) {
    const { spool, limits } = parts;
    this.#parts = parts;
    this.#states = states;
    this.#ageMs = spool === undefined ? limits.ageMs : limits.spoolAgeMs;
  }

  /** Maximum number of requests in flight. */
  get slots(): number {
    return this.#parts.endpoint.isClosed ? 1 : this.#parts.limits.requestsInFlight;
  }

  /**
   * Returns the next batch, or the time at which a batch is due. New batches and batches with evidence come first,
   * oldest first. If there are none, one of the runs that wait after a failure is sent as a probe. While the endpoint is
   * closed, every request is a probe with one run.
   */
  next(nowMs: number, inFlight: number, newRuns: NewRuns): Batch | number {
    const { endpoint, info } = this.#parts;
    const { queue, opensAtMs } = this.#states;
    const { isClosed } = endpoint;
    if (inFlight >= this.slots) return NEVER;
    if (opensAtMs > nowMs) return this.#hasWork ? opensAtMs : NEVER;
    const ready = queue.retries.filter((batch) => endpoint.isReady(batch));
    const next = isClosed ? this.#anyOf(ready) : first(ready, isOlder);
    if (next !== undefined) return this.#sendRetry(next, isClosed);
    if (newRuns.dueMs <= nowMs || (isClosed && queue.readyRuns > 0)) {
      // The other runs stay in the queue, where they can be written to disk.
      if (isClosed) this.#states.chooseProbe(this.#anyIndex(queue.readyRuns));
      return this.#send(new Batch(newRuns.take(isClosed ? { ...info.batch, runs: 1 } : info.batch)), isClosed);
    }
    const waiting = first(queue.retries, (one, other) => one.lastFailedAt < other.lastFailedAt);
    if (waiting === undefined || (!isClosed && inFlight + queue.runs > 0)) return newRuns.dueMs;
    const probeAtMs = endpoint.probeAtMs(this.#states.flushes.waiting.size > 0);
    return probeAtMs > nowMs ? Math.min(probeAtMs, newRuns.dueMs) : this.#sendRetry(waiting, true);
  }

  /** Whether runs wait only for their turn. */
  get hasReady(): boolean {
    const { queue } = this.#states;
    return queue.readyRuns > 0 || queue.retries.some((batch) => this.#parts.endpoint.isReady(batch));
  }

  get #hasWork(): boolean {
    const { queue } = this.#states;
    return queue.runs + queue.retries.length > 0 || this.#parts.spool?.hasNext === true;
  }

  #sendRetry(batch: Batch, isProbe: boolean): Batch {
    this.#states.removeRetry(batch);
    return this.#send(batch, isProbe);
  }

  /** Returns the batch, or one of its runs as a probe. The other runs are queued. */
  #send(batch: Batch, isProbe: boolean): Batch {
    let sent = batch;
    if (isProbe && batch.items.length > 1) {
      const probe = this.#anyOf(batch.items) as Item;
      sent = new Batch([probe], batch);
      this.#states.releaseBody(batch);
      const others = batch.items.filter((item) => item !== probe);
      this.#sendAgain(new Batch(others, batch), batch.isNew);
    }
    sent.isProbe = isProbe;
    sent.isNew = false;
    this.#parts.endpoint.sending(sent);
    return sent;
  }

  /** Chooses at random. In a fixed order, a row of runs at fault could take up all probes. */
  #anyOf<Value>(values: readonly Value[]): Value | undefined {
    return values[this.#anyIndex(values.length)];
  }

  #anyIndex(length: number): number {
    return Math.min(length - 1, Math.floor(this.#parts.random() * length));
  }

  /** `outcome` is the outcome of all runs, or one outcome for each run if the runs were sent one by one. */
  settle(batch: Batch, outcome: Outcome | readonly Outcome[]): void {
    const { queue } = this.#states;
    const outcomes = [outcome].flat();
    if (outcomes.length < batch.items.length) this.#settle(batch, outcomes[0] as Outcome, false);
    else this.#settleSingly(batch, outcomes);
    if (!queue.retries.includes(batch)) this.#states.releaseBody(batch);
  }

  /** Runs that were sent one by one: accepted runs first, then each failed run on its own, then the unsent runs. */
  #settleSingly(batch: Batch, outcomes: readonly Outcome[]): void {
    const groups: [Outcome, Item[]][] = [];
    for (const [at, outcome] of outcomes.entries()) {
      const item = batch.items[at] as Item;
      const group = groups.find(([other]) => other === outcome);
      if (group !== undefined) group[1].push(item);
      else if (outcome.kind === 'accepted') groups.unshift([outcome, [item]]);
      else groups.push([outcome, [item]]);
    }
    const isPartlyAccepted = groups[0]?.[0].kind === 'accepted';
    for (const [outcome, items] of groups) {
      this.#settle(items.length === batch.items.length ? batch : new Batch(items, batch), outcome, isPartlyAccepted);
    }
  }

  #settle(batch: Batch, outcome: Outcome, isPartlyAccepted: boolean): void {
    switch (outcome.kind) {
      case 'accepted':
        this.#noteAccepted(batch);
        for (const item of batch.items) {
          if (outcome.isRepetition !== true || !isHalfKnown(item)) this.#states.accepted(item);
          else this.#sendAgain(new Batch([Object.assign(item, { op: 'patch' })], batch), true);
        }
        break;
      case 'failed':
        this.#settleFailed(batch, outcome, isPartlyAccepted);
        break;
      case 'dropped':
        for (const { delivery } of batch.items) this.#states.drop(delivery, outcome.reason, outcome.detail);
        break;
      case 'unsupported':
      case 'unsent':
        this.#sendAgain(batch, true);
    }
  }

  #settleFailed(batch: Batch, { failure, detail, afterMs, isTooLarge }: Failed, isPartlyAccepted: boolean): void {
    const { endpoint, address, monotonicMs } = this.#parts;
    const states = this.#states;
    const nowMs = monotonicMs();
    const { loneFailures, isClosed } = endpoint;
    const [item] = batch.items as [Item];
    if (isTooLarge === true && batch.items.length === 1 && item.stripped !== 'payloads') {
      if (isClosed) endpoint.failed(batch, failure, 'closed', nowMs);
      strip(item);
      states.releaseBody(batch);
      this.#sendAgain(batch, true);
      return;
    }
    const evidence = endpoint.evidenceFor(batch);
    const { strikes } = batch;
    const runs = batch.items.length;
    const decision = decide({ failure, runs, evidence, strikes, loneFailures, isClosed });
    const isCounted = decision.endpoint !== 'counted' || !isPartlyAccepted;
    endpoint.failed(batch, failure, isCounted ? decision.endpoint : 'unchanged', nowMs, afterMs);
    batch.strikes = decision.strikes;
    if (!isClosed && endpoint.isClosed) {
      publish('runspan:delivery:outage', () => ({ endpoint: address, error: detail }));
    }
    if (endpoint.isFailing) this.#noteFailure(detail, nowMs);
    if (batch.isProbe && failure === 'refused') states.flushes.refused(detail);
    const items = this.#dropExpired(batch.items, nowMs);
    if (decision.runs === 'drop') {
      for (const { delivery } of items) states.drop(delivery, isTooLarge ? 'too_large' : 'rejected', detail);
    } else if (decision.runs === 'halve') {
      for (const half of halves(items)) this.#sendAgain(new Batch(half, batch), true);
    } else {
      this.#sendAgain(items.length === runs ? batch : new Batch(items, batch), false);
    }
  }

  #dropExpired(items: readonly Item[], nowMs: number): readonly Item[] {
    const oldestMs = this.#parts.endpoint.activeAt(nowMs) - this.#ageMs;
    return items.filter(({ delivery }) => {
      if (delivery.activeAtMs >= oldestMs) return true;
      this.#states.drop(delivery, 'expired', 'too old to be retried');
      return false;
    });
  }

  /** Queues a batch: as new, or to wait for evidence. */
  #sendAgain(batch: Batch, isNew: boolean): void {
    if (batch.items.length === 0) return;
    batch.isNew = isNew;
    this.#states.addRetry(batch);
  }

  #noteAccepted(batch: Batch): void {
    const { endpoint, address, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    const { isClosed, outageSinceMs } = endpoint;
    endpoint.accepted(batch, nowMs);
    if (isClosed && !endpoint.isClosed) {
      publish('runspan:delivery:recovery', () => ({ endpoint: address, durationMs: nowMs - outageSinceMs }));
    }
    if (!this.#isFailing || endpoint.isClosed) return;
    this.#isFailing = false;
    diagnostics.warn(`delivery to ${address} works again`);
  }

  /** Logs the first failure since the last accepted request, at most once a minute. */
  #noteFailure(error: string, nowMs: number): void {
    if (this.#isFailing || nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return;
    this.#isFailing = true;
    this.#reportedAtMs = nowMs;
    diagnostics.warn(`delivery to ${this.#parts.address} failed: ${error}; the runs are kept and retried`);
  }
}

/**
 * Whether an item is a complete run that was read from disk. An earlier process may already have delivered the run's
 * start.
 */
function isHalfKnown({ delivery, op, isEnded }: Item): boolean {
  return delivery.ticket !== undefined && op === 'post' && isEnded;
}

/** Of two halves of the same age, the smaller one is sent first, so that a run at fault is isolated soon. */
function isOlder(one: Batch, other: Batch): boolean {
  const [a, b] = [one, other].map(({ items }) => (items[0] as Item).delivery.queuedAtMs) as [number, number];
  return a < b || (a === b && one.items.length < other.items.length);
}

function first(batches: readonly Batch[], precedes: (one: Batch, other: Batch) => boolean): Batch | undefined {
  let found: Batch | undefined;
  for (const batch of batches) if (found === undefined || precedes(batch, found)) found = batch;
  return found;
}
