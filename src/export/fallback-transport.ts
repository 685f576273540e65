import type { Item } from './delivery.ts';
import { probeDelayMs } from './pace.ts';
import { parentsFirst } from './simple-transport.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** The longest time without another attempt at multipart. */
const FALLBACK_MAX_MS = 600_000;

/** Runs sent by the second transport before the next check whether the first is due. */
const SLICE_RUNS = 10;

/**
 * Sends with the second transport what the first finds unsupported. The first is tried again after 1 s, 5 s, 30 s, … at most
 * 10 minutes, also in the middle of a batch. An address where both are unsupported is wrong.
 */
export class FallbackTransport implements Transport {
  readonly #first: Transport;
  readonly #second: Transport;
  readonly #monotonicMs: () => number;
  /** Times in a row that the first transport was unsupported. */
  #fallbacks = 0;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(first: Transport, second: Transport, monotonicMs: () => number) {
    this.#first = first;
    this.#second = second;
    this.#monotonicMs = monotonicMs;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    if (this.#isFallingBack) {
      yield* this.#sendSecond(items, signal);
      return;
    }
    for await (const settlement of this.#first.send(items, signal)) {
      const { kind } = settlement.outcome;
      if (kind === 'accepted') this.#fallbacks = 0;
      if (kind === 'unsupported') {
        this.#fallBack();
        yield* this.#sendSecond(settlement.items, signal);
      } else {
        yield settlement;
      }
    }
  }

  get #isFallingBack(): boolean {
    return this.#monotonicMs() < this.#untilMs;
  }

  #fallBack(): void {
    // Another request in flight found the same.
    if (this.#isFallingBack) return;
    this.#untilMs = this.#monotonicMs() + probeDelayMs(this.#fallbacks++, FALLBACK_MAX_MS);
  }

  async *#sendSecond(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    const left = parentsFirst(items);
    while (left.length > 0) {
      if (!this.#isFallingBack) {
        yield* this.send(left, signal);
        return;
      }
      let failure: Extract<Outcome, { kind: 'failed' | 'misconfigured' }> | undefined;
      let isAnySettled = false;
      for await (const settlement of this.#second.send(left.splice(0, SLICE_RUNS), signal)) {
        const outcome = this.#checked(settlement.outcome);
        if (outcome.kind === 'failed' || outcome.kind === 'misconfigured') failure = outcome;
        else isAnySettled = true;
        yield { items: settlement.items, outcome };
      }
      if (failure === undefined || isAnySettled) continue;
      // The rest would fail in the same way.
      const { kind, detail } = failure;
      if (left.length > 0) yield { items: left, outcome: { kind, detail } };
      return;
    }
  }

  #checked(outcome: Outcome): Outcome {
    if (outcome.kind !== 'unsupported') return outcome;
    this.#untilMs = Number.NEGATIVE_INFINITY;
    const detail = `${outcome.detail}: neither /runs/multipart nor /runs is there, check the endpoint`;
    return { kind: 'misconfigured', detail };
  }
}
