import type { Run } from '../run/run.ts';
import { chosen, endWith, type Plan } from './plan.ts';

/** Chunks kept of one generator; later ones are counted only. */
const CHUNKS_MAX = 10_000;

/**
 * What a generator has yielded so far. Chunks are made into text as they come, so that later changes to them are not
 * seen; only a callback that wants the values themselves has them kept.
 */
export class Chunks {
  readonly #plan: Plan;
  readonly #run: Run;
  readonly #values: unknown[] | undefined;
  readonly #texts: string[] = [];
  #count = 0;

  constructor(plan: Plan, run: Run) {
    this.#plan = plan;
    this.#run = run;
    this.#values = plan.aggregate === undefined && plan.outputs === undefined ? undefined : [];
  }

  push(chunk: unknown): void {
    if (!this.#run.isOpen || ++this.#count > CHUNKS_MAX) return;
    if (this.#values !== undefined) this.#values.push(chunk);
    else this.#texts.push(this.#run.encode(chunk));
  }

  /** Ends the run with what came. */
  end(): void {
    const cut = this.#count - CHUNKS_MAX;
    if (cut > 0) this.#run.set({ metadata: { dropped_chunks: cut } });
    const { aggregate } = this.#plan;
    if (this.#values === undefined) this.#run.endEncoded(`{"outputs":[${this.#texts.join(',')}]}`);
    else if (aggregate === undefined) endWith(this.#run, this.#plan, this.#values);
    else endWith(this.#run, this.#plan, chosen('aggregate', this.#plan, aggregate, this.#values));
  }
}
