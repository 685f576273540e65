import { randomBytes } from 'node:crypto';
import type { Counters } from './counters.ts';
import { idText, type SqliteConnection } from './database.ts';
import { deleteRun } from './stored-run.ts';

/** The limits of a store. */
export interface Retention {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
}

/** A trace that is being deleted. */
export interface EvictedTrace {
  readonly tenant: string;
  readonly traceId: string;
  readonly runs: number;
}

/** Maximum number of runs that one transaction deletes. */
const STEP_RUNS = 200;
/** Free pages that the file keeps, and the number of pages that it gives back at a time. */
const FREE_PAGES = 1_024;
const STEP_PAGES = 512;

/** Deletes the traces that were changed least recently, to stay within the limits. A large trace takes several steps. */
export class SqliteRetention {
  readonly #connection: SqliteConnection;
  readonly #counters: Counters;
  readonly #limits: Retention;
  readonly #pageBytes: number;
  /** Traces of which runs remain to be deleted. */
  #evicting: number[];

  constructor(connection: SqliteConnection, counters: Counters, limits: Retention) {
    this.#connection = connection;
    this.#counters = counters;
    this.#limits = limits;
    this.#pageBytes = connection.number('PRAGMA page_size');
    this.#evicting = connection.all<{ n: number }>('SELECT n FROM traces WHERE evicted = 1').map(({ n }) => n);
  }

  isDue(nowMs: number): boolean {
    if (this.#evicting.length > 0) return true;
    const oldest = this.#oldest();
    if (oldest === undefined) return false;
    return this.#usedBytes() > this.#limits.maxBytes || oldest.changed_ms < nowMs - this.#limits.maxAgeMs;
  }

  /** Deletes some runs in a transaction of the caller. Returns the traces whose deletion began. */
  step(nowMs: number): EvictedTrace[] {
    const evicted: EvictedTrace[] = [];
    for (let left = STEP_RUNS; left > 0 && this.isDue(nowMs); ) {
      if (this.#evicting.length === 0) evicted.push(...this.#evictOldest());
      left -= this.#deleteRuns(left);
    }
    return evicted;
  }

  /** Called after a rollback. */
  reload(): void {
    const rows = this.#connection.all<{ n: number }>('SELECT n FROM traces WHERE evicted = 1');
    this.#evicting = rows.map(({ n }) => n);
  }

  /** Whether the file has more free pages than it keeps. */
  get isLoose(): boolean {
    return this.#connection.number('PRAGMA freelist_count') > FREE_PAGES;
  }

  /** Gives some free pages back, outside of a transaction. */
  shrink(): void {
    this.#connection.exec(`PRAGMA incremental_vacuum(${STEP_PAGES})`);
  }

  /** Removes the oldest trace from lists. It gets a random id, so that later messages create a new trace. */
  #evictOldest(): EvictedTrace[] {
    const oldest = this.#oldest();
    if (oldest === undefined) return [];
    const { n, id, root, tenant } = oldest;
    this.#connection.run('UPDATE traces SET evicted = 1, id = ? WHERE n = ?', randomBytes(16), n);
    this.#connection.run('UPDATE runs SET is_root = 0 WHERE n = ?', root);
    this.#evicting.push(n);
    const runs = this.#connection.number('SELECT count(*) FROM runs WHERE trace = ?', n);
    return [{ tenant, traceId: idText(id), runs }];
  }

  /** Deletes up to `limit` runs of an evicted trace. Returns their number, and at least 1. */
  #deleteRuns(limit: number): number {
    const trace = this.#evicting[0];
    if (trace === undefined) return limit;
    const runs = this.#connection.all<{ n: number }>('SELECT n FROM runs WHERE trace = ? LIMIT ?', trace, limit);
    for (const { n } of runs) deleteRun(this.#connection, this.#counters, n);
    if (runs.length < limit) {
      this.#connection.run('DELETE FROM traces WHERE n = ?', trace);
      this.#evicting = this.#evicting.filter((n) => n !== trace);
    }
    return Math.max(1, runs.length);
  }

  #oldest(): { n: number; id: Uint8Array; root: number | null; changed_ms: number; tenant: string } | undefined {
    return this.#connection.one(OLDEST);
  }

  #usedBytes(): number {
    const pages = this.#connection.number('PRAGMA page_count') - this.#connection.number('PRAGMA freelist_count');
    return pages * this.#pageBytes;
  }
}

const OLDEST = `SELECT traces.n AS n, id, root, changed_ms, tenants.name AS tenant
  FROM traces INDEXED BY traces_by_seq JOIN tenants ON tenants.n = tenant WHERE evicted = 0 ORDER BY seq LIMIT 1`;
