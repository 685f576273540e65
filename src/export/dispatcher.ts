import { setMaxListeners } from 'node:events';
import { diagnostics } from '../base/diagnostics.ts';
import type { Limits } from '../base/limits.ts';
import { messageOf } from '../base/text.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';
import { type Delivery, type Item, waitingSinceMs } from './delivery.ts';
import type { Pace } from './pace.ts';
import { Quarantine } from './quarantine.ts';
import type { DeliveryQueue } from './queue.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Transport } from './transport.ts';

export interface DispatcherParts {
  readonly queue: DeliveryQueue;
  readonly transport: Transport;
  readonly info: ServiceInfo;
  readonly pace: Pace;
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
  readonly #sends = new Set<Promise<void>>();
  readonly #quarantine: Quarantine;
  /** An array, as a Set that grows and shrinks with each batch makes the garbage collector keep what batches held. */
  readonly #batches: (readonly Item[])[] = [];
  #hurries = 0;
  /** How much of what waits has lingered for long enough, of either line of the queue. */
  #due = { starts: 0, ready: 0 };
  #isPumpScheduled = false;
  #lingerTimer: NodeJS.Timeout | undefined;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    // Each request in flight listens to it.
    setMaxListeners(0, this.#abort.signal);
    this.#quarantine = new Quarantine({
      send: (items) => this.#sendAlone(items),
      backOff: (failures) => this.#backOff(failures),
    });
  }

  /** Records whose outcome is not known yet. */
  get underWay(): Item[] {
    return [...this.#batches.flat(), ...this.#quarantine.items].filter(({ delivery }) => isUnderWay(delivery));
  }

  /** Whether there are such. */
  get isSending(): boolean {
    return this.#batches.length > 0 || this.#quarantine.isBusy;
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
    await Promise.allSettled(this.#sends);
    await this.#quarantine.emptied();
  }

  /** When the first in line, or what has been under way for longest, was recorded; undefined when there is nothing. */
  get oldestAtMs(): number | undefined {
    const underWay = this.underWay.map(({ delivery }) => delivery);
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
    const { queue, info, limits, pace } = this.#parts;
    const isFree = !this.#abort.signal.aborted && this.#sends.size < limits.requestsInFlight;
    if (!isFree || !this.#isBatchDue) return;
    if (pace.remainingMs === 0) void info.ask();
    const items = queue.take(info.batch, this.#startsMax);
    const ended = items.filter(({ delivery }) => delivery.stage === 'finishing').length;
    this.#due.ready = Math.max(0, this.#due.ready - ended);
    this.#due.starts = queue.runs === queue.readyRuns ? 0 : this.#due.starts - (items.length - ended);
    this.#parts.taken(items);
    const send = this.#deliver(items)
      .catch((thrown) => this.#abandon(items, thrown))
      .then(() => {
        this.#batches.splice(this.#batches.indexOf(items), 1);
        this.#sends.delete(send);
        this.#parts.finished();
      })
      .catch(report);
    this.#sends.add(send);
    this.schedule();
  }

  /** Runs that have only started are taken when they have lingered, or when everything has to go. */
  get #startsMax(): number {
    const isOverBytes = this.#parts.queue.bytes >= this.#parts.info.batch.bytes;
    return this.#hurries > 0 || isOverBytes ? Number.POSITIVE_INFINITY : this.#due.starts;
  }

  /** Sends a batch until it has settled, or goes on failing where that keeps nobody waiting. */
  async #deliver(items: readonly Item[]): Promise<void> {
    this.#batches.push(items);
    let failed = await this.#send(items);
    for (let failures = 1; failed.length > 0 && !this.#quarantine.admit(failed); failures++) {
      await this.#backOff(failures);
      failed = await this.#send(failed);
    }
  }

  /** Sends a batch and returns the items that failed. Never rejects. */
  async #sendAlone(items: readonly Item[]): Promise<readonly Item[]> {
    let failed: readonly Item[] = [];
    try {
      failed = await this.#send(items);
    } catch (thrown) {
      this.#abandon(items, thrown);
    }
    this.#parts.finished();
    return failed;
  }

  #abandon(items: readonly Item[], thrown: unknown): void {
    report(thrown);
    for (const item of items) this.#settle(item, { kind: 'dropped', reason: 'rejected', detail: messageOf(thrown) });
  }

  #settle(item: Item, outcome: Outcome): void {
    if (item.isSettled) return;
    item.isSettled = true;
    try {
      this.#parts.settle(item, outcome);
    } catch (thrown) {
      report(thrown);
    }
  }

  /** Sends a batch, settles what is settled of it, and answers with what has failed and may be sent again. */
  async #send(items: readonly Item[]): Promise<readonly Item[]> {
    const { signal } = this.#abort;
    const failed = new Set<Item>();
    try {
      for await (const settlement of signal.aborted ? [] : this.#parts.transport.send(items, signal)) {
        const isFinal = settlement.outcome.kind !== 'failed';
        for (const item of settlement.items) {
          if (isFinal) this.#settle(item, settlement.outcome);
          else failed.add(item);
        }
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
    }
    if (signal.aborted) failed.clear();
    for (const item of items) {
      if (!failed.has(item)) this.#settle(item, { kind: 'dropped', reason: 'closed', detail: '' });
    }
    return [...failed];
  }

  /** Does not wait when it has been stopped: what is sent then is given up. */
  async #backOff(failures: number): Promise<void> {
    await this.#parts.pace.backOff(failures, this.#abort.signal).catch(() => {});
  }
}

function report(thrown: unknown): void {
  diagnostics.error(`a batch could not be sent: ${messageOf(thrown)}`);
}

function isUnderWay({ stage }: Delivery): boolean {
  return stage === 'posting' || stage === 'held' || stage === 'finishing';
}
