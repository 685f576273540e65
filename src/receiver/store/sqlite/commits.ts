import { RunspanError } from '../../../base/errors.ts';
import { clearTimer, setSoon, setTimer } from '../../../platform/timers.ts';
import type { PriceList } from '../../domain/cost/prices.ts';
import type { Feedback } from '../../domain/feedback.ts';
import { grouped } from '../../domain/grouped.ts';
import type { RunCounts, Scope } from '../../domain/query/query.ts';
import type { ProjectAges } from '../../domain/retention/ages.ts';
import type { Deletion } from '../../domain/retention/deletion.ts';
import { RetentionTime } from '../../domain/retention/retention-time.ts';
import type { TokenSecret } from '../store.ts';
import type { TenantChange } from '../subscribers.ts';
import { hasCode, isOfTheFile, type SqliteConnection } from './file/database.ts';
import { type StoreOwner, setOwner } from './file/file.ts';
import { SqliteKeys } from './keys.ts';
import type { EncodedOperation } from './payloads.ts';
import { SqliteIndex } from './reads/search.ts';
import { type Retention, SqliteRetention } from './retention.ts';
import { SqliteWriter } from './writer.ts';

/** Time after which no more calls are added to a transaction, in milliseconds. */
const GROUP_MS = 50;
/** Delay between a write and a background step, in milliseconds, so that several runs are indexed together. */
const BACKGROUND_DELAY_MS = 300;
/** Duration of a background step, in milliseconds. Writes that arrive during a step wait until the step ends. */
const STEP_MS = 50;
/** Duration of a step that deletes traces by request, in milliseconds. */
const DELETION_STEP_MS = 5;
/** Pause after such a step while writes arrive, in milliseconds. */
const DELETION_PAUSE_MS = 60;
/** Time without writes before a background step. Each step ends with a commit, so a few long ones cost less. */
const PAUSE_MS = 10;
/** Maximum time that an indexing step waits for a pause in writes, in milliseconds. */
const PAUSE_WAIT_MAX_MS = 300;
/** Duration of a step that indexes runs within `BACKGROUND_DELAY_MS` after a write, in milliseconds. */
const BUSY_STEP_MS = 20;
/** Duration of an indexing step above `UNINDEXED_MAX`, because unindexed runs slow down every search. */
const LATE_INDEX_MS = 200;
const UNINDEXED_MAX = 100_000;
/** Number of runs that are not indexed above which the index takes precedence over deleting more runs. */
const DELETED_WORDS_MAX = 20_000;

interface WaitingCall {
  readonly work: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Executes all writes to a store. Calls that arrive during a commit are combined into the next commit. Each call is
 * committed completely or not at all. Between commits, background steps delete traces to stay within the limits, index
 * runs, and release free pages.
 */
export class SqliteCommits {
  readonly #connection: SqliteConnection;
  readonly #writer: SqliteWriter;
  readonly #index: SqliteIndex;
  readonly #retention: SqliteRetention;
  readonly #nowMs: () => number;
  readonly #report: (change: TenantChange) => void;
  #calls: WaitingCall[] = [];
  #turn: NodeJS.Immediate | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #indexedAtMs = Number.NEGATIVE_INFINITY;
  #backgroundTimer: NodeJS.Timeout | undefined;
  #changes: TenantChange[] = [];
  /** Number of calls that wait for the end of deletions. */
  #waiting = 0;
  #stepError: unknown;
  /** Error of a background step that found damage. Later calls are rejected with it. */
  #damage: unknown;
  #isClosed = false;

  constructor(
    connection: SqliteConnection,
    { prices, ...limits }: Retention & { readonly prices: PriceList },
    nowMs: () => number,
    report: (change: TenantChange) => void,
    monotonicMs?: () => number,
  ) {
    this.#connection = connection;
    this.#nowMs = nowMs;
    this.#report = report;
    const time = new RetentionTime(monotonicMs);
    // A run that arrives while the clock is late for a moment is not older than the retention time.
    this.#writer = new SqliteWriter(connection, prices, () => Math.max(nowMs(), time.timeMs));
    this.#index = new SqliteIndex(connection);
    this.#retention = new SqliteRetention(connection, limits, time);
  }

  apply({ tenant }: Scope, operations: readonly EncodedOperation[]): Promise<number> {
    return this.#call(() => {
      const { change, discarded } = this.#writer.apply(tenant, operations);
      if (change !== undefined) this.#changes.push(change);
      this.#index.waiting += operations.length;
      return discarded;
    });
  }

  addFeedback({ tenant }: Scope, feedback: string): Promise<boolean> {
    return this.#change(() => this.#writer.addFeedback(tenant, feedback));
  }

  removeFeedback({ tenant }: Scope, feedback: Pick<Feedback, 'id' | 'run_id'>): Promise<boolean> {
    return this.#change(() => this.#writer.removeFeedback(tenant, feedback));
  }

  addTokenSecret(secret: TokenSecret): Promise<void> {
    return this.#call(() => this.#writer.addTokenSecret(secret));
  }

  revokeTokens({ tenant }: Scope, id: string, revokedMs: number): Promise<void> {
    return this.#call(() => this.#writer.revokeTokens(tenant, id, revokedMs));
  }

  useKey(id: string, usedMs: number): Promise<void> {
    return this.#call(() => new SqliteKeys(this.#connection).useKey(id, usedMs));
  }

  /** Hides the traces of a deletion. Background steps delete their runs. */
  remove(deletion: Deletion): Promise<RunCounts> {
    return this.#call(() => {
      const { counts, change } = this.#writer.remove(deletion);
      this.#changes.push(change);
      return counts;
    });
  }

  /** Waits until the runs of all hidden traces are deleted. */
  async removed(): Promise<void> {
    // Each call is followed by a step that deletes runs.
    this.#waiting += 1;
    try {
      while (await this.#call(() => this.#retention.isRemoving)) {
        if (this.#stepError !== undefined) throw this.#stepError;
      }
    } finally {
      this.#waiting -= 1;
    }
  }

  async setProjectAges(ages: ProjectAges): Promise<void> {
    this.#retention.setProjectAges(ages);
    await this.checkAge();
  }

  /** See `SqliteRetention.checkAge`. The owner of the store calls it once a minute. */
  checkAge(): Promise<number> {
    return this.#call(() => this.#retention.checkAge(this.#nowMs()));
  }

  setOwner(owner: StoreOwner): Promise<void> {
    return this.#call(() => setOwner(this.#connection, owner));
  }

  /** Executes all pending calls. Runs that are not indexed yet are indexed when the store is next opened. */
  close(): void {
    clearTimer(this.#backgroundTimer);
    // Otherwise programs that run for less than the interval of the checks would never store it.
    this.checkAge().catch(() => {});
    this.#isClosed = true;
    while (this.#calls.length > 0) this.#commitCalls();
    clearImmediate(this.#turn);
  }

  /** Resolves with whether `work` has changed anything. */
  #change(work: () => TenantChange | undefined): Promise<boolean> {
    return this.#call(() => {
      const change = work();
      if (change !== undefined) this.#changes.push(change);
      return change !== undefined;
    });
  }

  #call<Value>(work: () => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      // The next step of a deletion may come after the store was closed.
      if (this.#isClosed) throw new RunspanError('RUNSPAN_STORE_FAILED', 'The store cannot be used: it is closed');
      this.#calls.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#turn ??= setSoon(() => this.#work());
    });
  }

  #work(): void {
    this.#turn = undefined;
    this.#commitCalls();
    this.#writtenAtMs = performance.now();
    if (this.#calls.length > 0) this.#turn = setSoon(() => this.#work());
    // Check the limits here, so that they are enforced even if writes never pause.
    if (this.#waiting > 0 || this.#retention.isUrgent) this.#runStep();
    else this.#plan(BACKGROUND_DELAY_MS);
  }

  #plan(delayMs: number): void {
    const hasWork = this.#index.waiting > 0 || this.#retention.isDue || this.#retention.isLoose;
    if (hasWork) this.#backgroundTimer ??= setTimer(() => this.#runStepInPause(), delayMs);
  }

  #runStepInPause(): void {
    const isLate = this.#index.waiting > UNINDEXED_MAX || since(this.#indexedAtMs) > PAUSE_WAIT_MAX_MS;
    const waitMs = isLate ? 0 : PAUSE_MS - since(this.#writtenAtMs);
    if (waitMs <= 0) this.#runStep();
    else this.#backgroundTimer = setTimer(() => this.#runStepInPause(), waitMs);
  }

  #runStep(): void {
    clearTimer(this.#backgroundTimer);
    this.#backgroundTimer = undefined;
    this.#stepError = undefined;
    try {
      const isBehind = this.#index.waiting > DELETED_WORDS_MAX;
      if (this.#retention.isDue && !isBehind) this.#inTransaction(() => this.#forget());
      else if (this.#index.waiting > 0) this.#indexRuns();
      if (this.#retention.isLoose) this.#retention.shrink();
      this.#plan(this.#isPaused ? DELETION_PAUSE_MS : 0);
    } catch (error) {
      if (!isOfTheFile(error)) throw error;
      this.#stepError = error;
      // Retry the step later. If the file stays unusable, the next write reports the error.
      if (hasCode(error, 'damaged')) this.#damage = error;
      else this.#plan(BACKGROUND_DELAY_MS);
    }
  }

  /** Whether the next step only deletes traces by request, and writes arrive meanwhile. */
  get #isPaused(): boolean {
    const hasWrites = this.#waiting === 0 && since(this.#writtenAtMs) < BACKGROUND_DELAY_MS;
    return hasWrites && this.#index.waiting <= DELETED_WORDS_MAX && !this.#retention.isUrgent && this.#retention.isDue;
  }

  get #usualStepMs(): number {
    return since(this.#writtenAtMs) < BACKGROUND_DELAY_MS ? BUSY_STEP_MS : STEP_MS;
  }

  #indexRuns(): void {
    const stepMs = this.#index.waiting > UNINDEXED_MAX ? LATE_INDEX_MS : this.#usualStepMs;
    this.#inTransaction(() => this.#index.step(stepMs));
    this.#indexedAtMs = performance.now();
  }

  #forget(): void {
    const { evicted, removed } = this.#retention.step(this.#retention.isRemoving ? DELETION_STEP_MS : STEP_MS);
    this.#index.waiting = this.#connection.number('SELECT count(*) FROM unindexed');
    for (const [tenant, traces] of grouped(removed, (trace) => trace.tenant)) this.#changes.push({ tenant, traces });
    for (const [limit, ofLimit] of grouped(evicted, (trace) => trace.limit)) {
      for (const [tenant, traces] of grouped(ofLimit, (trace) => trace.tenant)) {
        const forgotten = { traces: traces.length, runs: traces.reduce((sum, { runs }) => sum + runs, 0) };
        this.#changes.push({ tenant, traces, forgotten, limit });
      }
    }
  }

  #commitCalls(): void {
    const begunMs = performance.now();
    const done: (() => void)[] = [];
    const taken: WaitingCall[] = [];
    try {
      if (this.#damage !== undefined) throw this.#damage;
      this.#inTransaction(() => {
        for (const call of this.#calls) {
          taken.push(call);
          done.push(this.#settlement(call));
          if (since(begunMs) > GROUP_MS) break;
        }
      });
    } catch (error) {
      for (const { reject } of taken.length > 0 ? taken : this.#calls) reject(error);
      this.#calls = taken.length > 0 ? this.#calls.slice(taken.length) : [];
      return;
    }
    this.#calls = this.#calls.slice(taken.length);
    for (const settle of done) settle();
  }

  /** Runs a call, or undoes its changes if it fails. After the commit, the returned function settles the promise. */
  #settlement({ work, resolve, reject }: WaitingCall): () => void {
    const changes = this.#changes.length;
    this.#connection.exec('SAVEPOINT call');
    try {
      const value = work();
      this.#connection.exec('RELEASE call');
      return () => resolve(value);
    } catch (error) {
      if (isOfTheFile(error)) throw error;
      this.#connection.exec('ROLLBACK TO call; RELEASE call');
      this.#changes.length = changes;
      return () => reject(error);
    }
  }

  /** Runs `work` in a transaction, and reports its changes after the commit. */
  #inTransaction(work: () => void): void {
    this.#changes = [];
    this.#connection.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#connection.exec('COMMIT');
    } catch (error) {
      try {
        this.#connection.exec('ROLLBACK');
      } catch {
        // SQLite may have rolled back the transaction already, for example if the disk is full.
      }
      throw error;
    }
    for (const change of this.#changes) this.#report(change);
  }
}

function since(atMs: number): number {
  return performance.now() - atMs;
}
