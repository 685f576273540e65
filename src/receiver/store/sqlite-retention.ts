import type { SqliteConnection } from './sqlite-connection.ts';
import { idText } from './sqlite-id.ts';

/** How much a store on disk keeps. */
export interface Retention {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
}

export interface ForgottenTraces {
  readonly traceIds: string[];
  runs: number;
}

/** Runs that are taken out in one transaction, about: traces go whole. */
const STEP_RUNS = 200;
/** Free pages that are kept for what comes next, and those given back in one go. */
const FREE_PAGES = 1_024;
const STEP_PAGES = 512;

/** Forgets the traces that were changed longest ago, to stay within what is to be kept. */
export class SqliteRetention {
  readonly #connection: SqliteConnection;
  readonly #limits: Retention;
  readonly #pageBytes: number;

  constructor(connection: SqliteConnection, limits: Retention) {
    this.#connection = connection;
    this.#limits = limits;
    this.#pageBytes = connection.number('PRAGMA page_size');
  }

  /** Whether something is to be forgotten. */
  isDue(nowMs: number): boolean {
    if (this.#usedBytes() > this.#limits.maxBytes) return this.#oldest() !== undefined;
    const oldest = this.#oldest();
    return oldest !== undefined && oldest.changed_ms < nowMs - this.#limits.maxAgeMs;
  }

  /** Forgets some, in a transaction of the caller. */
  step(nowMs: number): ForgottenTraces {
    const forgotten: ForgottenTraces = { traceIds: [], runs: 0 };
    while (forgotten.runs < STEP_RUNS && this.isDue(nowMs)) {
      const oldest = this.#oldest();
      if (oldest === undefined) break;
      forgotten.traceIds.push(idText(oldest.id));
      forgotten.runs += this.#forget(oldest.id);
    }
    return forgotten;
  }

  /** Whether the file has pages that it should give back. */
  get isLoose(): boolean {
    return this.#connection.number('PRAGMA freelist_count') > FREE_PAGES;
  }

  /** Gives some back, outside of a transaction. */
  shrink(): void {
    this.#connection.exec(`PRAGMA incremental_vacuum(${STEP_PAGES})`);
  }

  #oldest(): { id: Uint8Array; changed_ms: number } | undefined {
    return this.#connection.one('SELECT id, changed_ms FROM traces ORDER BY seq LIMIT 1');
  }

  #usedBytes(): number {
    const pages = this.#connection.number('PRAGMA page_count') - this.#connection.number('PRAGMA freelist_count');
    return pages * this.#pageBytes;
  }

  #forget(traceId: Uint8Array): number {
    const runs = this.#connection.all<{ n: number; id: Uint8Array }>(
      'SELECT n, id FROM runs WHERE trace_id = ?',
      traceId,
    );
    for (const { n, id } of runs) {
      this.#connection.run('DELETE FROM payloads WHERE n >= ? AND n < ?', n * 4, n * 4 + 4);
      for (const sql of OF_A_RUN) this.#connection.run(sql, n);
      this.#connection.run('DELETE FROM tokens WHERE run_id = ?', id);
    }
    this.#connection.run('DELETE FROM traces WHERE id = ?', traceId);
    return runs.length;
  }
}

const OF_A_RUN: readonly string[] = [
  'DELETE FROM words WHERE rowid = ?',
  'DELETE FROM unindexed WHERE n = ?',
  'DELETE FROM attachments WHERE run = ?',
  'DELETE FROM feedback WHERE run = ?',
  'DELETE FROM details WHERE n = ?',
  'DELETE FROM runs WHERE n = ?',
];
