import type { Item } from './delivery.ts';
import type { DropReason } from './ledger.ts';

/** What became of records that were sent. */
export type Outcome =
  /** The service has the runs. `isRepetition` is set for a single run that the service already had. */
  | { readonly kind: 'accepted'; readonly isRepetition?: true }
  /** They are given up. */
  | { readonly kind: 'dropped'; readonly reason: DropReason; readonly detail: string }
  /**
   * The same may succeed later; `afterMs` when the service said how much later. `isSuspect` when the records themselves may
   * be the cause: the service had them before it failed.
   */
  | {
      readonly kind: 'failed';
      readonly detail: string;
      readonly afterMs?: number | undefined;
      readonly isSuspect?: boolean;
    }
  /** The service refuses every request until its state or the configuration changes. The runs are kept. */
  | { readonly kind: 'misconfigured'; readonly detail: string }
  /** The service does not speak multipart ingestion. */
  | { readonly kind: 'unsupported'; readonly detail: string }
  /** The batch, or its only run, is too large. */
  | { readonly kind: 'too_large'; readonly detail: string }
  /** The service refuses the batch because one or more of its runs are malformed or already stored. */
  | { readonly kind: 'invalid'; readonly detail: string };

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
