import { defaultLimits, type Limits } from '../../src/base/limits.ts';
import { delay } from '../../src/base/timers.ts';
import type { Batch, Item } from '../../src/export/delivery.ts';
import { DropNotice, type OnDrop } from '../../src/export/drop-notice.ts';
import { Exporter } from '../../src/export/exporter.ts';
import { Ledger, type Stats } from '../../src/export/ledger.ts';
import type { Outcome } from '../../src/export/outcome.ts';
import { SendGate } from '../../src/export/send-gate.ts';
import type { Sender } from '../../src/export/sender.ts';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { Spool } from '../../src/export/spool/spool.ts';
import { HttpClient } from '../../src/http/client.ts';
import { payloadRules } from '../../src/run/payload-rules.ts';

/** A batch that was handed to the sender and waits for its outcomes. */
export interface Sending {
  readonly items: readonly Item[];
  readonly signal: AbortSignal;
  readonly settle: (outcome: Outcome, items?: readonly Item[]) => void;
  readonly end: () => void;
}

/** A sender whose outcomes the test decides, batch by batch. */
export class HandSender {
  readonly sendings: Sending[] = [];
  #waiting: (() => void)[] = [];

  send(batch: Batch, signal: AbortSignal): Promise<readonly Outcome[]> {
    const { items } = batch;
    const outcomes = new Map<Item, Outcome>();
    const ended = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      this.sendings.push({
        items,
        signal,
        settle: (outcome, some = items) => {
          for (const item of some) outcomes.set(item, outcome);
        },
        end: resolve,
      });
    });
    for (const resolve of this.#waiting.splice(0)) resolve();
    return ended.then(() => items.map((item) => outcomes.get(item) ?? { kind: 'unsent', detail: '' }));
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

/** An exporter over a sender that the test decides for; nothing is sent before a flush, unless the limits say so. */
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
  const all = { ...defaultLimits, lingerMs: 1_000_000, startDelayMs: 0, ...limits };
  const time = { nowMs: 0 };
  const monotonicMs = (): number => time.nowMs;
  const gate = new SendGate({ ...all, random: () => 0 });
  const sender = new HandSender();
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
    sender: () => sender as unknown as Sender,
    info,
    gate,
    spool: disk.spool,
    isWriteAhead: disk.isWriteAhead ?? false,
    ledger: new Ledger(),
    notice: new DropNotice(onDrop, monotonicMs),
    endpoint: 'http://127.0.0.1:9',
    monotonicMs,
    random: () => 0,
    delay: async (ms, signal) => {
      const atMs = time.nowMs + ms;
      await delay(ms, signal);
      time.nowMs = Math.max(time.nowMs, atMs);
    },
    opened: () => {},
    closed: async () => {},
  });
  const outage = { failed: () => gate.failed(time.nowMs), succeeded: () => gate.accepted(time.nowMs) };
  return { exporter, sender, outage, pause: (ms: number) => gate.defer(time.nowMs, ms), time };
}

/** Whether a ledger adds up: every run is counted once. */
export function addsUp(stats: Stats): boolean {
  const places = stats.open + stats.queued + stats.inFlight + stats.spooled + stats.sent + stats.dropped;
  const reasons = Object.values(stats.droppedByReason).reduce((sum, count) => sum + count, 0);
  const isNegative = Object.values(stats).some((count) => typeof count === 'number' && count < 0);
  return !isNegative && stats.created + stats.recovered === places && stats.dropped === reasons;
}
