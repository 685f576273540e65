import { diagnostics } from '../base/diagnostics.ts';
import { dropAttachments, type Item } from './delivery.ts';
import type { Settlement, Transport } from './transport.ts';

/**
 * Makes a bad run cost only itself. A batch that is too large or that the service calls malformed is halved until the
 * run at fault stands alone: too large, it goes once more without its attachments, then with its payloads replaced by a
 * marker; malformed, it is dropped.
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
      else yield settlement;
    }
  }

  async *#isolate({ items, outcome }: Settlement, signal: AbortSignal): AsyncGenerator<Settlement> {
    const [item] = items;
    const detail = 'detail' in outcome ? outcome.detail : '';
    if (items.length > 1) {
      const middle = Math.ceil(items.length / 2);
      yield* this.send(items.slice(0, middle), signal);
      yield* this.send(items.slice(middle), signal);
    } else if (item !== undefined && outcome.kind === 'too_large' && item.stripped !== 'payloads') {
      strip(item);
      yield* this.send(items, signal);
    } else {
      const reason = outcome.kind === 'too_large' ? 'too_large' : 'rejected';
      yield { items, outcome: { kind: 'dropped', reason, detail } };
    }
  }
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
