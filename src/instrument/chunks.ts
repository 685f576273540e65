import type { ChunkList } from '../payload/serialize.ts';
import type { Run } from '../run/run.ts';
import { chosen, type Plan } from './plan.ts';

/** Chunks kept of one result; later ones are counted only. */
const CHUNKS_MAX = 10_000;

/** Bytes of one binary chunk that a callback gets. */
const BINARY_BYTES_MAX = 65_536;

/**
 * The chunks of one result. A chunk is recorded as it is when it arrives, unless a callback (`aggregate`, `outputs`) gets the
 * values themselves. Text and bytes together are limited to those of one payload.
 */
export class Chunks {
  readonly #plan: Plan;
  readonly #run: Run;
  #values: unknown[] | undefined;
  /** Undefined if a callback gets the values, or if outputs are not recorded. */
  #list: ChunkList | undefined;
  #charactersLeft: number;
  #kept = 0;
  #dropped = 0;

  constructor(plan: Plan, run: Run) {
    this.#plan = plan;
    this.#run = run;
    this.#values = plan.aggregate === undefined && plan.outputs === undefined ? undefined : [];
    this.#list = this.#values === undefined ? run.chunkList() : undefined;
    this.#charactersLeft = run.sink?.capture.payload.bytes ?? 0;
  }

  /** How many have come, kept or not. */
  get count(): number {
    return this.#kept + this.#dropped;
  }

  push(chunk: unknown): void {
    if (this.#kept >= CHUNKS_MAX || this.#charactersLeft <= 0) {
      this.#dropped++;
      return;
    }
    this.#kept++;
    if (this.#values !== undefined) this.#keepValue(this.#values, chunk);
    else if (this.#list !== undefined) this.#charactersLeft -= this.#list.add(chunk);
  }

  /** Tells the run, which is still open. */
  record(): void {
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    const { aggregate, outputs } = this.#plan;
    if (this.#values === undefined) {
      if (this.#list !== undefined) this.#run.keepOutputs(`{"outputs":${this.#list.json()}}`);
      return;
    }
    const value = aggregate === undefined ? this.#values : chosen('aggregate', this.#plan, aggregate, this.#values);
    this.#run.keepResult(outputs === undefined ? value : chosen('outputs', this.#plan, outputs, value));
  }

  /** Lets go of them: the application may hold on to the result for long. */
  release(): void {
    this.#values = undefined;
    this.#list = undefined;
  }

  #keepValue(values: unknown[], chunk: unknown): void {
    if (typeof chunk === 'string') this.#charactersLeft -= chunk.length;
    if (!ArrayBuffer.isView(chunk)) {
      values.push(chunk);
      return;
    }
    // Readers of byte streams hand the same memory in again and again.
    const copy = new Uint8Array(chunk.buffer, chunk.byteOffset, Math.min(chunk.byteLength, BINARY_BYTES_MAX)).slice();
    values.push(copy);
    this.#charactersLeft -= copy.byteLength;
  }
}
