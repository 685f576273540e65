import { defaultLimits, type Limits } from '../../src/base/limits.ts';
import type { Item } from '../../src/export/delivery.ts';
import { DropNotice, type OnDrop } from '../../src/export/drop-notice.ts';
import { Exporter } from '../../src/export/exporter.ts';
import { Ledger, type Stats } from '../../src/export/ledger.ts';
import { Outage } from '../../src/export/outage.ts';
import { Pace } from '../../src/export/pace.ts';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { Spool } from '../../src/export/spool.ts';
import type { Outcome, Settlement, Transport } from '../../src/export/transport.ts';
import { HttpClient } from '../../src/http/client.ts';
import { payloadRules } from '../../src/payload/limits.ts';

/** One batch that has been handed to the transport and waits for its outcome. */
export interface Sending {
  readonly items: readonly Item[];
  readonly signal: AbortSignal;
  readonly settle: (outcome: Outcome, items?: readonly Item[]) => void;
  readonly end: () => void;
}

/** A transport whose outcomes the test decides, batch by batch. */
export class HandTransport implements Transport {
  readonly sendings: Sending[] = [];
  #waiting: (() => void)[] = [];

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    const outcomes: (Settlement | undefined)[] = [];
    let wake = (): void => {};
    const push = (settlement: Settlement | undefined): void => {
      outcomes.push(settlement);
      wake();
    };
    this.sendings.push({
      items,
      signal,
      settle: (outcome, some = items) => push({ items: some, outcome }),
      end: () => push(undefined),
    });
    for (const resolve of this.#waiting.splice(0)) resolve();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    for (;;) {
      while (outcomes.length === 0) {
        await Promise.race([
          aborted,
          new Promise<void>((resolve) => {
            wake = resolve;
          }),
        ]);
      }
      const settlement = outcomes.shift();
      if (settlement === undefined) return;
      yield settlement;
    }
  }

  /** The batch with the given number, as soon as it is there. */
  async sending(index: number): Promise<Sending> {
    while (this.sendings.length <= index) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.sendings[index] as Sending;
  }

  /** Settles the whole batch with one outcome, and waits until the exporter has taken note. */
  async finish(index: number, outcome: Outcome = { kind: 'accepted' }): Promise<readonly Item[]> {
    const sending = await this.sending(index);
    sending.settle(outcome);
    sending.end();
    await turns();
    return sending.items;
  }
}

/** Lets everything happen that is due now. */
export async function turns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** An exporter over a transport that the test decides for; nothing is sent before a flush, unless the limits say so. */
export function makeExporter(
  limits: Partial<Limits> = {},
  onDrop?: OnDrop,
  disk: { readonly spool?: Spool; readonly isWriteAhead?: boolean } = {},
) {
  const client = new HttpClient({
    endpoint: new URL('http://127.0.0.1:9'),
    headers: {},
    connectTimeoutMs: 1,
    requestTimeoutMs: 1,
  });
  const all = { ...defaultLimits, lingerMs: 1_000_000, ...limits };
  const time = { nowMs: 0 };
  const monotonicMs = (): number => time.nowMs;
  const pace = new Pace(monotonicMs);
  const outage = new Outage(monotonicMs);
  const transport = new HandTransport();
  const info = new ServiceInfo(client, { runs: all.batchRuns, bytes: all.batchBytes });
  // The service has nothing to say, and nobody is asked.
  info.ask = () => Promise.resolve();
  const { attachmentBytes, streamIdleMs } = all;
  const exporter = new Exporter({
    capture: {
      project: 'default',
      hideInputs: false,
      hideOutputs: false,
      payload: payloadRules(all, undefined),
      attachmentBytes,
      sampling: undefined,
      streamIdleMs,
    },
    limits: all,
    transport,
    info,
    pace,
    outage,
    spool: disk.spool,
    isWriteAhead: disk.isWriteAhead ?? false,
    ledger: new Ledger(),
    notice: new DropNotice(onDrop, monotonicMs),
    monotonicMs,
    opened: () => {},
    closed: async () => {},
  });
  return { exporter, transport, pace, outage, time };
}

/** Whether a ledger adds up: every run is counted once. */
export function addsUp(stats: Stats): boolean {
  const places = stats.open + stats.queued + stats.inFlight + stats.spooled + stats.sent + stats.dropped;
  const reasons = Object.values(stats.droppedByReason).reduce((sum, count) => sum + count, 0);
  const isNegative = Object.values(stats).some((count) => typeof count === 'number' && count < 0);
  return !isNegative && stats.created + stats.recovered === places && stats.dropped === reasons;
}
