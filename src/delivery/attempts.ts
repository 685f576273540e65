import { publish } from '../run/stats.ts';
import { Batch } from './batch.ts';
import { type Delivery, type Item, reportBug, strip } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { FailureNotice } from './ledger.ts';
import { decide, isRefusal } from './retry-policy.ts';
import type { Slab } from './slab/slab.ts';
import type { SlabWriter } from './slab/slab-writer.ts';
import { type DeliveryStates, UNKNOWN_RUN } from './states.ts';
import { FAILED, type Outcome, UNSENT } from './wire/outcome.ts';
import type { Sender } from './wire/sender.ts';

const NEVER = Number.POSITIVE_INFINITY;

type Failed = Extract<Outcome, { readonly kind: 'failed' }>;
type Known = Extract<Outcome, { readonly kind: 'known' }>;

/** Runs that were never sent. */
export interface NewRuns {
  /** Time at which a batch of new runs is sent. */
  readonly dueMs: number;
  /** The batch includes open runs that started by this time. */
  readonly startsUntilMs: number;
}

/**
 * Stores the batches in flight and those that are sent again. Chooses the runs of each request, and applies the
 * decision of `retry-policy.ts` after the response.
 */
export class Attempts {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  /** Called when the outcome of a request is applied to its runs, and when a slab was compressed. */
  readonly #changed: () => void;
  readonly #sender: Sender;
  readonly #slabs: SlabWriter | undefined;
  /** A `Set` would delay garbage collection of sent batches. */
  readonly inFlight: Batch[] = [];
  /** Batches that are sent again, and slabs that were never sent. */
  readonly retries: Batch[] = [];
  /** Age at which a failed run is dropped, in milliseconds. */
  readonly #ageMs: number;
  readonly #notice: FailureNotice;

  constructor(parts: ExporterParts, states: DeliveryStates, slabs: SlabWriter | undefined, changed: () => void) {
    const { spool, limits } = parts;
    this.#parts = parts;
    this.#states = states;
    this.#slabs = slabs;
    this.#changed = changed;
    this.#sender = parts.sender((bytes) => states.hold(bytes));
    this.#notice = new FailureNotice(parts.address);
    this.#ageMs = spool === undefined ? limits.ageMs : limits.spoolAgeMs;
  }

  /** Whether a request is in flight, or runs wait only for their turn. */
  get isSending(): boolean {
    const { endpoint } = this.#parts;
    if (this.inFlight.length > 0 || this.#states.queue.readyRuns > 0) return true;
    return this.retries.some((batch) => endpoint.isReady(batch));
  }

  /** The runs in delivery. Called when they can no longer be sent. */
  get unsettled(): Delivery[] {
    this.#slabs?.seal();
    const sent = [...this.retries, ...this.inFlight].flatMap(({ items }) => items.map(({ delivery }) => delivery));
    return [...this.#states.queue.all(), ...sent].filter(({ stage }) => stage !== 'settled');
  }

  /** Time at which the oldest waiting run was queued, or `nowMs`. */
  oldestAtMs(nowMs: number): number {
    const oldestMs = Math.min(nowMs, this.#states.queue.oldestAtMs, this.#slabs?.firstAtMs ?? NEVER);
    return [...this.retries, ...this.inFlight].reduce((atMs, batch) => Math.min(atMs, batch.oldestAtMs), oldestMs);
  }

  /** Time at which the next request may be sent. Infinity until a response arrives if too many requests are in flight. */
  get opensAtMs(): number {
    const { endpoint, limits } = this.#parts;
    if (this.inFlight.length >= (endpoint.isClosed ? 1 : limits.requestsInFlight)) return NEVER;
    return this.#states.opensAtMs;
  }

  /** Removes all runs that wait. The caller must pass each removed run to `keep` or `drop`. */
  clear(): void {
    for (const batch of this.retries.splice(0)) this.#releaseBody(batch);
    this.#states.queue.clear();
  }

  /** Whether a run has failed, and waits for evidence. */
  isWaiting(delivery: Delivery): boolean {
    return this.retries.some((batch) => !this.#parts.endpoint.isReady(batch) && batch.isWith(delivery));
  }

  /** Takes the start of a run out of delivery, because the complete run was read from disk. */
  replaced(delivery: Delivery): void {
    const batch = this.retries.find((one) => one.isWith(delivery));
    if (batch !== undefined) this.#takeOut(this.#take(batch), ({ items }, at) => items[at]?.delivery === delivery);
    this.#states.replaced(delivery);
  }

  /**
   * Returns the next batch, or the time at which a batch is due. New batches and batches with evidence come first,
   * oldest first. If there are none, one of the runs that wait after a failure is sent as a probe. While the endpoint is
   * closed, every request is a probe with one run, chosen at random among those that come first.
   */
  next(nowMs: number, { dueMs, startsUntilMs }: NewRuns): Batch | number {
    const { endpoint, info } = this.#parts;
    const { queue } = this.#states;
    const { isClosed } = endpoint;
    const { opensAtMs } = this;
    if (opensAtMs > nowMs) return this.#hasWork ? opensAtMs : NEVER;
    const isFlushing = this.#states.flushes.waiting.size > 0;
    const ready = this.retries.filter((batch) => endpoint.readyAtMs(batch, isFlushing) <= nowMs);
    // Without the other half, batches of runs at fault could take up all probes.
    const isProbeFromQueue = isClosed && queue.readyRuns > 0 && this.#anyIndex(2) === 0;
    const next = isProbeFromQueue ? undefined : isClosed ? ready[this.#anyIndex(ready.length)] : first(ready, isOlder);
    const isFromQueue = !isClosed && dueMs <= nowMs && next?.sentAt === 0 && queue.oldestAtMs < next.queuedAtMs;
    if (next !== undefined && !isFromQueue) return this.#begin(this.#take(next), isClosed);
    if (dueMs <= nowMs || (isClosed && queue.readyRuns > 0)) {
      // The other runs stay in the queue, where they can be written to disk.
      if (isClosed && queue.readyRuns > 0) queue.exchangeFirst(this.#anyIndex(queue.readyRuns));
      const size = isClosed ? { ...info.batch, runs: 1 } : info.batch;
      return this.#begin(new Batch(this.#states.take(size, startsUntilMs)), isClosed);
    }
    const waiting = first(this.retries, (one, other) => one.lastFailedAt < other.lastFailedAt);
    if (waiting === undefined) return dueMs;
    const readyAtMs = this.retries.reduce((at, batch) => Math.min(at, endpoint.readyAtMs(batch, isFlushing)), dueMs);
    if (!isClosed && this.inFlight.length + queue.runs > 0) return readyAtMs;
    const probeAtMs = endpoint.probeAtMs(isFlushing);
    return probeAtMs > nowMs ? Math.min(probeAtMs, readyAtMs) : this.#begin(this.#take(waiting), true);
  }

  get #hasWork(): boolean {
    const { queue } = this.#states;
    const hasRuns = queue.runs + this.retries.length > 0 || (this.#slabs?.firstAtMs ?? NEVER) < NEVER;
    return hasRuns || this.#parts.spool?.hasNext === true;
  }

  #take(batch: Batch): Batch {
    this.retries.splice(this.retries.indexOf(batch), 1);
    return batch;
  }

  #releaseBody(batch: Batch): void {
    this.#states.hold(-(batch.body?.waitingBytes ?? 0));
    batch.body = undefined;
  }

  /** Queues a slab, and compresses it if it cannot be sent soon. */
  add(slab: Slab): void {
    this.#sendAgain(new Batch(slab, undefined, this.#states.thaw), true);
    this.#compressWaiting();
  }

  /** While the endpoint is closed, the slabs that wait are compressed. */
  #compressWaiting(): void {
    const next = (): Slab | undefined => {
      if (!this.#parts.endpoint.isClosed) return undefined;
      return this.retries.find(({ slab }) => slab?.isTried === false)?.slab;
    };
    void this.#slabs?.compressWaiting(next, this.#changed);
  }

  /** Returns the batch, or one of its runs as a probe. The other runs are queued. */
  #begin(batch: Batch, isProbe: boolean): Batch {
    const index = isProbe && batch.runs > 1 ? this.#anyIndex(batch.runs) : undefined;
    const sent = index === undefined ? batch : this.#takeOut(batch, (_, at) => at === index);
    if (sent.slab !== undefined && sent.sentAt === 0) this.#states.sending(sent.slab);
    sent.isProbe = isProbe;
    sent.isNew = false;
    this.#parts.endpoint.sending(sent);
    this.inFlight.push(sent);
    return sent;
  }

  /** Returns a batch with the run for which `isIt` returns true. The other runs are queued. */
  #takeOut(batch: Batch, isIt: (batch: Batch, at: number) => boolean): Batch {
    this.#releaseBody(batch);
    const [one, others] = this.#divided(batch, (at) => isIt(batch, at));
    this.#sendAgain(others, batch.isNew);
    return one;
  }

  /** Returns a batch with the runs for whose index `isFirst` returns true, and one with the others. */
  #divided(batch: Batch, isFirst: (at: number) => boolean): [Batch, Batch] {
    const { slab } = batch;
    const withRuns = (content: readonly Item[] | Slab): Batch => new Batch(content, batch);
    if (slab !== undefined) {
      const [one, others] = this.#states.split(slab, isFirst);
      return [withRuns(one), withRuns(others)];
    }
    const { items } = batch;
    return [withRuns(items.filter((_, at) => isFirst(at))), withRuns(items.filter((_, at) => !isFirst(at)))];
  }

  /** Chooses at random. In a fixed order, a row of runs at fault could take up all probes. */
  #anyIndex(length: number): number {
    return Math.min(length - 1, Math.floor(this.#parts.random() * length));
  }

  /** Sends a batch, and applies the outcome. Never rejects. `aborted` is the outcome if the signal aborts. */
  async send(batch: Batch, signal: AbortSignal, aborted: Outcome = UNSENT): Promise<void> {
    let outcome: Outcome | Outcome[] = FAILED;
    try {
      void this.#parts.info.ask();
      outcome = await this.#sender.send(batch, signal);
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
    this.settle(batch, outcome === UNSENT ? aborted : outcome);
  }

  /** `outcome` is the outcome of all runs, or one outcome for each run if the runs were sent one by one. */
  settle(batch: Batch, outcome: Outcome | readonly Outcome[]): void {
    const at = this.inFlight.indexOf(batch);
    // On edge runtimes, the batch may have been taken back as lost.
    if (at < 0) return;
    this.inFlight.splice(at, 1);
    try {
      const [first] = [outcome].flat() as [Outcome];
      if (!Array.isArray(outcome) || outcome.length === 1) this.#settle(batch, first);
      else this.#settleSingly(batch, outcome);
      if (batch.slab !== undefined || !this.retries.includes(batch)) this.#releaseBody(batch);
      this.endPausedFlushes();
      this.#changed();
      this.#compressWaiting();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
  }

  /** Ends flushes that would end during a pause. Requests in flight may still be accepted, so it waits for them. */
  endPausedFlushes(): void {
    if (this.inFlight.length === 0) this.#states.flushes.paused(this.#parts.endpoint.pausedUntilMs);
  }

  /** Runs that were sent one by one: accepted runs first, because they are evidence about the others. */
  #settleSingly(batch: Batch, outcomes: readonly Outcome[]): void {
    const sent = [...outcomes.entries()].filter(([, outcome]) => outcome !== UNSENT);
    const isAccepted = ([, { kind }]: (typeof sent)[number]): number => Number(kind === 'accepted');
    for (const [at, outcome] of sent.sort((one, other) => isAccepted(other) - isAccepted(one))) {
      this.#settle(new Batch([batch.items[at] as Item], batch), outcome);
    }
    const unsent = batch.items.filter((_, at) => outcomes[at] === UNSENT);
    this.#sendAgain(new Batch(unsent, batch), true);
  }

  #settle(batch: Batch, outcome: Outcome): void {
    let rejected = 0;
    switch (outcome.kind) {
      case 'accepted':
        this.#noteAccepted(batch);
        if (batch.slab !== undefined) {
          this.#slabs?.accepted(batch.slab);
          break;
        }
        rejected = outcome.rejectedRuns ?? 0;
        for (const item of batch.items) {
          // OTLP does not say which runs it rejects, and forbids sending them again. An open run is sent when it ends.
          if (item.delivery.stage === 'finishing' && rejected-- > 0) {
            this.#states.drop(item.delivery, 'rejected', outcome.detail, UNKNOWN_RUN);
          } else this.#states.accepted(item);
        }
        break;
      case 'known':
        this.#settleKnown(batch, outcome);
        break;
      case 'failed':
        this.#settleFailed(batch, outcome);
        break;
      case 'dropped':
        for (const { delivery } of batch.items) this.#states.drop(delivery, outcome.reason, outcome.detail);
        break;
      case 'unsent':
        batch.stored = 'all';
        this.#sendAgain(batch, true);
        break;
      case 'unsupported':
        this.#sendAgain(batch, true);
    }
  }

  /** Settles a lone run to which the service has responded with 409, because it had a run with this id before. */
  #settleKnown(batch: Batch, known: Known): void {
    const [item] = batch.items as [Item];
    const { delivery, op, isEnded } = item;
    const isEcho = batch.isEcho(delivery, known);
    if (isEcho) this.#noteAccepted(batch);
    if (op === 'patch' && !isEcho) this.#states.drop(delivery, 'rejected', known.detail);
    else if (delivery.run.isIdGiven && !isEcho) this.#states.drop(delivery, 'repeated', known.detail);
    // No other run has an id that was generated. The service may know only the start of the run, or have another reason.
    else if (op === 'post' && isEnded && (!isEcho || batch.stored === 'some' || delivery.ticket !== undefined))
      this.#sendAgain(new Batch([Object.assign(item, { op: 'patch' })], batch), true);
    else this.#states.accepted(item);
  }

  #settleFailed(batch: Batch, { failure, status, detail, afterMs, isTooLarge }: Failed): void {
    const { endpoint, address, monotonicMs, spool } = this.#parts;
    const states = this.#states;
    const nowMs = monotonicMs();
    const { loneFailures, isClosed } = endpoint;
    if (isTooLarge === true && batch.runs === 1) {
      const [item] = batch.items as [Item];
      if (item.stripped !== 'payloads') {
        if (isClosed) endpoint.failed(batch, failure, 'closed', nowMs);
        strip(item);
        this.#releaseBody(batch);
        this.#sendAgain(batch, true);
        return;
      }
    }
    batch.detail = detail;
    if (failure === 'later') batch.stored = 'all';
    else if (status === 409 && batch.stored === 'nothing') batch.stored = 'some';
    const evidence = endpoint.evidenceFor(batch);
    // Strikes of another kind say nothing about this one.
    const strikes = batch.failure === failure ? batch.strikes : 0;
    const decision = decide({ failure, runs: batch.runs, evidence, strikes, loneFailures, isClosed });
    endpoint.failed(batch, failure, decision.endpoint, nowMs, afterMs);
    batch.strikes = decision.strikes;
    if (!isClosed && endpoint.isClosed) {
      publish('runspan:delivery:outage', () => ({ endpoint: address, error: detail }));
    }
    if (endpoint.isFailing || batch.isProbe) this.#notice.failed(detail, nowMs, spool !== undefined);
    const isStrike = failure === 'invalid' && decision.strikes > strikes;
    if (batch.isProbe && isRefusal(failure) && !isStrike) states.flushes.refused(status ?? detail);
    const rest = this.#dropExpired(batch, nowMs);
    if (decision.runs === 'drop') {
      for (const { delivery } of rest.items) states.drop(delivery, isTooLarge ? 'too_large' : 'rejected');
    } else if (decision.runs === 'halve' && rest.runs > 0) {
      const middle = Math.ceil(rest.runs / 2);
      for (const half of this.#divided(rest, (at) => at < middle)) this.#sendAgain(half, true);
    } else {
      this.#sendAgain(rest, false);
    }
  }

  #dropExpired(batch: Batch, nowMs: number): Batch {
    const oldestMs = this.#parts.endpoint.activeAt(nowMs) - this.#ageMs;
    const { slab } = batch;
    // The first run of a slab is the oldest.
    if (slab !== undefined && (slab.written.activeAtMs[0] as number) >= oldestMs) return batch;
    const { items } = batch;
    const rest = items.filter(({ delivery }) => {
      if (delivery.activeAtMs >= oldestMs) return true;
      this.#states.drop(delivery, 'expired');
      return false;
    });
    return rest.length === items.length ? batch : new Batch(rest, batch);
  }

  /** Queues a batch: as new, or to wait for evidence. */
  #sendAgain(batch: Batch, isNew: boolean): void {
    if (batch.runs === 0) return;
    batch.isNew = isNew;
    this.retries.push(batch);
  }

  #noteAccepted(batch: Batch): void {
    const { endpoint, address, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    const { isClosed, outageSinceMs } = endpoint;
    endpoint.accepted(batch, nowMs);
    if (isClosed && !endpoint.isClosed) {
      publish('runspan:delivery:recovery', () => ({ endpoint: address, durationMs: nowMs - outageSinceMs }));
    }
    if (!endpoint.isClosed) this.#notice.accepted();
  }
}

/** Of two halves of the same age, the smaller one is sent first, so that a run at fault is isolated soon. */
function isOlder(one: Batch, other: Batch): boolean {
  const [a, b] = [one.queuedAtMs, other.queuedAtMs];
  return a < b || (a === b && one.firstFailedAt > 0 && one.runs < other.runs);
}

function first(batches: readonly Batch[], precedes: (one: Batch, other: Batch) => boolean): Batch | undefined {
  let found: Batch | undefined;
  for (const batch of batches) if (found === undefined || precedes(batch, found)) found = batch;
  return found;
}
