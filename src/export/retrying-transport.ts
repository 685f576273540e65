import { diagnostics } from '../base/diagnostics.ts';
import { backoffMs } from '../http/retry-policy.ts';
import { publish } from '../run/channels.ts';
import type { Item } from './delivery.ts';
import type { Pace } from './pace.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** How long a service that rejects the key, or is not where the address says, is left alone. */
export const MISCONFIGURED_PAUSE_MS = 300_000;

/** Between two lines about failures. */
const TELL_EVERY_MS = 60_000;

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
  #outageSinceMs: number | undefined;
  #toldAtMs = Number.NEGATIVE_INFINITY;

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
        const { kind } = settlement.outcome;
        // What fails because it was broken off says nothing about the service.
        if (signal.aborted && kind !== 'accepted' && kind !== 'dropped') continue;
        const isFinal = this.#takesNote(settlement.outcome);
        if (isFinal) yield settlement;
        else failed.push(...settlement.items);
      }
      if (signal.aborted || failed.length === 0) return;
      const [expired, kept] = this.#divided(failed);
      if (expired.length > 0) {
        yield { items: expired, outcome: { kind: 'dropped', reason: 'expired', detail: 'too old to be sent again' } };
      }
      if (kept.length === 0) return;
      pending = kept;
      await this.#backOff(attempt, signal);
    }
  }

  /** Learns from an outcome; true when it settles its items. */
  #takesNote(outcome: Outcome): boolean {
    this.#publish(outcome);
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

  #publish(outcome: Outcome): void {
    const { endpoint, monotonicMs } = this.#options;
    if (outcome.kind === 'accepted' && this.#outageSinceMs !== undefined) {
      const durationMs = monotonicMs() - this.#outageSinceMs;
      this.#outageSinceMs = undefined;
      publish('runspan:delivery:recovery', () => ({ endpoint, durationMs }));
    } else if ((outcome.kind === 'failed' || outcome.kind === 'misconfigured') && this.#outageSinceMs === undefined) {
      this.#outageSinceMs = monotonicMs();
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

  #divided(failed: readonly Item[]): [expired: Item[], kept: Item[]] {
    const divided: [Item[], Item[]] = [[], []];
    for (const item of failed) {
      const ageMs = this.#pace.activeMs - item.delivery.recordedAtMs;
      divided[ageMs > this.#options.ageMs ? 0 : 1].push(item);
    }
    return divided;
  }

  /** Waits for longer with each attempt, unless somebody waits for a flush. */
  async #backOff(attempt: number, signal: AbortSignal): Promise<void> {
    const { random, retryDelayMs, retryDelayMaxMs, delay } = this.#options;
    const ms = backoffMs(attempt, random(), retryDelayMs, retryDelayMaxMs);
    try {
      await delay(ms, AbortSignal.any([signal, this.#pace.patience]));
    } catch {
      signal.throwIfAborted();
    }
  }
}
