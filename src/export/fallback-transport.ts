import type { Item } from './delivery.ts';
import type { Settlement, Transport } from './transport.ts';

/** How long a service that does not speak multipart is sent single runs before it is asked again. */
const FALLBACK_MS = 600_000;

/**
 * Hands what the first transport finds unsupported to the second, and everything else too for the next ten minutes. What
 * both find unsupported is a wrong address.
 */
export class FallbackTransport implements Transport {
  readonly #first: Transport;
  readonly #second: Transport;
  readonly #monotonicMs: () => number;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(first: Transport, second: Transport, monotonicMs: () => number) {
    this.#first = first;
    this.#second = second;
    this.#monotonicMs = monotonicMs;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    if (this.#monotonicMs() < this.#untilMs) {
      yield* this.#sendSecond(items, signal);
      return;
    }
    for await (const settlement of this.#first.send(items, signal)) {
      if (settlement.outcome.kind === 'unsupported') {
        this.#untilMs = this.#monotonicMs() + FALLBACK_MS;
        yield* this.#sendSecond(settlement.items, signal);
      } else {
        yield settlement;
      }
    }
  }

  async *#sendSecond(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    for await (const settlement of this.#second.send(items, signal)) {
      if (settlement.outcome.kind === 'unsupported') {
        this.#untilMs = Number.NEGATIVE_INFINITY;
        const detail = `${settlement.outcome.detail}: neither /runs/multipart nor /runs is there, check the endpoint`;
        yield { items: settlement.items, outcome: { kind: 'misconfigured', detail } };
      } else {
        yield settlement;
      }
    }
  }
}
