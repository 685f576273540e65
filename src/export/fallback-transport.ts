import type { Item } from './delivery.ts';
import { probeDelayMs } from './pace.ts';
import { parentsFirst } from './simple-transport.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

/** Maximum time before multipart is tried again. */
const FALLBACK_MAX_MS = 600_000;

/** Number of runs to send through the second transport before checking again whether to retry the first. */
const SLICE_RUNS = 10;

/**
 * Falls back to the second transport if the service does not support the first. The first transport is retried after
 * 1 s, 5 s, 30 s and so on, up to every 10 minutes, even in the middle of a batch. If the service supports neither, the
 * outcome is `misconfigured`, because the endpoint must be wrong.
 */
export class FallbackTransport implements Transport {
  readonly #first: Transport;
  readonly #second: Transport;
  readonly #monotonicMs: () => number;
  /** Number of consecutive attempts for which the service did not support the first transport. */
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
    // A concurrent request has already started the fallback.
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
      // The remaining runs would fail in the same way.
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
