import { setMaxListeners } from 'node:events';
import { diagnostics } from '../base/diagnostics.ts';
import type { Limits } from '../base/limits.ts';
import { messageOf } from '../base/text.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';
import { type Item, waitingSinceMs } from './delivery.ts';
import type { DeliveryQueue } from './queue.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Transport } from './transport.ts';

export interface DispatcherParts {
  readonly queue: DeliveryQueue;
  readonly transport: Transport;
  readonly info: ServiceInfo;
  readonly limits: Pick<Limits, 'lingerMs' | 'requestsInFlight'>;
  /** Called when a batch has been taken from the queue. */
  readonly taken: (items: readonly Item[]) => void;
  /** Called once for each item, when its outcome is known. */
  readonly settle: (item: Item, outcome: Outcome) => void;
  /** Called when a request has finished. */
  readonly finished: () => void;
}

/**
 * Decides when a batch leaves the queue: when it is full, when the first of it has lingered, or at once while somebody
 * waits for a flush; never more at a time than there may be requests in flight.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #abort = new AbortController();
  readonly #sends = new Map<Promise<void>, readonly Item[]>();
  #hurries = 0;
  /** How much of what waits has lingered for long enough, of either line of the queue. */
  #due = { starts: 0, ready: 0 };
  #isPumpScheduled = false;
  #lingerTimer: NodeJS.Timeout | undefined;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    // Each request in flight listens to it.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Called after every change of the queue: a batch is sent now, later, or when a request has finished. */
  schedule(): void {
    if (this.#sends.size >= this.#parts.limits.requestsInFlight) return;
    if (this.#isBatchDue) this.#pumpSoon();
    else if (this.#parts.queue.runs > 0) this.#linger();
  }

  /** From now on everything is sent at once, until as many calls of `calm` have come. */
  hurry(): void {
    this.#hurries++;
    outside(() => this.#pump());
  }

  calm(): void {
    this.#hurries--;
  }

  /** Breaks off what is under way, whose items settle as dropped, and sends nothing more. */
  async stop(): Promise<void> {
    clearTimer(this.#lingerTimer);
    this.#abort.abort(new Error('the exporter was closed'));
    await Promise.allSettled(this.#sends.keys());
  }

  /** When the first in line, or what has been under way for longest, was recorded; undefined when there is nothing. */
  get oldestAtMs(): number | undefined {
    const underWay = [...this.#sends.values()].flat().map(({ delivery }) => delivery);
    const times = [...this.#parts.queue.heads, ...underWay].flatMap((delivery) => waitingSinceMs(delivery) ?? []);
    return times.length === 0 ? undefined : times.reduce((oldest, ms) => Math.min(oldest, ms));
  }

  get #isBatchDue(): boolean {
    const { queue, info } = this.#parts;
    if (queue.readyRuns >= info.batch.runs || queue.bytes >= info.batch.bytes) return true;
    return queue.runs > 0 && (this.#hurries > 0 || this.#due.starts + this.#due.ready > 0);
  }

  /** The linger counts from the first run that waits; later ones do not put it off. */
  #linger(): void {
    this.#lingerTimer ??= setTimer(() => {
      const { queue } = this.#parts;
      this.#lingerTimer = undefined;
      this.#due = { starts: queue.runs - queue.readyRuns, ready: queue.readyRuns };
      this.#pump();
    }, this.#parts.limits.lingerMs).unref();
  }

  /** Batches are laid outside of the call path, one for each turn of the event loop. */
  #pumpSoon(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    setSoon(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { queue, info, limits } = this.#parts;
    const isFree = !this.#abort.signal.aborted && this.#sends.size < limits.requestsInFlight;
    if (!isFree || !this.#isBatchDue) return;
    void info.ask();
    const items = queue.take(info.batch, this.#startsMax);
    const ended = items.filter(({ isEnded }) => isEnded).length;
    this.#due.ready = Math.max(0, this.#due.ready - ended);
    this.#due.starts = queue.runs === queue.readyRuns ? 0 : this.#due.starts - (items.length - ended);
    this.#parts.taken(items);
    const send = this.#send(items).finally(() => {
      this.#sends.delete(send);
      this.#parts.finished();
    });
    this.#sends.set(send, items);
    this.schedule();
  }

  /** Runs that have only started are taken when they have lingered, or when everything has to go. */
  get #startsMax(): number {
    const isOverBytes = this.#parts.queue.bytes >= this.#parts.info.batch.bytes;
    return this.#hurries > 0 || isOverBytes ? Number.POSITIVE_INFINITY : this.#due.starts;
  }

  async #send(items: readonly Item[]): Promise<void> {
    const unsettled = new Set(items);
    let left: Outcome = { kind: 'dropped', reason: 'closed', detail: '' };
    try {
      for await (const settlement of this.#parts.transport.send(items, this.#abort.signal)) {
        for (const item of settlement.items) {
          unsettled.delete(item);
          this.#parts.settle(item, settlement.outcome);
        }
      }
    } catch (thrown) {
      if (!this.#abort.signal.aborted) {
        diagnostics.error(`a batch could not be sent: ${messageOf(thrown)}`);
        left = { kind: 'dropped', reason: 'rejected', detail: messageOf(thrown) };
      }
    }
    for (const item of unsettled) this.#parts.settle(item, left);
  }
}
