import { diagnostics } from '../base/diagnostics.ts';
import { dropAttachments, type Item } from './delivery.ts';
import type { Settlement, Transport } from './transport.ts';

/** Refused batches in a row from which on the endpoint is at fault, not the runs. */
const REFUSED_BATCHES_MAX = 2;

/** A batch while it is isolated. */
interface Batch {
  isPartlyAccepted: boolean;
  isCounted: boolean;
}

/**
 * Makes a bad run cost only itself. A batch that is too large or refused is halved until the bad run is alone. A run that is
 * too large is sent once more without its attachments, then with its payloads replaced by a marker. A run that is refused is
 * dropped. If nothing of two batches in a row was accepted, the endpoint refuses everything: the runs of the second batch are
 * kept, with the outcome `misconfigured`.
 *
 * A run from the disk that the service already has may lack its end there. The end is sent once more, as a patch.
 */
export class IsolatingTransport implements Transport {
  readonly #inner: Transport;
  #refusedBatches = 0;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    return this.#send([items], { isPartlyAccepted: false, isCounted: false }, signal);
  }

  /** Sends all groups before it isolates the refused ones: an accepted group shows that the endpoint is not at fault. */
  async *#send(groups: readonly (readonly Item[])[], batch: Batch, signal: AbortSignal): AsyncGenerator<Settlement> {
    const refused: Settlement[] = [];
    for (const group of groups) {
      for await (const settlement of this.#inner.send(group, signal)) {
        const { kind } = settlement.outcome;
        if (kind === 'accepted') {
          batch.isPartlyAccepted = true;
          this.#refusedBatches = 0;
        }
        if (kind === 'too_large' || kind === 'invalid' || isPartlyKnown(settlement)) refused.push(settlement);
        else yield settlement;
      }
    }
    for (const settlement of refused) yield* this.#isolate(settlement, batch, signal);
  }

  async *#isolate({ items, outcome }: Settlement, batch: Batch, signal: AbortSignal): AsyncGenerator<Settlement> {
    const [item] = items;
    const detail = 'detail' in outcome ? outcome.detail : '';
    if (outcome.kind === 'invalid' && this.#isRefusedWhole(items, batch)) {
      yield { items, outcome: { kind: 'misconfigured', detail: `${detail}: the service refuses every run` } };
    } else if (items.length > 1) {
      yield* this.#send(halves(outcome.kind === 'invalid' ? shuffled(items) : items), batch, signal);
    } else if (item !== undefined && outcome.kind === 'accepted') {
      item.op = 'patch';
      yield* this.#send([items], batch, signal);
    } else if (item !== undefined && outcome.kind === 'too_large' && item.stripped !== 'payloads') {
      strip(item);
      yield* this.#send([items], batch, signal);
    } else {
      const reason = outcome.kind === 'too_large' ? 'too_large' : 'rejected';
      yield { items, outcome: { kind: 'dropped', reason, detail } };
    }
  }

  /** A batch counts once: when a run of it is refused alone, before any part of the batch is accepted. */
  #isRefusedWhole(items: readonly Item[], batch: Batch): boolean {
    if (batch.isPartlyAccepted) return false;
    if (items.length === 1 && !batch.isCounted) {
      batch.isCounted = true;
      this.#refusedBatches++;
    }
    return batch.isCounted && this.#refusedBatches >= REFUSED_BATCHES_MAX;
  }
}

function halves(items: readonly Item[]): (readonly Item[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** A new order for each attempt: a batch with many bad runs would otherwise look like one of bad runs only, each time. */
function shuffled(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** Whether the service has the start of a run from the disk, and the end is still to be sent. */
function isPartlyKnown({ items: [item], outcome }: Settlement): boolean {
  const isRepetition = outcome.kind === 'accepted' && outcome.isRepetition === true;
  return isRepetition && item?.delivery.ticket !== undefined && item.op === 'post' && item.isEnded;
}

function strip(item: Item): void {
  const isWithAttachments = item.stripped === 'nothing' && item.attachments.length > 0;
  item.stripped = isWithAttachments ? 'attachments' : 'payloads';
  if (isWithAttachments) dropAttachments(item.delivery.run, item.attachments);
  diagnostics.warnOnce(
    `stripped ${item.stripped}`,
    `a run is too large for the service: its ${item.stripped} are left out, as will be those of others like it`,
  );
}
