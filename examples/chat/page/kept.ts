/** What was kept for the next visit. A browser may keep nothing, and says so by throwing. */
export function kept(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Then it is for this visit alone.
  }
}

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
