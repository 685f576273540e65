import { diagnostics } from '../base/diagnostics.ts';
import { publish } from '../run/stats.ts';
import { Batch, halves, type Item, shuffled, strip } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import type { DeliveryStates } from './states.ts';
import type { Outcome } from './wire/outcome.ts';

/** A batch is split after this many failed attempts, because one of its runs may cause the failures. */
const SUSPECT_FAILURES_MAX = 3;

/** After this many refused batches in a row, the endpoint is assumed to refuse all runs. */
const REFUSED_BATCHES_MAX = 2;

const REPORT_EVERY_MS = 60_000;

/**
 * Handles the result of a request. Each run in the batch is delivered, dropped or queued again. A batch that is too
 * large or refused is halved until the bad run is alone, so that all other runs are delivered.
 */
export class Settling {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  /** Age at which a failed run is dropped, in milliseconds. Pauses do not count towards the age. */
  readonly #ageMs: number;
  /** Number of refused batches in a row. */
  #refusedBatches = 0;
  #isFailing = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ExporterParts, states: DeliveryStates) {
    const { spool, limits } = parts;
    this.#parts = parts;
    this.#states = states;
    this.#ageMs = spool === undefined ? limits.ageMs : limits.spoolAgeMs;
  }

  settle(batch: Batch, outcome: Outcome | Outcome[]): void {
    const states = this.#states;
    const nowMs = this.#parts.monotonicMs();
    if (!Array.isArray(outcome)) this.#settleItems(batch, batch.items, outcome, nowMs);
    else for (const [first, items] of byKind(batch.items, outcome)) this.#settleItems(batch, items, first, nowMs);
    if (!states.queue.retries.includes(batch)) states.releaseBody(batch);
  }

  #settleItems(batch: Batch, items: readonly Item[], outcome: Outcome, nowMs: number): void {
    switch (outcome.kind) {
      case 'accepted':
        this.#noteAccepted(batch, nowMs);
        for (const item of items) {
          if (outcome.isRepetition !== true || !this.#isHalfKnown(item)) this.#states.accepted(item);
          else this.#add([Object.assign(item, { op: 'patch' })], batch, nowMs);
        }
        break;
      case 'dropped':
        for (const { delivery } of items) this.#states.drop(delivery, outcome.reason, outcome.detail || undefined);
        break;
      case 'failed':
        if (outcome.afterMs !== undefined) this.#parts.gate.defer(nowMs, outcome.afterMs);
        this.#noteFailure(outcome.detail, 'the runs are kept and retried', nowMs);
        this.#parts.gate.failed(nowMs);
        this.#retry(batch, items, outcome.isSuspect === true, nowMs);
        break;
      case 'misconfigured':
        this.#refuse(batch, items, outcome.detail, nowMs);
        break;
      case 'too_large':
        this.#shrink(batch, items, outcome.detail, nowMs);
        break;
      case 'invalid':
        this.#isolate(batch, items, outcome.detail, nowMs);
        break;
      case 'unsent':
        this.#putBack(batch, items, batch.attempts, nowMs);
    }
  }

  /**
   * Whether an item is a complete run that was read from disk. An earlier process may already have delivered the run's
   * start.
   */
  #isHalfKnown({ delivery, op, isEnded }: Item): boolean {
    return delivery.ticket !== undefined && op === 'post' && isEnded;
  }

  #retry(batch: Batch, items: readonly Item[], isSuspect: boolean, nowMs: number): void {
    const { gate } = this.#parts;
    const states = this.#states;
    const oldestMs = gate.activeAt(nowMs) - this.#ageMs;
    const kept: Item[] = [];
    for (const item of items) {
      if (item.delivery.activeAtMs >= oldestMs) kept.push(item);
      else states.drop(item.delivery, 'expired', 'too old to be retried');
    }
    if (isSuspect) batch.suspectFailures++;
    if (isSuspect && batch.suspectFailures >= SUSPECT_FAILURES_MAX && kept.length > 1) {
      this.#split(kept, batch, nowMs);
      return;
    }
    const attempts = batch.attempts + 1;
    // No further delay is needed, because nothing is sent during a pause.
    const delayMs = gate.pausedUntilMs > nowMs ? 0 : gate.backOffMs(attempts);
    this.#putBack(batch, kept, attempts, nowMs + delayMs);
  }

  #refuse(batch: Batch, items: readonly Item[], detail: string, nowMs: number): void {
    const { gate } = this.#parts;
    const { flushes } = this.#states;
    if (!gate.isProbeAhead(nowMs)) flushes.refused(detail);
    const what = 'the runs are kept and retried after 1 s, 5 s, 30 s, up to 5 minutes';
    this.#noteFailure(detail, what, nowMs);
    gate.refused(nowMs, flushes.wantProbe);
    this.#retry(batch, items, false, nowMs);
  }

  #shrink(batch: Batch, items: readonly Item[], detail: string, nowMs: number): void {
    const [item] = items as [Item];
    if (items.length > 1) {
      this.#split(items, batch, nowMs);
    } else if (item.stripped === 'payloads') {
      this.#states.drop(item.delivery, 'too_large', detail);
    } else {
      strip(item);
      this.#add(items, batch, nowMs);
    }
  }

  #isolate(batch: Batch, items: readonly Item[], detail: string, nowMs: number): void {
    if (this.#isRefusedWhole(items, batch)) {
      this.#refuse(batch, items, `${detail}: the service refuses every run`, nowMs);
    } else if (items.length > 1) {
      this.#split(shuffled(items, this.#parts.random), batch, nowMs);
    } else {
      for (const { delivery } of items) this.#states.drop(delivery, 'rejected', detail);
    }
  }

  /**
   * Whether the endpoint refused two batches in a row, and therefore probably refuses every run. A batch counts as
   * refused if no run was accepted and one run was refused alone.
   */
  #isRefusedWhole(items: readonly Item[], { shared }: Batch): boolean {
    if (shared.isPartlyAccepted) return false;
    if (items.length === 1 && !shared.isCounted) {
      shared.isCounted = true;
      this.#refusedBatches++;
    }
    return shared.isCounted && this.#refusedBatches >= REFUSED_BATCHES_MAX;
  }

  // ── Batches that are sent again ──

  #split(items: readonly Item[], batch: Batch, nowMs: number): void {
    for (const half of halves(items)) this.#add(half, batch, nowMs);
  }

  /** Queues part of a batch for an immediate retry. */
  #add(items: readonly Item[], batch: Batch, nowMs: number): void {
    this.#states.queue.addRetry(new Batch(items, nowMs, batch));
  }

  /** Queues items for a retry. Reuses the request body if the batch still contains all its runs. */
  #putBack(batch: Batch, items: readonly Item[], attempts: number, notBeforeMs: number): void {
    if (items.length === 0) return;
    const isWhole = items.length === batch.items.length;
    const again = isWhole ? batch : new Batch(items, notBeforeMs, batch);
    again.attempts = attempts;
    again.notBeforeMs = notBeforeMs;
    this.#states.queue.addRetry(again);
  }

  // ── The state of the service ──

  #noteAccepted({ shared }: Batch, nowMs: number): void {
    const { gate, endpoint } = this.#parts;
    shared.isPartlyAccepted = true;
    this.#refusedBatches = 0;
    const durationMs = nowMs - gate.outageSinceMs;
    if (gate.isOutage) publish('runspan:delivery:recovery', () => ({ endpoint, durationMs }));
    gate.accepted(nowMs);
    if (!this.#isFailing) return;
    this.#isFailing = false;
    diagnostics.warn(`delivery to ${endpoint} works again`);
  }

  /** Logs the first failure of an outage, at most once a minute. */
  #noteFailure(error: string, consequence: string, nowMs: number): void {
    const { gate, endpoint } = this.#parts;
    if (!gate.isOutage) publish('runspan:delivery:outage', () => ({ endpoint, error }));
    if (this.#isFailing || nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return;
    this.#isFailing = true;
    this.#reportedAtMs = nowMs;
    diagnostics.warn(`delivery to ${endpoint} failed: ${error}; ${consequence}`);
  }
}

/** Groups items by kind of outcome. Accepted items come first. */
function byKind(items: readonly Item[], outcomes: readonly Outcome[]): [Outcome, Item[]][] {
  const groups: [Outcome, Item[]][] = [];
  for (const [at, outcome] of outcomes.entries()) {
    const item = items[at] as Item;
    const group = groups.find(([{ kind }]) => kind === outcome.kind);
    if (group !== undefined) group[1].push(item);
    else if (outcome.kind === 'accepted') groups.unshift([outcome, [item]]);
    else groups.push([outcome, [item]]);
  }
  return groups;
}
