import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import { grouped } from '../../domain/grouped.ts';
import type { Scope } from '../../domain/query/query.ts';
import type { ChangeFeed, StoreChange } from '../store.ts';
import { type ChangedTrace, Subscribers } from '../subscribers.ts';
import type { StoreClock } from './clock.ts';
import { type ClickHouse, integer, type Sql, sql, strings } from './connection.ts';
import { dayOfMs } from './messages.ts';

/** Interval at which a receiver with listeners reads the changes of other receivers, in milliseconds. */
const POLL_MS = 1_000;
/** Allowance for slow inserts, in microseconds. */
const OVERLAP_US = 10_000_000;

/** SQL for the name and the id of a run's project, see `projectNames`, and for those of several runs. */
export const PROJECT_NAMES: Sql = sql('[toString(project), ifNull(session_id, toString(project))]');
export const PROJECTS: Sql = sql`groupUniqArrayArray(${PROJECT_NAMES})`;

interface ChangedRun {
  readonly tenant: string;
  readonly trace: string;
  readonly projects: readonly string[];
}

interface Change extends ChangedRun {
  readonly changed_us: number;
}

/**
 * Reports this receiver's own changes immediately, and other receivers' changes within about a second. A new listener
 * may also receive changes from the last few seconds.
 *
 * Receivers find the changes of others by the rows of the table `runs`. A change without such a row inserts a deleted row
 * that only names the trace, for example if the trace has no runs left.
 */
export class ClickHouseChanges implements ChangeFeed {
  readonly #db: ClickHouse;
  readonly #clock: StoreClock;
  readonly #subscribers = new Subscribers();
  /** Time of each change that was reported, by key (see `groupKeyText`). */
  readonly #reported = new Map<string, number>();
  #polledUs = 0;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #hasFailed = false;

  constructor(db: ClickHouse, clock: StoreClock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Inserts a row for each project of the traces, and notifies listeners. Nobody sees traces without a project. */
  async add(tenant: string, traces: readonly ChangedTrace[]): Promise<void> {
    const changed = traces.flatMap(({ id: trace, projects }) =>
      projects.map((project) => ({ tenant, trace, projects: [project] })),
    );
    if (changed.length === 0) return;
    await this.report(changed, (derived_us) => {
      const fields = { day: dayOfMs(derived_us / 1_000), start_us: 0, version: 0, is_deleted: 1, derived_us };
      const rows = changed.map(({ trace, projects: [project = ''] }) => {
        return { ...fields, tenant, trace, project, id: randomUUID() };
      });
      return this.#db.insert('runs', rows);
    });
  }

  /** Calls a function that inserts rows of changed runs with their time, and then notifies listeners. */
  async report(changed: readonly ChangedRun[], insert: (changedUs: number) => Promise<void>): Promise<void> {
    const changed_us = this.#clock.nowUs();
    const changes = changed.map(({ tenant, trace, projects }) => ({ tenant, trace, projects, changed_us }));
    const byTenant = grouped(changes, ({ tenant }) => tenant);
    // Must come before the insert, because a poll may read the rows before the insert ends.
    for (const tenant of this.#subscribers.tenants) this.#remember(byTenant.get(tenant) ?? []);
    await insert(changed_us);
    for (const own of byTenant.values()) this.#report(own);
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    if (this.#subscribers.tenants.size === 0) {
      this.#polledUs = this.#clock.nowUs();
      this.#schedule();
    }
    const remove = this.#subscribers.add(scope, listener);
    return () => {
      remove();
      if (this.#subscribers.tenants.size === 0) this.#stop();
    };
  }

  async close(): Promise<void> {
    await this.#polling;
    this.#stop();
  }

  #stop(): void {
    clearTimer(this.#timer);
    this.#reported.clear();
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

  async #readOthers(): Promise<void> {
    const tenants = [...this.#subscribers.tenants];
    const nowUs = this.#clock.nowUs();
    const sinceUs = this.#polledUs - OVERLAP_US;
    const rows = await this.#db.rows<Change>(
      sql`SELECT tenant, name AS trace, derived_us AS changed_us, ${PROJECTS} AS projects FROM runs
        ARRAY JOIN arrayDistinct(if(version = 0, [runs.trace], [runs.trace, group_id])) AS name
        WHERE tenant IN (${strings(tenants)}) AND derived_us > ${integer(sinceUs)} AND (is_deleted = 0 OR version = 0)
        GROUP BY tenant, name, derived_us ORDER BY derived_us`,
    );
    this.#polledUs = nowUs;
    const later = rows.filter((row) => !this.#reported.has(keyOf(row)));
    this.#remember(later);
    for (const own of grouped(later, ({ tenant }) => tenant).values()) this.#report(own);
    for (const [key, changedUs] of this.#reported) if (changedUs < sinceUs) this.#reported.delete(key);
  }

  #remember(changes: readonly Change[]): void {
    for (const change of changes) this.#reported.set(keyOf(change), change.changed_us);
  }

  #report(changes: readonly Change[]): void {
    const [first] = changes;
    if (first === undefined) return;
    const traces = changes.map(({ trace: id, projects }) => ({ id, projects }));
    this.#subscribers.report({ tenant: first.tenant, traces });
  }
}

function keyOf({ tenant, trace, changed_us }: Change): string {
  return `${changed_us} ${trace} ${tenant}`;
}
