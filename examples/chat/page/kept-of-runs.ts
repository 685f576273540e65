import { keep, kept } from './kept.ts';

/** What is kept of some runs, the last so many that it was kept of. Whether it has the form that is expected is not known. */
export class KeptOfRuns {
  readonly #key: string;
  readonly #runsMax: number;

  constructor(key: string, runsMax: number) {
    this.#key = key;
    this.#runsMax = runsMax;
  }

  get(runId: string): unknown {
    return this.#pairs().find(([id]) => id === runId)?.[1];
  }

  set(runId: string, value: unknown): void {
    const others = this.#pairs().filter(([id]) => id !== runId);
    keep(this.#key, JSON.stringify([...others, [runId, value]].slice(-this.#runsMax)));
  }

  #pairs(): [unknown, unknown][] {
    try {
      const read: unknown = JSON.parse(kept(this.#key) ?? '[]');
      return Array.isArray(read) ? read.filter((pair) => Array.isArray(pair) && pair.length === 2) : [];
    } catch {
      return [];
    }
  }
}
