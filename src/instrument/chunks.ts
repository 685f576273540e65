import type { Run } from '../run/run.ts';
import { chosen, type Plan } from './plan.ts';

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
  /** Characters that the texts may still take: together they make one payload. */
  #charactersLeft: number;
  #dropped = 0;

  constructor(plan: Plan, run: Run) {
    this.#plan = plan;
    this.#run = run;
    this.#values = plan.aggregate === undefined && plan.outputs === undefined ? undefined : [];
    this.#charactersLeft = run.sink?.capture.payload.bytes ?? 0;
  }

  push(chunk: unknown): void {
    if (!this.#run.isOpen) return;
    const kept = this.#values ?? this.#texts;
    if (kept.length >= CHUNKS_MAX || this.#charactersLeft <= 0) this.#dropped++;
    else if (this.#values !== undefined) this.#values.push(chunk);
    else this.#keep(this.#run.encode(chunk));
  }

  /** Ends the run with what came. */
  end(): void {
    this.#record();
    this.#run.end();
  }

  /** Ends the run with an error, and with what came before it. */
  fail(thrown: unknown): void {
    if (this.#texts.length > 0 || (this.#values?.length ?? 0) > 0) this.#record();
    this.#run.fail(thrown);
  }

  #record(): void {
    if (!this.#run.isOpen) return;
    if (this.#dropped > 0) this.#run.set({ metadata: { dropped_chunks: this.#dropped } });
    const { aggregate, outputs } = this.#plan;
    if (this.#values === undefined) {
      this.#run.keepOutputs(`{"outputs":[${this.#texts.join(',')}]}`);
      return;
    }
    const value = aggregate === undefined ? this.#values : chosen('aggregate', this.#plan, aggregate, this.#values);
    this.#run.set({ outputs: outputs === undefined ? value : chosen('outputs', this.#plan, outputs, value) });
  }

  #keep(text: string): void {
    this.#texts.push(text);
    this.#charactersLeft -= text.length;
  }
}
