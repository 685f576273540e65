import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { type Checks, checkedOptions, TRUE_OR_FALSE, WHOLE_FROM_1, wholeFrom } from '../../../config/checker.ts';
import { delay, runInRootContext } from '../../../platform/timers.ts';
import { PRICE_CHECKS, PriceList, type PriceOptions } from '../../domain/cost/prices.ts';
import type { Feedback } from '../../domain/feedback.ts';
import type { DeletionTarget, RunCounts, Scope } from '../../domain/query/query.ts';
import { type Ages, MAX_AGE_MS, PROJECT_AGES, type ProjectAges } from '../../domain/retention/ages.ts';
import { deletionOf } from '../../domain/retention/deletion.ts';
import { lagReport, RetentionTime } from '../../domain/retention/retention-time.ts';
import type { RunOperation } from '../../domain/run-message.ts';
import type { KeyStore } from '../key-store.ts';
import { type RevokedToken, type Store, StoreError, type StoreStatus } from '../store.ts';
import type { ChangedTrace } from '../subscribers.ts';
import { ClickHouseChanges } from './changes.ts';
import { StoreClock } from './clock.ts';
import { ClickHouse, sql } from './connection.ts';
import { ClickHouseDeletions, readRemovable } from './deletion.ts';
import { Derivation } from './derivation.ts';
import { insertFeedback, readFeedback, readFeedbackWithId, removeFeedback } from './feedback.ts';
import {
  addTokenSecret,
  ClickHouseKeys,
  readRevokedTokens,
  revokeTokens,
  tokenSecrets,
  tokensRevokedMs,
} from './keys.ts';
import { PlaceFinder } from './places.ts';
import { list, projects, suggestions, traces } from './reads/lists.ts';
import {
  findAttachment,
  readDetails,
  readMergedRuns,
  readOutline,
  readPayload,
  readProjectsOf,
  readRuns,
} from './reads/reads.ts';
import { statistics } from './reads/statistics.ts';
import { threads } from './reads/threads.ts';
import { ClickHouseRetentionTime, expire } from './retention.ts';
import { checkSchema } from './schema.ts';
import { latestTimeUs } from './sweep.ts';
import { MessageWriter } from './writer.ts';

/** Options for a ClickHouse store. All receivers that share a database should use the same options. */
export interface ClickHouseStoreOptions extends PriceOptions {
  /**
   * Maximum age of a trace, in milliseconds. At most once an hour, the store deletes whole days of older traces. A
   * trace belongs to the day on which it started, or on which its latest message arrived, whichever is later.
   * @default 2592000000 (30 days)
   */
  maxAgeMs?: number;
  /**
   * Overrides `maxAgeMs` for individual projects, in milliseconds, keyed by tenant and project name. A receiver without
   * tenants uses the tenant `default`. A trace belongs to the project of its root run.
   * @default none
   */
  projectMaxAgeMs?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /**
   * Minimum time between the starts of two inserts, in milliseconds. Operations that arrive in the meantime are inserted
   * as one batch. A longer time makes fewer inserts, but `apply` slower.
   * @default 400
   */
  batchDelayMs?: number;
  /** @internal If true, the store neither updates its lists nor deletes old traces. */
  readOnly?: boolean;
}

const DEFAULTS: Required<Omit<ClickHouseStoreOptions, keyof PriceOptions>> = {
  maxAgeMs: MAX_AGE_MS,
  projectMaxAgeMs: {},
  batchDelayMs: 400,
  readOnly: false,
};
const CHECKS: Checks<ClickHouseStoreOptions> = {
  ...PRICE_CHECKS,
  maxAgeMs: WHOLE_FROM_1,
  projectMaxAgeMs: PROJECT_AGES,
  batchDelayMs: wholeFrom(0),
  readOnly: TRUE_OR_FALSE,
};

/** Maximum time that `close` waits for pending operations, in milliseconds. */
const CLOSE_MS = 5_000;
const BEHIND_RETRY_AFTER_S = 10;
/** Interval at which the clocks are checked, in milliseconds. */
const AGE_MS = 60_000;
const EXPIRE_MS = 3_600_000;
/** Minimum delay before the first deletion of old traces, in milliseconds. The actual delay is up to twice as long. */
const FIRST_EXPIRE_MS = 60_000;

/**
 * Stores runs in a ClickHouse database, for more runs than one machine can hold. Several receivers can share a
 * database. `apply` resolves once ClickHouse has acknowledged the runs. Queries return them about a second later.
 *
 * Methods reject with a `StoreError` if ClickHouse is unreachable, fails or is overloaded. The caller can retry. While
 * more than 64 MiB of operations are pending, or queries lack changes that are older than a minute, `apply` rejects with
 * a `StoreError` whose reason is `busy`.
 */
export class ClickHouseStore implements Store {
  /** For queries. They have connections of their own, so that they cannot delay inserts. */
  readonly #db: ClickHouse;
  /** For inserts and derivation. */
  readonly #writing: ClickHouse;
  readonly #retention: ClickHouse;
  readonly #clock: StoreClock;
  readonly #prices: PriceList;
  readonly #writer: MessageWriter;
  readonly #changes: ClickHouseChanges;
  readonly #keys: ClickHouseKeys;
  readonly #deletions: ClickHouseDeletions;
  readonly #derivation: Derivation;
  readonly #time: RetentionTime = new RetentionTime();
  #ageTimer: NodeJS.Timeout | undefined;
  #expireAtMs: number = performance.now() + FIRST_EXPIRE_MS * (1 + Math.random());
  #ages: Ages;
  /** See `lagReport`. @internal */
  lag: string | undefined;

  /**
   * Connects to a database that `runspan store migrate` has prepared. `url` is the address of ClickHouse's HTTP
   * interface, including user, password and database, for example `https://user:password@host:8443/runspan`. Rejects
   * with `RUNSPAN_STORE_FAILED` if the package `@clickhouse/client` is not installed. Rejects with
   * `RUNSPAN_STORE_INVALID` if the database was not migrated, or was migrated by another version of runspan. Rejects
   * with a `StoreError` if ClickHouse is unreachable or refuses the user.
   */
  static async open(url: string, options: ClickHouseStoreOptions = {}): Promise<ClickHouseStore> {
    const checked = { ...DEFAULTS, ...checkedOptions('the options', options, CHECKS) };
    const prices = new PriceList(checked);
    const [db, writing] = [await ClickHouse.connect(url), await ClickHouse.connect(url)];
    const retention = await ClickHouse.connect(url, 'retention');
    try {
      await checkSchema(db);
      return new ClickHouseStore(db, writing, retention, await StoreClock.open(writing), prices, checked);
    } catch (error) {
      await Promise.all([db, writing, retention].map((connection) => connection.close()));
      throw error;
    }
  }

  private constructor(
    db: ClickHouse,
    writing: ClickHouse,
    retention: ClickHouse,
    clock: StoreClock,
    prices: PriceList,
    options: typeof DEFAULTS,
  ) {
    const { batchDelayMs, readOnly, ...ages } = options;
    this.#db = db;
    this.#writing = writing;
    this.#retention = retention;
    this.#clock = clock;
    this.#ages = ages;
    this.#prices = prices;
    this.#keys = new ClickHouseKeys(db);
    const places = new PlaceFinder(writing);
    this.#writer = new MessageWriter(writing, clock, places, batchDelayMs, (groups) => this.#derivation.add(groups));
    this.#changes = new ClickHouseChanges(writing, clock);
    this.#deletions = new ClickHouseDeletions(retention, clock, this.#changes, (groups) =>
      this.#derivation.derive(groups),
    );
    this.#derivation = new Derivation(writing, this.#prices, this.#changes, clock, this.#deletions);
    if (readOnly) return;
    this.#derivation.start();
    this.#ageTimer = runInRootContext(() => setInterval(() => void this.#checkAge(), AGE_MS).unref());
  }

  /** Replaces `projectMaxAgeMs`. @internal */
  async setProjectAges(projectMaxAgeMs: ProjectAges): Promise<void> {
    this.#ages = { ...this.#ages, projectMaxAgeMs };
  }

  /** Checks the clocks. Once an hour, deletes old traces, unless a receiver has begun to in the last half hour. */
  async #checkAge(): Promise<void> {
    const isDue = performance.now() >= this.#expireAtMs;
    if (isDue) this.#expireAtMs = performance.now() + EXPIRE_MS;
    try {
      await this.#clock.synchronize();
      const wallMs = this.#clock.wallMs();
      await new ClickHouseRetentionTime(this.#retention).check(this.#time, wallMs);
      this.lag = lagReport(wallMs - this.#time.timeMs, this.lag);
      if (isDue) await this.#expire();
    } catch (error) {
      if (isDue) diagnostics.warn(`the store in ClickHouse could not delete old runs: ${messageOf(error)}`);
    }
  }

  async #expire(): Promise<void> {
    const nowUs = this.#clock.nowUs();
    const ageUs = nowUs - (await latestTimeUs(this.#retention, 'retention'));
    // The time is in the future if the clock of ClickHouse was ahead.
    if (ageUs >= 0 && ageUs < (EXPIRE_MS * 1_000) / 2) return;
    await this.#retention.insert('times', [{ name: 'retention', us: nowUs }]);
    await expire(this.#retention, this.#ages, this.#time.timeMs);
  }

  async apply({ tenant }: Scope, operations: readonly RunOperation[]): Promise<undefined> {
    if (operations.length > 0 && this.#derivation.isBehind) {
      throw new StoreError('busy', 'Queries are more than a minute behind the stored runs', BEHIND_RETRY_AFTER_S);
    }
    if (operations.length === 0) await this.#writing.insert('times', [{ name: 'written', us: this.#clock.nowUs() }]);
    else await this.#writer.write(tenant, operations);
  }

  readonly projects: Store['projects'] = (scope, range) => projects(this.#db, scope, range);
  readonly traces: Store['traces'] = (scope, query) => traces(this.#db, scope, query);
  readonly threads: Store['threads'] = (scope, query) => threads(this.#db, scope, query);
  readonly list: Store['list'] = (scope, query) => list(this.#db, scope, query);
  readonly statistics: Store['statistics'] = (scope, query) => statistics(this.#db, scope, query);
  readonly suggestions: Store['suggestions'] = (scope, query) => suggestions(this.#db, scope, query);
  readonly runs: Store['runs'] = (scope, query) => readRuns(this.#db, scope, query);
  readonly attachment: Store['attachment'] = (scope, runId, name) => findAttachment(this.#db, scope, runId, name);
  readonly outline: Store['outline'] = (scope, traceId) => readOutline(this.#db, scope, traceId);
  readonly details: Store['details'] = (scope, runId) => readDetails(this.#db, scope, runId);
  readonly projectsOf: Store['projectsOf'] = (scope, runIds) => readProjectsOf(this.#db, scope, runIds);
  readonly payload: Store['payload'] = (scope, runId, field) => readPayload(this.#db, scope, runId, field);
  readonly mergedRuns: Store['mergedRuns'] = (scope, runs) => readMergedRuns(this.#db, scope, runs);
  readonly removable: Store['removable'] = (scope, target) => readRemovable(this.#db, deletionOf(scope, target));
  readonly subscribe: Store['subscribe'] = (scope, listener) => this.#changes.subscribe(scope, listener);
  readonly feedback: Store['feedback'] = (scope, traceIds) => readFeedback(this.#db, scope, traceIds);
  readonly feedbackWithId: Store['feedbackWithId'] = (scope, id) => readFeedbackWithId(this.#db, scope, id);
  readonly addTokenSecret: Store['addTokenSecret'] = (secret) => addTokenSecret(this.#db, secret);
  readonly tokenSecrets: Store['tokenSecrets'] = () => tokenSecrets(this.#db);
  readonly revokeTokens: Store['revokeTokens'] = (scope, id, revokedMs) => revokeTokens(this.#db, scope, id, revokedMs);
  readonly tokensRevokedMs: Store['tokensRevokedMs'] = (scope, ids) => tokensRevokedMs(this.#db, scope, ids);
  /** @internal */
  readonly revokedTokens: (scope: Scope) => Promise<RevokedToken[]> = (scope) => readRevokedTokens(this.#db, scope);
  /** @internal */
  readonly key: KeyStore['key'] = (id) => this.#keys.key(id);
  /** @internal */
  readonly useKey: KeyStore['useKey'] = (id, usedMs) => this.#keys.useKey(id, usedMs);

  async remove(scope: Scope, target: DeletionTarget): Promise<RunCounts> {
    const deletion = deletionOf(scope, target);
    // Messages that receivers have acknowledged are covered, also if lists do not show them yet.
    await this.#derivation.deriveAll().catch(() => {});
    const counts = await this.removable(scope, target);
    // A clock that is ahead for a moment must not cover what is received after it is right again.
    await new ClickHouseRetentionTime(this.#retention).check(this.#time, this.#clock.wallMs());
    await this.#deletions.add({ ...deletion, atMs: this.#time.timeMs });
    return counts;
  }

  async addFeedback(scope: Scope, feedback: Feedback): Promise<boolean> {
    return this.#reportFeedback(scope, await insertFeedback(this.#db, scope, feedback, this.#clock.nowUs()));
  }

  async removeFeedback(scope: Scope, feedback: Pick<Feedback, 'id' | 'run_id'>): Promise<boolean> {
    return this.#reportFeedback(scope, await removeFeedback(this.#db, scope, feedback));
  }

  async #reportFeedback({ tenant }: Scope, trace: ChangedTrace | undefined): Promise<boolean> {
    if (trace !== undefined) await this.#changes.add(tenant, [trace]);
    return trace !== undefined;
  }

  /** Returns the names of all tenants that have runs. @internal */
  async tenants(): Promise<string[]> {
    const rows = await this.#db.rows<{ tenant: string }>(
      sql('SELECT DISTINCT tenant FROM runs WHERE version > 0 ORDER BY tenant'),
    );
    return rows.map(({ tenant }) => tenant);
  }

  /**
   * Returns figures for monitoring. `unindexedRuns` counts the groups with changes that lists do not show yet,
   * including those that are left alone.
   * @internal
   */
  async status(): Promise<StoreStatus> {
    const [row] = await this.#db.rows<{ bytes: number; free: number }>(
      sql`SELECT (SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()) AS bytes,
        (SELECT min(free_space) FROM system.disks) AS free`,
    );
    return {
      queuedBytes: this.#writer.waitingBytes,
      unindexedRuns: this.#derivation.waiting,
      fileBytes: row?.bytes ?? 0,
      walBytes: 0,
      freeBytes: row?.free ?? 0,
    };
  }

  /** Resolves once lists show every stored message. @internal */
  async settled(): Promise<void> {
    await this.#writer.idle();
    await this.#deletions.settle();
    await this.#derivation.settle();
  }

  /** Closes the store. Waits up to 5 s for pending operations, then rejects those that are not stored. */
  async close(): Promise<void> {
    clearInterval(this.#ageTimer);
    const finished = this.#finish();
    await Promise.race([finished, delay(CLOSE_MS, undefined)]);
    await Promise.all([this.#db, this.#writing, this.#retention].map((db) => db.close()));
    await finished;
  }

  async #finish(): Promise<void> {
    await this.#writer.idle();
    await this.#deletions.close();
    await this.#derivation.close();
    await this.#changes.close();
  }
}
