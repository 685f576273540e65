import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { setSoon } from '../base/timers.ts';
import { untraced } from '../run/context.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { type DroppedRun, type DropReason, publish } from '../run/stats.ts';
import { forgetTeller, type Teller, tellAtExit } from './exit.ts';

export type OnDrop = (reason: DropReason, run: DroppedRun) => void;

/** Between two lines about drops. */
const TELL_EVERY_MS = 60_000;

/** What each reason means, and what helps. */
const MEANINGS: Readonly<Record<DropReason, string>> = {
  queue_full: 'the queue was full; raise limits.queueRuns or limits.queueBytes',
  too_large: 'too large for the service even without payloads',
  rejected: 'refused by the service',
  expired: 'not delivered within limits.ageMs, or within limits.spoolAgeMs if kept on disk',
  corrupt: 'what was kept on disk could not be read any more',
  closed: 'the exporter was closed before delivery',
};

/** Tells of given-up runs: each to `onDrop` and on a channel, and their number in a line per minute at the most. */
export class DropNotice implements Teller {
  readonly #onDrop: OnDrop | undefined;
  readonly #monotonicMs: () => number;
  readonly #endpoint: string;
  readonly #untold = new Map<DropReason, { count: number; detail: string | undefined }>();
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #isTelling = false;

  constructor(onDrop: OnDrop | undefined, monotonicMs: () => number, endpoint = '') {
    this.#onDrop = onDrop;
    this.#monotonicMs = monotonicMs;
    this.#endpoint = endpoint;
  }

  add(reason: DropReason, { id, traceId, name }: Pick<EncodedRun, 'id' | 'traceId' | 'name'>, detail?: string): void {
    this.#untold.set(reason, { count: (this.#untold.get(reason)?.count ?? 0) + 1, detail });
    const run: DroppedRun = { id, traceId, name, ...(detail !== undefined && { detail }) };
    const onDrop = this.#onDrop;
    if (onDrop !== undefined) ignoreRejection(guard('onDrop', () => untraced(onDrop, reason, run)));
    publish('runspan:run:dropped', () => ({ endpoint: this.#endpoint, reason, run }));
    tellAtExit(this);
    if (this.#isTelling || this.#monotonicMs() - this.#toldAtMs < TELL_EVERY_MS) return;
    // Many come at once as a rule: they make one line.
    this.#isTelling = true;
    setSoon(() => this.tell());
  }

  /** Tells what has not been told yet; called by itself now and then, and when the exporter closes. */
  tell(): void {
    this.#isTelling = false;
    forgetTeller(this);
    if (this.#untold.size === 0) return;
    for (const [reason, { count, detail }] of this.#untold) {
      const runs = count === 1 ? 'run was' : 'runs were';
      const last = detail === undefined ? '' : ` (last: ${detail})`;
      diagnostics.warn(`${count} ${runs} dropped (${reason}): ${MEANINGS[reason]}${last}`);
    }
    this.#untold.clear();
    this.#toldAtMs = this.#monotonicMs();
  }
}
