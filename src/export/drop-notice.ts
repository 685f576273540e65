import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import type { DropReason } from './ledger.ts';

/** A run that was given up, as `onDrop` is told of it. */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
}

export type OnDrop = (reason: DropReason, run: DroppedRun) => void;

/** Between two lines about drops. */
const TELL_EVERY_MS = 60_000;

/** What each reason means, and what helps. */
const MEANINGS: Readonly<Record<DropReason, string>> = {
  queue_full: 'the queue was full; raise limits.queueRuns or limits.queueBytes, or sample',
  too_large: 'too large for the service even without payloads',
  rejected: 'the service rejected them',
  expired: 'too old to be sent again; the service was away for longer than limits.ageMs',
  closed: 'the exporter was closed before they were delivered',
};

/** Tells of given-up runs: each to `onDrop`, and their number in a line per minute at the most. */
export class DropNotice {
  readonly #onDrop: OnDrop | undefined;
  readonly #monotonicMs: () => number;
  readonly #untold = new Map<DropReason, number>();
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(onDrop: OnDrop | undefined, monotonicMs: () => number) {
    this.#onDrop = onDrop;
    this.#monotonicMs = monotonicMs;
  }

  add(reason: DropReason, { id, traceId, name }: EncodedRun): void {
    this.#untold.set(reason, (this.#untold.get(reason) ?? 0) + 1);
    const answer: unknown = guard('onDrop', () => this.#onDrop?.(reason, { id, traceId, name }));
    // The rejection of an asynchronous callback would otherwise end the process.
    if (answer instanceof Promise) answer.catch(() => {});
    if (this.#monotonicMs() - this.#toldAtMs >= TELL_EVERY_MS) this.tell();
  }

  /** Tells what has not been told yet; called by itself now and then, and when the exporter closes. */
  tell(): void {
    for (const [reason, count] of this.#untold) {
      diagnostics.warn(`${count} ${count === 1 ? 'run was' : 'runs were'} dropped (${reason}): ${MEANINGS[reason]}`);
    }
    this.#untold.clear();
    this.#toldAtMs = this.#monotonicMs();
  }
}
