import { diagnostics } from '../base/diagnostics.ts';
import { dropAttachments, type Item } from './delivery.ts';
import type { Settlement, Transport } from './transport.ts';

/**
 * Makes a bad run cost only itself. A batch that is too large or that the service calls malformed is halved until the
 * run at fault stands alone: too large, it goes once more without its attachments, then with its payloads replaced by a
 * marker; malformed, it is dropped.
 *
 * What comes from the disk may be a repetition in part: of a run that the service says to have it may have the start alone,
 * from the process that wrote it. Such a batch is halved likewise, and the end goes once more, as a patch.
 */
export class IsolatingTransport implements Transport {
  readonly #inner: Transport;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    for await (const settlement of this.#inner.send(items, signal)) {
      const { kind } = settlement.outcome;
      if (kind === 'too_large' || kind === 'invalid') yield* this.#isolate(settlement, signal);
      else if (isPartlyKnown(settlement)) yield* this.#complete(settlement, signal);
      else yield settlement;
    }
  }

  async *#complete(settlement: Settlement, signal: AbortSignal): AsyncGenerator<Settlement> {
    const { items } = settlement;
    const [item] = items;
    if (items.length > 1) {
      yield* this.#halves(items, signal);
    } else if (item?.op === 'post' && item.isEnded) {
      item.op = 'patch';
      yield* this.send(items, signal);
    } else {
      yield settlement;
    }
  }

  async *#halves(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    const middle = Math.ceil(items.length / 2);
    yield* this.send(items.slice(0, middle), signal);
    yield* this.send(items.slice(middle), signal);
  }

  async *#isolate({ items, outcome }: Settlement, signal: AbortSignal): AsyncGenerator<Settlement> {
    const [item] = items;
    const detail = 'detail' in outcome ? outcome.detail : '';
    if (items.length > 1) {
      yield* this.#halves(items, signal);
    } else if (item !== undefined && outcome.kind === 'too_large' && item.stripped !== 'payloads') {
      strip(item);
      yield* this.send(items, signal);
    } else {
      const reason = outcome.kind === 'too_large' ? 'too_large' : 'rejected';
      yield { items, outcome: { kind: 'dropped', reason, detail } };
    }
  }
}

function isPartlyKnown({ items, outcome }: Settlement): boolean {
  const isRepetition = outcome.kind === 'accepted' && outcome.isRepetition === true;
  return isRepetition && items.some(({ delivery }) => delivery.ticket !== undefined);
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
