import type { Item } from './delivery.ts';
import type { RequestBody, Sender } from './sender.ts';
import type { Settlement, Transport } from './transport.ts';

/** Adapts the sender to the transports around it. */
export class SenderTransport implements Transport {
  readonly #sender: Sender;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    let left = items;
    while (left.length > 0) {
      const batch = {
        items: left,
        body: undefined as RequestBody | undefined,
        brokenUploads: 0,
        setBody(body: RequestBody | undefined): void {
          this.body = body;
        },
      };
      const outcomes = await this.#sender.send(batch, signal);
      if (signal.aborted) return;
      const unsent: Item[] = [];
      for (const [index, item] of left.entries()) {
        const outcome = outcomes[index];
        if (outcome === undefined || outcome.kind === 'unsent') unsent.push(item);
      }
      const isStopped = outcomes.some(({ kind }) => kind === 'failed' || kind === 'misconfigured');
      const detail = 'not attempted';
      const groups = new Map<object, Item[]>();
      for (const [index, item] of left.entries()) {
        const outcome = outcomes[index];
        if (outcome === undefined || outcome.kind === 'unsent') continue;
        groups.set(outcome, [...(groups.get(outcome) ?? []), item]);
      }
      for (const [outcome, group] of groups) yield { items: group, outcome: outcome as Settlement['outcome'] };
      if (isStopped && unsent.length > 0) {
        yield { items: unsent, outcome: { kind: 'failed', detail } };
        return;
      }
      left = unsent;
    }
  }
}
