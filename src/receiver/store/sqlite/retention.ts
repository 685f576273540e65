import type { Ages, ProjectAges } from '../../domain/retention/ages.ts';
import { REMOVED_MS } from '../../domain/retention/deletion.ts';
import type { RetentionTime } from '../../domain/retention/retention-time.ts';
import type { ChangedTrace, Limit } from '../subscribers.ts';
import { evict, type HiddenTrace, purgeTrace } from './deletion.ts';
import type { SqliteConnection } from './file/database.ts';
import { HiddenKind } from './removed-names.ts';

export interface Retention extends Ages {
  readonly maxBytes: number;
}

interface OwnedTrace extends ChangedTrace {
  readonly tenant: string;
}

interface EvictedTrace extends OwnedTrace {
  readonly runs: number;
  readonly limit: Limit;
}

/** Number of runs to delete between checks of the time limit. */
const STEP_RUNS = 50;
/** Maximum number of traces whose deletion begins in one step, because they are older than the age of their project. */
const EXPIRED_TRACES_MAX = 100;
/** Number of free pages that the file keeps, and number of pages that one step releases. */
const FREE_PAGES = 1_024;
const STEP_PAGES = 512;

interface OldestTrace {
  readonly n: number;
  readonly changed_ms: number;
  readonly tenant: string;
}

type DueTrace = OldestTrace & { readonly limit: Limit };

interface AgingProject {
  readonly tenant: number;
  readonly name: string;
  readonly project: string;
}

const MAX_AGE: Limit = { option: 'maxAgeMs (--max-age or maxAge)', level: 'info' };
const PROJECT_MAX_AGE: Limit = { option: 'projectMaxAgeMs (maxAge of a project)', level: 'info' };
const MAX_BYTES: Limit = { option: 'maxBytes (--max-size or maxSize)', level: 'warn' };

/** Deletes the least recently changed traces to stay within the limits, a large trace in several steps. */
export class SqliteRetention {
  readonly #connection: SqliteConnection;
  readonly #limits: Retention;
  readonly #time: RetentionTime;
  readonly #stored: SqliteRetentionTime;
  readonly #projectAges = new Map<string, ReadonlyMap<string, number>>();
  readonly #pageBytes: number;
  /** Whether traces are older than the age of their project. */
  #expired = false;

  constructor(connection: SqliteConnection, limits: Retention, time: RetentionTime) {
    this.#connection = connection;
    this.#limits = limits;
    this.#time = time;
    this.#stored = new SqliteRetentionTime(connection);
    this.setProjectAges(limits.projectMaxAgeMs);
    this.#pageBytes = connection.number('PRAGMA page_size');
  }

  setProjectAges(ages: ProjectAges): void {
    this.#projectAges.clear();
    for (const [tenant, own] of Object.entries(ages)) {
      const entries = Object.entries(own);
      if (entries.length > 0) this.#projectAges.set(tenant, new Map(entries));
    }
  }

  get isDue(): boolean {
    return this.#expired || this.#hidden() !== undefined || this.#oldest() !== undefined;
  }

  /** Whether traces are due, other than those that are deleted by request. */
  get isUrgent(): boolean {
    const { kind = HiddenKind.EVICTED } = this.#hidden() ?? {};
    return kind !== HiddenKind.EVICTED ? this.#expired || this.#usedBytes() > this.#limits.maxBytes : this.isDue;
  }

  /**
   * Checks the clocks, and whether traces have expired in a project. Forgets old deletions. This takes too long to repeat
   * it after each write. Returns how far the retention time is behind the wall clock.
   */
  checkAge(wallMs: number): number {
    const timeMs = this.#time.check(wallMs, this.#stored.read());
    if (timeMs !== undefined) this.#stored.write(timeMs);
    this.#connection.run(FORGET_REMOVED, this.#time.timeMs - REMOVED_MS);
    this.#expired = this.#expiredInProjects(1).length > 0;
    return wallMs - this.#time.timeMs;
  }

  /** Deletes runs for about `limitMs` in the caller's transaction. Returns the traces whose deletion has begun or ended. */
  step(limitMs: number): { evicted: EvictedTrace[]; removed: OwnedTrace[] } {
    const [evicted, removed]: [EvictedTrace[], OwnedTrace[]] = [[], []];
    const untilMs = performance.now() + limitMs;
    do {
      const hidden = this.#hidden();
      if (hidden === undefined) {
        const due = this.#due();
        if (due.length === 0) break;
        for (const { n, tenant, limit } of due) {
          const runs = this.#connection.number('SELECT count(*) FROM runs WHERE trace = ?', n);
          evicted.push({ tenant, runs, limit, ...evict(this.#connection, n) });
        }
        continue;
      }
      const changed = purgeTrace(this.#connection, hidden, STEP_RUNS);
      if (changed !== undefined && hidden.kind !== HiddenKind.EVICTED)
        removed.push({ ...changed, tenant: hidden.tenant });
    } while (performance.now() < untilMs);
    return { evicted, removed };
  }

  /** Whether runs that a call of `remove` selected are still being deleted. */
  get isRemoving(): boolean {
    return this.#connection.one(`SELECT 1 FROM hidden WHERE kind <> ${HiddenKind.EVICTED} LIMIT 1`) !== undefined;
  }

  get isLoose(): boolean {
    return this.#connection.number('PRAGMA freelist_count') > FREE_PAGES;
  }

  /** Releases free pages. Call `shrink` outside a transaction. */
  shrink(): void {
    this.#connection.exec(`PRAGMA incremental_vacuum(${STEP_PAGES})`);
  }

  /** Returns a trace whose deletion has begun. */
  #hidden(): HiddenTrace | undefined {
    return this.#connection.one<HiddenTrace>(HIDDEN);
  }

  /** Returns the next traces to delete to stay within the limits. */
  #due(): DueTrace[] {
    const expired = this.#expired ? this.#expiredInProjects(EXPIRED_TRACES_MAX) : [];
    this.#expired = expired.length > 0;
    if (this.#expired) return expired;
    const oldest = this.#oldest();
    return oldest === undefined ? [] : [oldest];
  }

  /** Returns traces that are older than the age of their project. The project of a trace is that of its root. */
  #expiredInProjects(most: number): DueTrace[] {
    const found: DueTrace[] = [];
    for (const { tenant, name, project } of this.#agingProjects()) {
      const ownMs = this.#projectAges.get(name)?.get(project);
      const beforeMs = this.#time.timeMs - (ownMs ?? this.#limits.maxAgeMs);
      const values = [tenant, project, beforeMs * 1_000, beforeMs, most - found.length];
      const limit = ownMs === undefined ? MAX_AGE : PROJECT_MAX_AGE;
      for (const trace of this.#connection.all<OldestTrace>(EXPIRED, ...values)) found.push({ ...trace, limit });
      if (found.length === most) break;
    }
    return found;
  }

  /** Returns the projects with an age of their own. If one is longer than `maxAgeMs`, all, because `#oldest` waits for it. */
  #agingProjects(): AgingProject[] {
    if (this.#projectAges.size === 0) return [];
    if (this.#longestAgeMs > this.#limits.maxAgeMs) return this.#connection.all<AgingProject>(PROJECTS);
    return [...this.#projectAges].flatMap(([name, ages]) => {
      const tenant = this.#connection.one<{ n: number }>('SELECT n FROM tenants WHERE name = ?', name)?.n;
      return tenant === undefined ? [] : [...ages.keys()].map((project) => ({ tenant, name, project }));
    });
  }

  /** Returns the trace that has not changed for the longest time, if it is too old or the file too large. */
  #oldest(): DueTrace | undefined {
    const trace = this.#connection.one<OldestTrace>(OLDEST);
    if (trace === undefined) return undefined;
    if (trace.changed_ms < this.#time.timeMs - this.#longestAgeMs)
      return { ...trace, limit: this.#longestAgeMs > this.#limits.maxAgeMs ? PROJECT_MAX_AGE : MAX_AGE };
    return this.#usedBytes() > this.#limits.maxBytes ? { ...trace, limit: MAX_BYTES } : undefined;
  }

  get #longestAgeMs(): number {
    return Math.max(this.#limits.maxAgeMs, ...[...this.#projectAges.values()].flatMap((ages) => [...ages.values()]));
  }

  #usedBytes(): number {
    const pages = this.#connection.number('PRAGMA page_count') - this.#connection.number('PRAGMA freelist_count');
    return pages * this.#pageBytes;
  }
}

/** The retention time in a store file. Other processes may read and write it. */
export class SqliteRetentionTime {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  read(): number | undefined {
    return this.#connection.one<{ value: number }>("SELECT value FROM meta WHERE key = 'retention_ms'")?.value;
  }

  write(timeMs: number): void {
    this.#connection.run("REPLACE INTO meta VALUES ('retention_ms', ?)", timeMs);
  }
}

const FORGET_REMOVED = `DELETE FROM removed WHERE n IN (
  SELECT n FROM (SELECT n, removed_s FROM removed ORDER BY n LIMIT 10000) WHERE removed_s * 1000 < ?)`;
const HIDDEN = `SELECT hidden.trace AS trace, hidden.kind AS kind, tenants.name AS tenant
  FROM hidden CROSS JOIN traces ON traces.n = hidden.trace JOIN tenants ON tenants.n = traces.tenant LIMIT 1`;
const OLDEST = `SELECT traces.n AS n, changed_ms, tenants.name AS tenant
  FROM traces INDEXED BY traces_by_seq JOIN tenants ON tenants.n = tenant ORDER BY seq LIMIT 1`;
/** Finds each project by one look-up in the index. */
const PROJECTS = `WITH RECURSIVE found (tenant, project) AS (
    SELECT * FROM (SELECT tenant, project FROM runs INDEXED BY roots_by_project WHERE is_root = 1
      ORDER BY tenant, project LIMIT 1)
    UNION ALL SELECT runs.tenant, runs.project FROM found JOIN runs ON runs.n = (
      SELECT n FROM runs INDEXED BY roots_by_project
      WHERE is_root = 1 AND (tenant, project) > (found.tenant, found.project) ORDER BY tenant, project LIMIT 1)
  ) SELECT tenant, name, project FROM found JOIN tenants ON tenants.n = tenant`;
const EXPIRED = `SELECT traces.n AS n, changed_ms, tenants.name AS tenant
  FROM runs INDEXED BY roots_by_project JOIN traces ON traces.n = runs.trace JOIN tenants ON tenants.n = runs.tenant
  WHERE is_root = 1 AND runs.tenant = ? AND project = ? AND start_us < ? AND changed_ms < ?
    AND traces.n NOT IN (SELECT trace FROM hidden) LIMIT ?`;
