import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { setSoon } from '../base/timers.ts';
import { untraced } from '../run/context.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { type DroppedRun, type DropReason, publish } from '../run/stats.ts';
import { forgetReporter, type Reporter, reportAtExit } from './process-end.ts';

export type OnDrop = (reason: DropReason, run: DroppedRun) => void;

/** Minimum time between two log lines about drops. */
const REPORT_EVERY_MS = 60_000;

/** The meaning of each reason, with a remedy. */
const MEANINGS: Readonly<Record<DropReason, string>> = {
  queue_full: 'the queue was full; raise limits.queueRuns or limits.queueBytes',
  too_large: 'too large for the service even without payloads',
  rejected: 'refused by the service',
  expired: 'not delivered within limits.ageMs, or within limits.spoolAgeMs if kept on disk',
  corrupt: 'what was kept on disk could not be read any more',
  closed: 'the exporter was closed before delivery',
};

/** Reports dropped runs: each to `onDrop` and to a diagnostics channel, and their number in at most one log line a minute. */
export class DropNotice implements Reporter {
  readonly #onDrop: OnDrop | undefined;
  readonly #monotonicMs: () => number;
  readonly #endpoint: string;
  readonly #unreported = new Map<DropReason, { count: number; detail: string | undefined }>();
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #isScheduled = false;

  constructor(onDrop: OnDrop | undefined, monotonicMs: () => number, endpoint = '') {
    this.#onDrop = onDrop;
    this.#monotonicMs = monotonicMs;
    this.#endpoint = endpoint;
  }

  add(reason: DropReason, { id, traceId, name }: Pick<EncodedRun, 'id' | 'traceId' | 'name'>, detail?: string): void {
    this.#unreported.set(reason, { count: (this.#unreported.get(reason)?.count ?? 0) + 1, detail });
    const run: DroppedRun = { id, traceId, name, ...(detail !== undefined && { detail }) };
    const onDrop = this.#onDrop;
    if (onDrop !== undefined) ignoreRejection(guard('onDrop', () => untraced(onDrop, reason, run)));
    publish('runspan:run:dropped', () => ({ endpoint: this.#endpoint, reason, run }));
    reportAtExit(this);
    if (this.#isScheduled || this.#monotonicMs() - this.#reportedAtMs < REPORT_EVERY_MS) return;
    // Drops usually occur in groups, which share one line.
    this.#isScheduled = true;
    setSoon(() => this.report());
  }

  /** Logs the drops since the last report. Also called when the exporter closes and when the process exits. */
  report(): void {
    this.#isScheduled = false;
    forgetReporter(this);
    if (this.#unreported.size === 0) return;
    for (const [reason, { count, detail }] of this.#unreported) {
      const runs = count === 1 ? 'run was' : 'runs were';
      const last = detail === undefined ? '' : ` (last: ${detail})`;
      diagnostics.warn(`${count} ${runs} dropped (${reason}): ${MEANINGS[reason]}${last}`);
    }
    this.#unreported.clear();
    this.#reportedAtMs = this.#monotonicMs();
  }
}
