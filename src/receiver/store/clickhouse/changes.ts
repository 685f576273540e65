import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import { grouped } from '../../domain/grouped.ts';
import type { Scope } from '../../domain/query.ts';
import type { ChangeFeed, Changes, StoreChange } from '../store.ts';
import { Subscribers } from '../subscribers.ts';
import type { StoreClock } from './clock.ts';
import { type ClickHouse, integer, sql, string, strings } from './connection.ts';

/** Interval at which a receiver with listeners reads the changes of other receivers, in milliseconds. */
const POLL_MS = 1_000;
/** Allowance for slow inserts, in microseconds. */
const OVERLAP_US = 10_000_000;
/** Retention time of rows in the table `changes`, in microseconds. */
const KEPT_US = 3_600_000_000;
const NO_TRACE = '00000000-0000-0000-0000-000000000000';
const CURSOR = /^\d{1,16}$/;

interface ChangeRow {
  readonly tenant: string;
  readonly trace: string;
  readonly changed_us: number;
}

/**
 * Reports this receiver's own changes immediately, and other receivers' changes within about a second. A new listener
 * may also receive changes from the last few seconds. A cursor is the time of a change, in microseconds.
 */
export class ClickHouseChanges implements ChangeFeed {
  readonly #db: ClickHouse;
  readonly #clock: StoreClock;
  readonly #subscribers = new Subscribers();
  /** Time of each change that was reported, by key (see `keyOf`). */
  readonly #reported = new Map<string, number>();
  #polledUs = 0;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #hasFailed = false;

  constructor(db: ClickHouse, clock: StoreClock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Records that traces have changed and notifies listeners. `deleted` lists the traces that have no runs left. */
  async add(tenant: string, traceIds: readonly string[], deleted: readonly string[] = []): Promise<void> {
    const gone = new Set(deleted);
    const rows = [...new Set([...traceIds, ...deleted])].map((trace) => ({
      tenant,
      trace,
      is_deleted: +gone.has(trace),
    }));
    await this.report(rows, (changed_us) =>
      this.#db.insert(
        'changes',
        rows.map((row) => ({ ...row, changed_us })),
      ),
    );
  }

  /** Calls a function that adds changes to the table `changes`, with their time. Then notifies listeners. */
  async report(
    changed: readonly Pick<ChangeRow, 'tenant' | 'trace'>[],
    insert: (changedUs: number) => Promise<void>,
  ): Promise<void> {
    const changed_us = this.#clock.nowUs();
    const byTenant = grouped(changed, ({ tenant }) => tenant);
    const rows = new Map(
      [...byTenant].map(([tenant, own]) => [
        tenant,
        [...new Set(own.map(({ trace }) => trace))].map((trace): ChangeRow => ({ tenant, trace, changed_us })),
      ]),
    );
    // Must come before the insert, because a poll may read the rows before the insert ends.
    for (const tenant of this.#subscribers.tenants) this.#remember(rows.get(tenant) ?? []);
    await insert(changed_us);
    for (const own of rows.values()) this.#report(own);
  }

  /** Inserts a change of no tenant, which ClickHouse deletes after an hour. */
  async testWrite(): Promise<void> {
    await this.#db.insert('changes', [{ tenant: '', trace: NO_TRACE, changed_us: this.#clock.nowUs(), is_deleted: 1 }]);
  }

  subscribe({ tenant }: Scope, listener: (change: StoreChange) => void): () => void {
    if (this.#subscribers.tenants.size === 0) {
      this.#polledUs = this.#clock.nowUs();
      this.#schedule();
    }
    const remove = this.#subscribers.add(tenant, listener);
    return () => {
      remove();
      if (this.#subscribers.tenants.size === 0) this.#stop();
    };
  }

  async changes({ tenant }: Scope, after: string | undefined, limit: number): Promise<Changes> {
    const nowUs = this.#clock.nowUs();
    const afterUs = after === undefined || !CURSOR.test(after) ? Number.NaN : Number(after);
    if (!(afterUs >= nowUs - KEPT_US && afterUs <= nowUs + OVERLAP_US)) {
      return { cursor: `${await this.#latestUs(tenant, nowUs)}`, traceIds: after === undefined ? [] : undefined };
    }
    // All traces of one change share a cursor, so a page contains either all of them or none.
    const rows = await this.#db.rows<{ trace: string; us: number }>(
      sql(
        `SELECT trace, max(changed_us) AS us FROM changes WHERE tenant = ? AND changed_us > ? GROUP BY trace
          HAVING argMax(is_deleted, changed_us) = 0 ORDER BY us LIMIT ? WITH TIES`,
        string(tenant),
        integer(afterUs),
        integer(limit),
      ),
    );
    rows.sort((a, b) => a.us - b.us || (a.trace < b.trace ? -1 : 1));
    const lastUs = rows.at(-1)?.us ?? afterUs;
    // Advances the cursor even if nothing has changed, because old cursors expire.
    const cursorUs = rows.length < limit ? Math.max(lastUs, nowUs - OVERLAP_US) : lastUs;
    return { cursor: `${cursorUs}`, traceIds: rows.map(({ trace }) => trace) };
  }

  /** Stops reading the changes of other receivers. */
  async close(): Promise<void> {
    await this.#polling;
    this.#stop();
  }

  #stop(): void {
    clearTimer(this.#timer);
    this.#reported.clear();
  }

  async #latestUs(tenant: string, nowUs: number): Promise<number> {
    const sinceUs = nowUs - OVERLAP_US;
    const [row] = await this.#db.rows<{ us: number }>(
      sql(
        'SELECT max(changed_us) AS us FROM changes WHERE tenant = ? AND changed_us > ?',
        string(tenant),
        integer(sinceUs),
      ),
    );
    return Math.max(row?.us ?? 0, sinceUs);
  }

  #schedule(): void {
    clearTimer(this.#timer);
    this.#timer = setTimer(() => {
      this.#polling = this.#poll();
    }, POLL_MS);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    try {
      await this.#readOthers();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) {
        diagnostics.warn(`the store in ClickHouse could not read changes and retries: ${messageOf(error)}`);
      }
      this.#hasFailed = true;
    }
    if (this.#subscribers.tenants.size > 0) this.#schedule();
  }

  /** Reads the latest changes and reports the new ones. */
  async #readOthers(): Promise<void> {
    const tenants = [...this.#subscribers.tenants];
    const nowUs = this.#clock.nowUs();
    const sinceUs = this.#polledUs - OVERLAP_US;
    const rows = await this.#db.rows<ChangeRow>(
      sql(
        'SELECT tenant, trace, changed_us FROM changes WHERE tenant IN (?) AND changed_us > ? ORDER BY changed_us',
        strings(tenants),
        integer(sinceUs),
      ),
    );
    this.#polledUs = nowUs;
    const later = rows.filter((row) => !this.#reported.has(keyOf(row)));
    this.#remember(later);
    for (const tenant of tenants) this.#report(later.filter((row) => row.tenant === tenant));
    for (const [key, changedUs] of this.#reported) if (changedUs < sinceUs) this.#reported.delete(key);
  }

  #remember(rows: readonly ChangeRow[]): void {
    for (const row of rows) this.#reported.set(keyOf(row), row.changed_us);
  }

  /** Reports the changes of one tenant. The rows must be sorted by time. */
  #report(rows: readonly ChangeRow[]): void {
    const last = rows.at(-1);
    if (last === undefined) return;
    const traceIds = [...new Set(rows.map(({ trace }) => trace))];
    this.#subscribers.report({ tenant: last.tenant, cursor: `${last.changed_us}`, traceIds });
  }
}

function keyOf({ tenant, trace, changed_us }: ChangeRow): string {
  return `${changed_us} ${trace} ${tenant}`;
}
