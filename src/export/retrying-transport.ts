import { diagnostics } from '../base/diagnostics.ts';
import { backoffMs } from '../http/retry-policy.ts';
import type { Item } from './delivery.ts';
import type { Pace } from './pace.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** How long a service that rejects the key, or is not where the address says, is left alone. */
export const MISCONFIGURED_PAUSE_MS = 300_000;

export interface RetryOptions {
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  /** Age, pauses aside, at which a run that failed once more is given up. */
  readonly ageMs: number;
  /** For messages. */
  readonly endpoint: string;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Sends again what failed, with growing pauses, until it is accepted, given up, or too old. */
export class RetryingTransport implements Transport {
  readonly #inner: Transport;
  readonly #pace: Pace;
  readonly #options: RetryOptions;
  #isFailing = false;

  constructor(inner: Transport, pace: Pace, options: RetryOptions) {
    this.#inner = inner;
    this.#pace = pace;
    this.#options = options;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    let pending: readonly Item[] = items;
    for (let attempt = 0; ; attempt++) {
      await this.#pace.waitOut(signal);
      const failed: Item[] = [];
      for await (const settlement of this.#inner.send(pending, signal)) {
        if (signal.aborted) return;
        const isFinal = this.#takesNote(settlement.outcome);
        if (isFinal) yield settlement;
        else failed.push(...settlement.items);
      }
      if (signal.aborted || failed.length === 0) return;
      const expired = failed.filter((item) => this.#isExpired(item));
      if (expired.length > 0) {
        yield { items: expired, outcome: { kind: 'dropped', reason: 'expired', detail: 'too old to be sent again' } };
      }
      pending = failed.filter((item) => !expired.includes(item));
      if (pending.length === 0) return;
      await this.#options.delay(this.#backoffMs(attempt), signal);
    }
  }

  /** Learns from an outcome; true when it settles its items. */
  #takesNote(outcome: Outcome): boolean {
    if (outcome.kind === 'failed') {
      if (outcome.afterMs !== undefined) this.#pace.pause(outcome.afterMs);
      this.#tellFailure(`${outcome.detail}; the runs are kept and sent again`);
      return false;
    }
    if (outcome.kind === 'misconfigured') {
      this.#pace.pause(MISCONFIGURED_PAUSE_MS);
      this.#tellFailure(`${outcome.detail}; the runs are kept, and the next attempt is in five minutes`);
      return false;
    }
    if (outcome.kind === 'accepted' && this.#isFailing) {
      this.#isFailing = false;
      diagnostics.warn(`delivery to ${this.#options.endpoint} works again`);
    }
    return true;
  }

  /** One line for each outage, however many requests fail in it. */
  #tellFailure(detail: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    diagnostics.warn(`delivery to ${this.#options.endpoint} failed: ${detail}`);
  }

  #isExpired({ delivery }: Item): boolean {
    return this.#options.monotonicMs() - delivery.recordedAtMs - this.#pace.pausedMs > this.#options.ageMs;
  }

  #backoffMs(attempt: number): number {
    const { random, retryDelayMs, retryDelayMaxMs } = this.#options;
    return backoffMs(attempt, random(), retryDelayMs, retryDelayMaxMs);
  }
}
