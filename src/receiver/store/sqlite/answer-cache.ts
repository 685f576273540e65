import type { Scope } from '../../domain/query/query.ts';
import type { RunFilter } from '../../filter/run-filter.ts';

/** How long an answer is kept, in milliseconds. Its runs, prices and deletions by age are out of date for as long. */
const KEPT_MS = 2_000;
const ANSWERS_MAX = 100;

type Query = object & { readonly filter: RunFilter };

/** Keeps answers to queries of one process, which must be the only one that deletes runs. */
export class AnswerCache<Answer> {
  readonly #keptMs: number;
  readonly #nowMs: () => number;
  /** By scope and query, oldest first. */
  readonly #kept = new Map<string, { readonly answer: Answer; readonly atMs: number }>();
  readonly #reading = new Set<{ readonly tenant: string; isOutdated: boolean }>();

  constructor(keptMs: number = KEPT_MS, nowMs: () => number = () => performance.now()) {
    this.#keptMs = keptMs;
    this.#nowMs = nowMs;
  }

  /** Returns a kept answer, or else that of `read`. Reads again if `clear` was called meanwhile. */
  async answer({ tenant, project }: Scope, query: Query, read: () => Promise<Answer>): Promise<Answer> {
    this.#removeExpired();
    const key = JSON.stringify([tenant, project, query], keyPart);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return structuredClone(kept.answer);
    for (;;) {
      const reading = { tenant, isOutdated: false };
      this.#reading.add(reading);
      const answer = await read().finally(() => this.#reading.delete(reading));
      if (reading.isOutdated) continue;
      this.#kept.delete(key);
      this.#kept.set(key, { answer, atMs: this.#nowMs() });
      this.#removeExpired();
      return structuredClone(answer);
    }
  }

  /** Forgets all answers. Call this after a deletion, before it is answered. Queries of other tenants are not read again. */
  clear(tenant: string): void {
    for (const reading of this.#reading) reading.isOutdated ||= reading.tenant === tenant;
    this.#kept.clear();
  }

  #removeExpired(): void {
    for (const [key, { atMs }] of this.#kept) {
      if (this.#kept.size <= ANSWERS_MAX && this.#nowMs() - atMs < this.#keptMs) return;
      this.#kept.delete(key);
    }
  }
}

/** A range is that of its terms, whose times may be relative to now. JSON has no infinite numbers. */
function keyPart(name: string, value: unknown): unknown {
  if (name === 'range') return (value as RunFilter['range']).text ?? value;
  return typeof value === 'number' ? `${value}` : value;
}
