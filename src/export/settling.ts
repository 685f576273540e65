import { diagnostics } from '../base/diagnostics.ts';
import { publish } from '../run/stats.ts';
import { type Batch, halves, type Item, newBatch, shuffled, strip } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import type { Outcome } from './outcome.ts';
import type { DeliveryStates } from './states.ts';

/** Number of failures after which a batch is split, because one of its runs may be the cause. */
const SUSPICIONS_MAX = 3;

/** Number of consecutive refused batches after which the endpoint, rather than the runs, is considered at fault. */
const REFUSED_BATCHES_MAX = 2;

/** Interval between two log lines about failures. */
const REPORT_EVERY_MS = 60_000;

/**
 * Decides what becomes of a batch that was sent: which runs are delivered or dropped, and how the others are sent again. A
 * batch that is too large or refused is split in half until the bad run is alone, so that the other runs are delivered.
 */
export class Settling {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  /** Age in active time at which a run that has failed is dropped. */
  readonly #ageMs: number;
  /** Number of consecutive batches of which nothing was accepted. */
  #refusedBatches = 0;
  #isFailing = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ExporterParts, states: DeliveryStates) {
    const { spool, limits } = parts;
    this.#parts = parts;
    this.#states = states;
    // Runs that wait for long go to disk, where another age limit applies.
    this.#ageMs = spool === undefined ? limits.ageMs : limits.spoolAgeMs;
  }

  /** Outcomes are in the order of the items. A missing outcome counts as a failure. */
  settle(batch: Batch, outcomes: readonly Outcome[]): void {
    const { gate, monotonicMs } = this.#parts;
    const states = this.#states;
    const nowMs = monotonicMs();
    const groups = new Map<Outcome['kind'], { readonly outcome: Outcome; readonly items: Item[] }>();
    for (const [at, item] of batch.items.entries()) {
      const outcome = outcomes[at] ?? { kind: 'failed', detail: 'the batch could not be sent' };
      const group = groups.get(outcome.kind);
      if (group === undefined) groups.set(outcome.kind, { outcome, items: [item] });
      else group.items.push(item);
    }
    if (groups.has('accepted')) this.#noteAccepted(batch, nowMs);
    for (const { outcome, items } of groups.values()) {
      switch (outcome.kind) {
        case 'accepted':
          for (const item of items) this.#accept(item, outcome, batch, nowMs);
          break;
        case 'dropped':
          for (const { delivery } of items) states.drop(delivery, outcome.reason, outcome.detail || undefined);
          break;
        case 'failed':
          if (outcome.afterMs !== undefined) gate.defer(nowMs, outcome.afterMs);
          this.#noteFailure(outcome.detail, 'the runs are kept and sent again', nowMs, () => gate.failed(nowMs));
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
    if (!states.queue.retries.includes(batch)) states.releaseBody(batch);
    states.flushes.paused(gate.pausedUntilMs);
  }

  /**
   * Settles an accepted run. If the service already had a run that was read from disk, it may have only its start: the end
   * is sent again, as a patch.
   */
  #accept(item: Item, outcome: Outcome, batch: Batch, nowMs: number): void {
    const isRepetition = outcome.kind === 'accepted' && outcome.isRepetition === true;
    if (isRepetition && item.delivery.ticket !== undefined && item.op === 'post' && item.isEnded) {
      item.op = 'patch';
      this.#add([item], batch, nowMs);
    } else {
      this.#states.accepted(item);
    }
  }

  /** Puts runs back after a failure, unless they are too old. Splits a batch that may be the cause itself. */
  #retry(batch: Batch, items: readonly Item[], isSuspect: boolean, nowMs: number): void {
    const { gate } = this.#parts;
    const states = this.#states;
    const oldestMs = gate.activeAt(nowMs) - this.#ageMs;
    const kept: Item[] = [];
    for (const item of items) {
      if (item.delivery.activeAtMs >= oldestMs) kept.push(item);
      else states.drop(item.delivery, 'expired', 'too old to be sent again');
    }
    if (isSuspect) batch.suspicions++;
    if (isSuspect && batch.suspicions >= SUSPICIONS_MAX && kept.length > 1) {
      this.#split(kept, batch, nowMs);
      return;
    }
    const attempts = batch.attempts + 1;
    // A pause replaces the back-off.
    const delayMs = gate.pausedUntilMs > nowMs ? 0 : gate.backOffMs(attempts);
    this.#putBack(batch, kept, attempts, nowMs + delayMs);
  }

  #refuse(batch: Batch, items: readonly Item[], detail: string, nowMs: number): void {
    const { gate } = this.#parts;
    const { flushes } = this.#states;
    if (!gate.isProbeAhead(nowMs)) flushes.refused(detail);
    const what = 'the runs are kept, and the next attempts are after 1 s, 5 s, 30 s, up to 5 minutes';
    this.#noteFailure(detail, what, nowMs, () => gate.refused(nowMs, flushes.wantProbe));
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

  /** Splits a refused batch. A run that is refused alone is dropped, unless the endpoint seems to refuse every run. */
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
   * Returns whether the endpoint is assumed to refuse every run. A batch counts as refused once one of its runs is
   * refused on its own, if no part of the batch was accepted.
   */
  #isRefusedWhole(items: readonly Item[], { lineage }: Batch): boolean {
    if (lineage.isPartlyAccepted) return false;
    if (items.length === 1 && !lineage.isCounted) {
      lineage.isCounted = true;
      this.#refusedBatches++;
    }
    return lineage.isCounted && this.#refusedBatches >= REFUSED_BATCHES_MAX;
  }

  // ── Batches that are sent again ──

  #split(items: readonly Item[], batch: Batch, nowMs: number): void {
    for (const half of halves(items)) this.#add(half, batch, nowMs);
  }

  /** Adds a piece of a batch, to be sent at once. */
  #add(items: readonly Item[], batch: Batch, nowMs: number): void {
    this.#states.queue.addRetry(newBatch(items, nowMs, batch));
  }

  /** Puts back a batch, with its body if no run of it was settled. */
  #putBack(batch: Batch, items: readonly Item[], attempts: number, notBeforeMs: number): void {
    if (items.length === 0) return;
    const isWhole = items.length === batch.items.length;
    const again = isWhole ? batch : newBatch(items, notBeforeMs, batch);
    again.attempts = attempts;
    again.notBeforeMs = notBeforeMs;
    this.#states.queue.addRetry(again);
  }

  // ── What the outcomes say about the service ──

  #noteAccepted({ lineage }: Batch, nowMs: number): void {
    const { gate, endpoint } = this.#parts;
    lineage.isPartlyAccepted = true;
    this.#refusedBatches = 0;
    const durationMs = nowMs - gate.outageSinceMs;
    const wasOutage = gate.isOutage;
    gate.accepted(nowMs);
    if (wasOutage) publish('runspan:delivery:recovery', () => ({ endpoint, durationMs }));
    if (!this.#isFailing) return;
    this.#isFailing = false;
    diagnostics.warn(`delivery to ${endpoint} works again`);
  }

  /** Logs one line per outage, however many requests fail in it, and at most one per minute. */
  #noteFailure(error: string, consequence: string, nowMs: number, note: () => void): void {
    const { gate, endpoint } = this.#parts;
    const wasOutage = gate.isOutage;
    note();
    if (!wasOutage) publish('runspan:delivery:outage', () => ({ endpoint, error }));
    if (this.#isFailing || nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return;
    this.#isFailing = true;
    this.#reportedAtMs = nowMs;
    diagnostics.warn(`delivery to ${endpoint} failed: ${error}; ${consequence}`);
  }
}
