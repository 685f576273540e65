import { diagnostics } from '../base/diagnostics.ts';
import { dropAttachments, type Item } from './delivery.ts';
import type { Settlement, Transport } from './transport.ts';

/** Number of consecutive refused batches after which the endpoint, rather than the runs, is considered at fault. */
const REFUSED_BATCHES_MAX = 2;

/** The state of a batch while its bad runs are isolated. */
interface Batch {
  isPartlyAccepted: boolean;
  isCounted: boolean;
}

/**
 * Isolates bad runs so that the rest of their batch is delivered. A batch that is too large or refused is split in half
 * repeatedly until the bad run is alone. A run that is too large is sent again without its attachments, then with its
 * payloads replaced by a marker. A run that is refused is dropped. If no run of two consecutive batches is accepted,
 * the endpoint is assumed to refuse everything. The runs of the second batch are then kept, with the outcome
 * `misconfigured`.
 *
 * If the service already has a run that was read from disk, it may have only the start of the run. The end of the run
 * is then sent again, as a patch.
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

  /**
   * Sends all groups before isolating the refused ones, since one accepted group proves that the endpoint is not at
   * fault.
   */
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

  /**
   * Returns whether the endpoint is assumed to refuse every run. A batch counts as refused once one of its runs is
   * refused on its own, if no part of the batch has been accepted.
   */
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

/**
 * Shuffles the runs for each attempt, so that a batch with many bad runs is not mistaken for an entirely bad one every
 * time.
 */
function shuffled(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/**
 * Whether the service already has the start of a run that was read from disk. If so, only the end of the run must be
 * sent.
 */
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
