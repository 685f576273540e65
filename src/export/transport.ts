import type { Item } from './delivery.ts';
import type { Outcome } from './outcome.ts';

export type { Outcome } from './outcome.ts';

export interface Settlement {
  readonly items: readonly Item[];
  readonly outcome: Outcome;
}

/**
 * Sends records. Every item comes back in exactly one settlement, as soon as its outcome is known. When the signal is
 * aborted it throws the signal's reason, or leaves items out; it never throws otherwise.
 */
export interface Transport {
  send(items: readonly Item[], signal: AbortSignal): AsyncIterable<Settlement>;
}
