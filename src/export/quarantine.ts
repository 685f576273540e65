import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { Item } from './delivery.ts';

/** Beyond it what fails keeps the place of its request, as it would without a quarantine. */
const RUNS_MAX = 1_000;

export interface QuarantineParts {
  /** Sends a batch once, settles what can be settled, and answers with what has failed. */
  readonly send: (items: readonly Item[]) => Promise<readonly Item[]>;
  /** Waits after so many failures in a row. */
  readonly backOff: (failures: number) => Promise<void>;
}

/**
 * Where batches go that fail again and again, so that those of others do not wait for them. They are sent one at a time,
 * beside the others; one that fails is halved, until the runs at fault stand alone and are tried from time to time, and
 * the rest has arrived. After two failures in a row it waits, for longer with each, since it may be the service.
 */
export class Quarantine {
  readonly #parts: QuarantineParts;
  /** A Set keeps their order, and lets go of the first at once. */
  readonly #batches = new Set<readonly Item[]>();
  #runs = 0;
  #work: Promise<void> | undefined;

  constructor(parts: QuarantineParts) {
    this.#parts = parts;
  }

  get items(): readonly Item[] {
    return [...this.#batches].flat();
  }

  get isBusy(): boolean {
    return this.#batches.size > 0;
  }

  /** Takes a batch, and sends it in time; false when there is no room. */
  admit(items: readonly Item[]): boolean {
    if (this.#runs + items.length > RUNS_MAX) return false;
    this.#runs += items.length;
    this.#batches.add(items);
    this.#work ??= this.#sendAll();
    return true;
  }

  /** Resolves when nothing is left in it. */
  async emptied(): Promise<void> {
    await this.#work;
  }

  async #sendAll(): Promise<void> {
    const { send, backOff } = this.#parts;
    let failuresInRow = 0;
    for (const batch of this.#batches) {
      if (failuresInRow > 1) await backOff(failuresInRow).catch(() => {});
      // If our own code throws, all items that have not settled are retried.
      let failed = batch;
      try {
        failed = await send(batch);
      } catch (thrown) {
        diagnostics.error(`a batch could not be sent: ${messageOf(thrown)}`);
      }
      failed = failed.filter(({ isSettled }) => !isSettled);
      this.#batches.delete(batch);
      this.#runs -= batch.length - failed.length;
      for (const half of halves(failed)) this.#batches.add(half);
      failuresInRow = failed.length === 0 ? 0 : failuresInRow + 1;
    }
    this.#work = undefined;
  }
}

function halves(items: readonly Item[]): (readonly Item[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)].filter(({ length }) => length > 0);
}
