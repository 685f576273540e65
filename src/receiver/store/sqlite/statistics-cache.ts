import type { Scope, Statistics, StatisticsQuery, TimeRange } from '../../domain/query/query.ts';
import type { Parsed } from '../../filter/run-filter.ts';

/** How long an answer is kept after its runs were read, in milliseconds. The page waits as long, see `STATISTICS`. */
const KEPT_MS = 2_000;
/** Maximum number of answers. At the maximum, all are forgotten. */
const ANSWERS_MAX = 100;

/** Keeps answers in a process, which must be the only one that deletes runs of the store. */
export class StatisticsCache {
  readonly #keptMs: number;
  /** By scope and query. */
  readonly #answers = new Map<string, { readonly answer: Statistics; readonly atMs: number }>();
  /** Number of deletions, by tenant. */
  readonly #deletions = new Map<string, number>();

  constructor(keptMs: number = KEPT_MS) {
    this.#keptMs = keptMs;
  }

  /** Returns a kept answer, or else that of `read`. Reads once more if `clear` was called meanwhile. */
  async read(scope: Scope, query: Parsed<StatisticsQuery>, read: () => Promise<Statistics>): Promise<Statistics> {
    const { tenant, project } = scope;
    const key = JSON.stringify([tenant, project, query], keyPart);
    const kept = this.#answers.get(key);
    if (kept !== undefined && performance.now() - kept.atMs < this.#keptMs) return structuredClone(kept.answer);
    const [deletions, atMs] = [this.#deletions.get(tenant), performance.now()];
    const answer = await read();
    // The second answer is not kept, because runs may have been deleted during that read too.
    if (this.#deletions.get(tenant) !== deletions) return structuredClone(await read());
    if (this.#answers.size >= ANSWERS_MAX) this.#answers.clear();
    this.#answers.set(key, { answer, atMs });
    return structuredClone(answer);
  }

  /** Forgets all answers. Call this after a deletion, before it is answered. */
  clear(tenant: string): void {
    this.#deletions.set(tenant, (this.#deletions.get(tenant) ?? 0) + 1);
    this.#answers.clear();
  }
}

/** A range is that of its terms, whose times may be relative to now. JSON has no infinite numbers. */
function keyPart(name: string, value: unknown): unknown {
  if (name === 'range') return (value as TimeRange).text ?? value;
  return typeof value === 'number' ? `${value}` : value;
}
