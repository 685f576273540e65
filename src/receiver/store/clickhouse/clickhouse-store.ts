import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { setTimer } from '../../../base/timers.ts';
import type { Attachment } from '../../../run/record.ts';
import type { Feedback } from '../../feedback/feedback.ts';
import type {
  ListQuery,
  Page,
  Ranged,
  RunQuery,
  Statistics,
  StatisticsQuery,
  Suggestion,
  SuggestionQuery,
  ThreadQuery,
  TimeRange,
} from '../../query/query.ts';
import { type Ages, MAX_AGE_MS, type ProjectAges } from '../ages.ts';
import type { KeyStore, StoredKey } from '../key-store.ts';
import { checkedPrices, type Prices } from '../prices.ts';
import type { PayloadField, ProjectSummary, RunDetails, RunSummary, ThreadSummary, TraceSummary } from '../run-view.ts';
import type {
  Changes,
  Removal,
  RemovalTarget,
  RevokedToken,
  RunOperation,
  Scope,
  Store,
  StoreChange,
  StoreStatus,
  TokenSecret,
} from '../store.ts';
import { ClickHouseChanges } from './changes.ts';
import { ClickHouse, sql } from './connection.ts';
import { Derivation } from './derivation.ts';
import { addFeedback, readFeedback } from './feedback.ts';
import {
  addTokenSecret,
  readKey,
  readRevokedTokens,
  revokeTokens,
  tokenSecrets,
  tokensRevokedMs,
  useKey,
} from './keys.ts';
import { list, projects, suggestions, traces } from './lists.ts';
import { PlaceFinder } from './places.ts';
import { findAttachment, readDetails, readOutline, readPayload, readRuns } from './reads.ts';
import { readRemovable, removeRuns } from './removal.ts';
import { expire } from './retention.ts';
import { checkSchema } from './schema.ts';
import { statistics } from './statistics.ts';
import { threads } from './threads.ts';
import { MessageWriter } from './writer.ts';

/** Options of `ClickHouseStore.open`. */
export interface ClickHouseStoreOptions {
  /**
   * Token prices, used to calculate the cost of runs that report no cost.
   * @default none
   */
  prices?: Prices;
  /**
   * Age above which traces are deleted, in milliseconds.
   * @default 2592000000 (30 days)
   */
  maxAgeMs?: number;
  /**
   * Maximum ages of the traces in individual projects, in milliseconds by tenant and project name, instead of `maxAgeMs`.
   * @default none
   */
  projectMaxAgeMs?: ProjectAges;
  /**
   * Time for which messages are collected before they are inserted, in milliseconds.
   * @default 200
   */
  batchDelayMs?: number;
}

const BATCH_DELAY_MS = 200;
/** Interval at which old traces are deleted, in milliseconds. */
const EXPIRE_MS = 3_600_000;
/** Minimum time until old traces are deleted for the first time, in milliseconds. The maximum is twice as long. */
const FIRST_EXPIRE_MS = 60_000;

/**
 * A store in ClickHouse, for more runs than one machine can hold. Several receivers can use the same database. Lists,
 * statistics and searches show a run a few seconds after it was stored.
 */
export class ClickHouseStore implements Store, KeyStore {
  readonly #db: ClickHouse;
  readonly #prices: Prices;
  readonly #writer: MessageWriter;
  readonly #changes: ClickHouseChanges;
  readonly #derivation: Derivation;
  #expireTimer: NodeJS.Timeout;
  #ages: Ages;

  /** Connects to a database whose schema is up to date. The URL contains the user, the password and the database. */
  static async open(url: string, options: ClickHouseStoreOptions = {}): Promise<ClickHouseStore> {
    const db = await ClickHouse.connect(url);
    try {
      await checkSchema(db);
      return new ClickHouseStore(db, options);
    } catch (error) {
      await db.close();
      throw error;
    }
  }

  private constructor(db: ClickHouse, options: ClickHouseStoreOptions) {
    const { prices = {}, batchDelayMs = BATCH_DELAY_MS, maxAgeMs = MAX_AGE_MS, projectMaxAgeMs = {} } = options;
    this.#db = db;
    this.#ages = { maxAgeMs, projectMaxAgeMs };
    this.#prices = checkedPrices(prices);
    const places = new PlaceFinder(db);
    this.#writer = new MessageWriter(db, places, batchDelayMs, (groups) => this.#derivation.add(groups));
    const nowUs = () => this.#writer.nowUs();
    this.#changes = new ClickHouseChanges(db, nowUs);
    this.#derivation = new Derivation(db, this.#prices, nowUs, (...change) => this.#changes.add(...change));
    this.#derivation.start();
    const firstMs = FIRST_EXPIRE_MS * (1 + Math.random());
    this.#expireTimer = setTimer(() => {
      this.#expireTimer = setInterval(() => void this.#expire(), EXPIRE_MS).unref();
      void this.#expire();
    }, firstMs).unref();
  }

  /** Replaces `projectMaxAgeMs`. */
  async setProjectAges(projectMaxAgeMs: ProjectAges): Promise<void> {
    this.#ages = { ...this.#ages, projectMaxAgeMs };
  }

  async #expire(): Promise<void> {
    try {
      await expire(this.#db, this.#ages);
    } catch (error) {
      diagnostics.warn(`the store in ClickHouse could not delete old runs: ${messageOf(error)}`);
    }
  }

  async apply({ tenant }: Scope, operations: readonly RunOperation[]): Promise<void> {
    await this.#writer.write(tenant, operations);
  }

  async projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]> {
    return await projects(this.#db, scope, range);
  }

  async traces(scope: Scope, query: Ranged<ListQuery>): Promise<Page<TraceSummary>> {
    return await traces(this.#db, scope, query);
  }

  async threads(scope: Scope, query: Ranged<ThreadQuery>): Promise<Page<ThreadSummary>> {
    return await threads(this.#db, scope, query);
  }

  async list(scope: Scope, query: Ranged<ListQuery>): Promise<Page<RunSummary>> {
    return await list(this.#db, scope, query);
  }

  async statistics(scope: Scope, query: Ranged<StatisticsQuery>): Promise<Statistics> {
    return await statistics(this.#db, scope, query);
  }

  async suggestions(scope: Scope, query: SuggestionQuery): Promise<Suggestion[]> {
    return await suggestions(this.#db, scope, query);
  }

  async *runs(scope: Scope, query: Ranged<RunQuery>): AsyncGenerator<string> {
    yield* readRuns(this.#db, scope, query, this.#prices);
  }

  async attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined> {
    return await findAttachment(this.#db, scope, runId, name, this.#prices);
  }

  async outline(scope: Scope, traceId: string): Promise<string[]> {
    return await readOutline(this.#db, scope, traceId, this.#prices);
  }

  async details(scope: Scope, runId: string): Promise<RunDetails | undefined> {
    return await readDetails(this.#db, scope, runId, this.#prices);
  }

  async payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined> {
    return await readPayload(this.#db, scope, runId, field, this.#prices);
  }

  async removable(scope: Scope, target: RemovalTarget): Promise<Removal> {
    return await readRemovable(this.#db, scope, target, this.#prices);
  }

  async remove(scope: Scope, target: RemovalTarget): Promise<Removal> {
    return await removeRuns(this.#db, scope, target, this.#prices, {
      nowUs: () => this.#writer.nowUs(),
      derive: (tenant, grps) => this.#derivation.derive(tenant, grps),
      onRemoved: (tenant, traceIds) => this.#changes.add(tenant, [], traceIds),
    });
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    return this.#changes.subscribe(scope, listener);
  }

  async changes(scope: Scope, after: string | undefined, limit: number): Promise<Changes> {
    return await this.#changes.changes(scope, after, limit);
  }

  async addFeedback(scope: Scope, feedback: Feedback): Promise<boolean> {
    const traceId = await addFeedback(this.#db, scope, feedback, () => this.#writer.nowUs());
    if (traceId !== undefined) await this.#changes.add(scope.tenant, [traceId]);
    return traceId !== undefined;
  }

  async feedback(scope: Scope, traceId: string): Promise<Feedback[]> {
    return await readFeedback(this.#db, scope, traceId);
  }

  async addTokenSecret(secret: TokenSecret): Promise<void> {
    await addTokenSecret(this.#db, secret);
  }

  async tokenSecrets(): Promise<TokenSecret[]> {
    return await tokenSecrets(this.#db);
  }

  async revokeTokens(scope: Scope, id: string, revokedMs: number): Promise<void> {
    await revokeTokens(this.#db, scope, id, revokedMs);
  }

  async tokensRevokedMs(scope: Scope, ids: readonly string[]): Promise<number | undefined> {
    return await tokensRevokedMs(this.#db, scope, ids);
  }

  /** Returns the names of all tenants that have runs. */
  async tenants(): Promise<string[]> {
    const rows = await this.#db.rows<{ tenant: string }>(sql('SELECT DISTINCT tenant FROM runs ORDER BY tenant'));
    return rows.map(({ tenant }) => tenant);
  }

  async revokedTokens(scope: Scope): Promise<RevokedToken[]> {
    return await readRevokedTokens(this.#db, scope);
  }

  async key(id: string): Promise<StoredKey | undefined> {
    return await readKey(this.#db, id);
  }

  async useKey(id: string, usedMs: number): Promise<void> {
    await useKey(this.#db, id, usedMs);
  }

  /** Returns figures for monitoring. `unindexedRuns` counts the groups of runs that lists do not show yet. */
  async status(): Promise<StoreStatus> {
    const [row] = await this.#db.rows<{ bytes: number; free: number }>(
      sql(`SELECT (SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()) AS bytes,
        (SELECT min(free_space) FROM system.disks) AS free`),
    );
    return {
      queuedBytes: this.#writer.waitingBytes,
      unindexedRuns: this.#derivation.waiting,
      fileBytes: row?.bytes ?? 0,
      walBytes: 0,
      freeBytes: row?.free ?? 0,
    };
  }

  /** Resolves when lists show all stored messages. */
  async settled(): Promise<void> {
    await this.#writer.idle();
    await this.#derivation.settle();
  }

  async close(): Promise<void> {
    clearInterval(this.#expireTimer);
    await this.#writer.idle();
    await this.#derivation.close();
    await this.#changes.close();
    await this.#db.close();
  }
}
