import type { Ages, ProjectAges } from '../../domain/retention/ages.ts';
import { DELETIONS_MS } from '../../domain/retention/deletion.ts';
import type { RetentionTime } from '../../domain/retention/retention-time.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { hideTrace } from './deletion.ts';
import type { SqliteConnection } from './file/database.ts';
import { EVICTED } from './file/schema.ts';
import { deleteRunsOf } from './sqlite-run.ts';

export interface Retention extends Ages {
  readonly maxBytes: number;
}

interface EvictedTrace extends ChangedTrace {
  readonly tenant: string;
  readonly runs: number;
}

/** Number of runs to delete between checks of the time limit. */
const STEP_RUNS = 50;
/** Number of free pages that the file keeps, and number of pages that one step releases. */
const FREE_PAGES = 1_024;
const STEP_PAGES = 512;

interface OldestTrace {
  readonly n: number;
  readonly seq: number;
  readonly changed_ms: number;
  readonly tenant: string;
}

/** Deletes the least recently changed traces to stay within the limits, a large trace in several steps. */
export class SqliteRetention {
  readonly #connection: SqliteConnection;
  readonly #limits: Retention;
  readonly #time: RetentionTime;
  readonly #stored: SqliteRetentionTime;
  readonly #projectAges = new Map<string, ReadonlyMap<string, number>>();
  readonly #pageBytes: number;
  /** Whether traces of a project have expired. */
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
    return this.#expired || this.#due() !== undefined;
  }

  /** Whether traces are due, other than those that are deleted by request. */
  get isUrgent(): boolean {
    const isOnlyRemoving = this.isRemoving && !this.#expired && this.#usedBytes() <= this.#limits.maxBytes;
    return this.isDue && !isOnlyRemoving;
  }

  /**
   * Checks the clocks, and whether traces have expired in a project. Forgets old deletions. This takes too long to repeat
   * it after each write. Returns how far the retention time is behind the wall clock.
   */
  checkAge(wallMs: number): number {
    const timeMs = this.#time.check(wallMs, this.#stored.read());
    if (timeMs !== undefined) this.#stored.write(timeMs);
    const oldMs = this.#time.timeMs - DELETIONS_MS;
    this.#connection.run(FORGET_REMOVED, oldMs);
    this.#connection.run('DELETE FROM deletions WHERE is_open = 0 AND at_ms < ?', oldMs);
    this.#expired = this.#expiredInProject() !== undefined;
    return wallMs - this.#time.timeMs;
  }

  /** Deletes runs for about `limitMs` in the caller's transaction. Returns the traces whose deletion began. */
  step(limitMs: number): EvictedTrace[] {
    const evicted: EvictedTrace[] = [];
    const untilMs = performance.now() + limitMs;
    for (let trace = this.#next(); trace !== undefined; ) {
      if (trace.seq >= 0) evicted.push(this.#evict(trace));
      const runs = deleteRunsOf(this.#connection, trace.n, STEP_RUNS);
      if (runs < STEP_RUNS) this.#connection.run('DELETE FROM traces WHERE n = ?', trace.n);
      trace = performance.now() < untilMs ? this.#next() : undefined;
    }
    return evicted;
  }

  /** Whether runs that a call of `remove` selected are still being deleted. */
  get isRemoving(): boolean {
    return this.#connection.one('SELECT 1 FROM traces WHERE seq < ? LIMIT 1', EVICTED) !== undefined;
  }

  get isLoose(): boolean {
    return this.#connection.number('PRAGMA freelist_count') > FREE_PAGES;
  }

  /** Releases free pages. Call `shrink` outside a transaction. */
  shrink(): void {
    this.#connection.exec(`PRAGMA incremental_vacuum(${STEP_PAGES})`);
  }

  #evict({ n, tenant }: OldestTrace): EvictedTrace {
    const runs = this.#connection.number('SELECT count(*) FROM runs WHERE trace = ?', n);
    return { tenant, runs, ...hideTrace(this.#connection, n, EVICTED) };
  }

  #next(): OldestTrace | undefined {
    const due = this.#due();
    if (due !== undefined || !this.#expired) return due;
    const expired = this.#expiredInProject();
    this.#expired = expired !== undefined;
    return expired;
  }

  /** Returns a trace that is older than the maximum age of its project. The project of a trace is that of its root. */
  #expiredInProject(): OldestTrace | undefined {
    if (this.#projectAges.size === 0) return undefined;
    const projects = this.#connection.all<{ tenant: number; name: string; project: string }>(PROJECTS);
    for (const { tenant, name, project } of projects) {
      const beforeMs = this.#time.timeMs - (this.#projectAges.get(name)?.get(project) ?? this.#limits.maxAgeMs);
      const found = this.#connection.one<OldestTrace>(EXPIRED, tenant, project, beforeMs * 1_000, beforeMs);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns the next trace to delete. Traces whose deletion has begun come first. */
  #due(): OldestTrace | undefined {
    const trace = this.#connection.one<OldestTrace>(OLDEST);
    if (trace === undefined) return undefined;
    const isTooOld = trace.seq < 0 || trace.changed_ms < this.#time.timeMs - this.#longestAgeMs;
    return isTooOld || this.#usedBytes() > this.#limits.maxBytes ? trace : undefined;
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
const OLDEST = `SELECT traces.n AS n, seq, changed_ms, tenants.name AS tenant
  FROM traces INDEXED BY traces_by_seq JOIN tenants ON tenants.n = tenant ORDER BY seq LIMIT 1`;
/** Finds each project by one look-up in the index. */
const PROJECTS = `WITH RECURSIVE found (tenant, project) AS (
    SELECT * FROM (SELECT tenant, project FROM runs INDEXED BY roots_by_project WHERE is_root = 1
      ORDER BY tenant, project LIMIT 1)
    UNION ALL SELECT runs.tenant, runs.project FROM found JOIN runs ON runs.n = (
      SELECT n FROM runs INDEXED BY roots_by_project
      WHERE is_root = 1 AND (tenant, project) > (found.tenant, found.project) ORDER BY tenant, project LIMIT 1)
  ) SELECT tenant, name, project FROM found JOIN tenants ON tenants.n = tenant`;
const EXPIRED = `SELECT traces.n AS n, seq, changed_ms, tenants.name AS tenant
  FROM runs INDEXED BY roots_by_project JOIN traces ON traces.n = runs.trace JOIN tenants ON tenants.n = runs.tenant
  WHERE is_root = 1 AND runs.tenant = ? AND project = ? AND start_us < ? AND changed_ms < ? LIMIT 1`;
