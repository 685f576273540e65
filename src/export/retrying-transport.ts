import { diagnostics } from '../base/diagnostics.ts';
import { publish } from '../run/stats.ts';
import type { Item } from './delivery.ts';
import type { Outage } from './outage.ts';
import type { Pace } from './pace.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** Between two lines about failures. */
const TELL_EVERY_MS = 60_000;

/** So often records may fail together before somebody else has to find out which of them is the cause. */
const STRIKES_MAX = 3;

export interface RetryOptions {
  /** Age, pauses aside, at which a run that failed once more is given up. */
  readonly ageMs: number;
  /** For messages. */
  readonly endpoint: string;
  readonly outage: Outage;
  readonly monotonicMs: () => number;
}

/**
 * Sends again what failed, with growing pauses, until it is accepted, given up, or too old. What may itself be the cause is
 * sent three times, and then comes back as `failed`: it must not keep others waiting. Sent once more, it is tried once.
 */
export class RetryingTransport implements Transport {
  readonly #inner: Transport;
  readonly #pace: Pace;
  readonly #options: RetryOptions;
  readonly #strikes = new WeakMap<Item, number>();
  #isFailing = false;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(inner: Transport, pace: Pace, options: RetryOptions) {
    this.#inner = inner;
    this.#pace = pace;
    this.#options = options;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    let pending: readonly Item[] = items;
    for (let failures = 1; ; failures++) {
      if (this.#pace.remainingMs > 0) await this.#pace.waitOut(signal);
      const failed: Item[] = [];
      for await (const settlement of this.#inner.send(pending, signal)) {
        const { kind } = settlement.outcome;
        // What fails because it was broken off says nothing about the service.
        if (signal.aborted && kind !== 'accepted' && kind !== 'dropped') continue;
        const isFinal = this.#takesNote(settlement);
        if (isFinal) yield settlement;
        else failed.push(...settlement.items);
      }
      if (signal.aborted || failed.length === 0) return;
      const { expired, suspect, kept } = this.#divided(failed);
      if (expired.length > 0) {
        yield { items: expired, outcome: { kind: 'dropped', reason: 'expired', detail: 'too old to be sent again' } };
      }
      if (suspect.length > 0) yield { items: suspect, outcome: { kind: 'failed', detail: 'failed again and again' } };
      if (kept.length === 0) return;
      pending = kept;
      // If a pause is in effect, it replaces the backoff.
      if (this.#pace.remainingMs === 0) await this.#pace.backOff(failures, signal);
    }
  }

  /** Learns from an outcome; true when it settles its items. */
  #takesNote({ items, outcome }: Settlement): boolean {
    this.#watch(outcome);
    if (outcome.kind === 'failed') {
      if (outcome.afterMs !== undefined) this.#pace.defer(outcome.afterMs);
      if (outcome.isSuspect) for (const item of items) this.#strikes.set(item, this.#strikesOf(item) + 1);
      this.#tellFailure(`${outcome.detail}; the runs are kept and sent again`);
      return false;
    }
    if (outcome.kind === 'misconfigured') {
      this.#pace.refused(outcome.detail);
      this.#tellFailure(
        `${outcome.detail}; the runs are kept, and the next attempts are after 1 s, 5 s, 30 s, up to 5 minutes`,
      );
      return false;
    }
    if (outcome.kind === 'accepted') this.#pace.accepted();
    if (outcome.kind === 'accepted' && this.#isFailing) {
      this.#isFailing = false;
      diagnostics.warn(`delivery to ${this.#options.endpoint} works again`);
    }
    return true;
  }

  #watch(outcome: Outcome): void {
    const { endpoint, outage } = this.#options;
    if (outcome.kind === 'accepted' && outage.isOn) {
      const durationMs = outage.lastsMs;
      outage.succeeded();
      publish('runspan:delivery:recovery', () => ({ endpoint, durationMs }));
    } else if ((outcome.kind === 'failed' || outcome.kind === 'misconfigured') && !outage.isOn) {
      outage.failed();
      publish('runspan:delivery:outage', () => ({ endpoint, error: outcome.detail }));
    }
  }

  /** One line for each outage, however many requests fail in it, and one per minute at the most. */
  #tellFailure(detail: string): void {
    const nowMs = this.#options.monotonicMs();
    if (this.#isFailing || nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#isFailing = true;
    this.#toldAtMs = nowMs;
    diagnostics.warn(`delivery to ${this.#options.endpoint} failed: ${detail}`);
  }

  #divided(failed: readonly Item[]): Record<'expired' | 'suspect' | 'kept', Item[]> {
    const divided: Record<'expired' | 'suspect' | 'kept', Item[]> = { expired: [], suspect: [], kept: [] };
    for (const item of failed) {
      const ageMs = this.#pace.activeMs - item.delivery.recordedAtMs;
      if (ageMs > this.#options.ageMs) divided.expired.push(item);
      else divided[this.#strikesOf(item) >= STRIKES_MAX ? 'suspect' : 'kept'].push(item);
    }
    return divided;
  }

  #strikesOf(item: Item): number {
    return this.#strikes.get(item) ?? 0;
  }
}
