import { clearTimer, setSoon, setTimer } from '../../../base/timers.ts';
import type { Feedback, FeedbackToken } from '../../feedback/feedback.ts';
import type { Prices } from '../prices.ts';
import type { Scope } from '../store.ts';
import type { SqliteConnection } from './database.ts';
import { isOfTheFile } from './errors.ts';
import { type StoreOwner, setOwner } from './file.ts';
import type { EncodedOperation } from './payloads.ts';
import { type Retention, SqliteRetention } from './retention.ts';
import { SqliteIndex } from './search.ts';
import { SqliteWriter, type TenantChange } from './writer.ts';

/** Time after which a transaction includes no further calls. */
const GROUP_MS = 50;
/** Delay between the first write and the first indexing step. It allows several runs to be indexed together. */
const INDEX_DELAY_MS = 300;
/** Duration of an indexing step. */
const INDEX_MS = 50;
/**
 * Duration of an indexing step after a recent write (within `INDEX_DELAY_MS`). It is short, because a new write must
 * wait for it.
 */
const BUSY_INDEX_MS = 5;
/** Maximum time spent deleting old traces before the next write. */
const FORGET_MS = 100;
/**
 * Maximum number of unindexed runs. A search scans these runs one by one. Beyond this limit, writes wait for the index.
 */
const UNINDEXED_MAX = 100_000;
/** Interval between checks for traces that are too old. */
const AGE_MS = 60_000;

interface WaitingCall {
  readonly work: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Executes all writes to a store. Calls that arrive during a commit are committed together in the next commit. Each
 * call is committed completely or not at all. Between commits and when idle, indexes runs step by step and deletes
 * traces beyond the limits.
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
  #backgroundTimer: NodeJS.Timeout | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #ageTimer: NodeJS.Timeout | undefined;
  /** The changes of the current transaction. */
  #changes: TenantChange[] = [];

  constructor(
    connection: SqliteConnection,
    { prices, ...limits }: Retention & { readonly prices: Prices },
    nowMs: () => number,
    report: (change: TenantChange) => void,
  ) {
    this.#connection = connection;
    this.#nowMs = nowMs;
    this.#report = report;
    this.#writer = new SqliteWriter(connection, prices, nowMs);
    this.#index = new SqliteIndex(connection);
    this.#retention = new SqliteRetention(connection, this.#writer.counters, limits);
    this.#rest();
  }

  apply({ tenant }: Scope, operations: readonly EncodedOperation[]): Promise<void> {
    return this.#call(() => {
      this.#changed(this.#writer.apply(tenant, operations));
      this.#index.waiting += operations.length;
    });
  }

  addFeedback({ tenant }: Scope, feedback: Feedback): Promise<boolean> {
    return this.#call(() => {
      const change = this.#writer.addFeedback(tenant, feedback);
      this.#changed(change);
      return change !== undefined;
    });
  }

  addTokens({ tenant }: Scope, tokens: readonly FeedbackToken[]): Promise<void> {
    return this.#call(() => this.#writer.addTokens(tenant, tokens));
  }

  setOwner(owner: StoreOwner): Promise<void> {
    return this.#call(() => setOwner(this.#connection, owner));
  }

  /** Writes pending calls. Runs that are not indexed yet are indexed after the next start. */
  close(): void {
    clearTimer(this.#backgroundTimer);
    clearTimer(this.#ageTimer);
    while (this.#calls.length > 0) this.#commitCalls();
    clearImmediate(this.#turn);
  }

  #call<Value>(work: () => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#calls.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#turn ??= setSoon(() => this.#work());
    });
  }

  #work(): void {
    this.#turn = undefined;
    this.#commitCalls();
    this.#writtenAtMs = performance.now();
    const untilMs = performance.now() + FORGET_MS;
    while (this.#retention.isDue(this.#nowMs()) && performance.now() < untilMs) this.#background(0);
    // Indexes as many runs as arrived before further calls are accepted.
    for (let last = Number.POSITIVE_INFINITY; this.#index.waiting > UNINDEXED_MAX && this.#index.waiting < last; ) {
      last = this.#index.waiting;
      this.#background(INDEX_MS);
    }
    if (this.#calls.length > 0) this.#turn = setSoon(() => this.#work());
    this.#rest();
  }

  #rest(): void {
    clearTimer(this.#ageTimer);
    if (!this.#hasWork()) this.#ageTimer = setTimer(() => this.#rest(), AGE_MS);
    // A write does not restart the timer, because a steady stream of writes would postpone indexing forever.
    else this.#backgroundTimer ??= setTimer(() => this.#goOn(), INDEX_DELAY_MS);
  }

  /** Performs one step of background work. Pending writes run between steps. */
  #goOn(): void {
    const isBusy = performance.now() - this.#writtenAtMs < INDEX_DELAY_MS;
    this.#background(isBusy ? BUSY_INDEX_MS : INDEX_MS);
    this.#backgroundTimer = this.#hasWork() ? setTimer(() => this.#goOn(), 0) : undefined;
    this.#rest();
  }

  #hasWork(): boolean {
    return this.#index.waiting > 0 || this.#retention.isDue(this.#nowMs()) || this.#retention.isLoose;
  }

  /**
   * Deletes traces that are due for deletion. If there are none, indexes runs for up to `indexMs` milliseconds. With 0,
   * neither indexes runs nor frees pages.
   */
  #background(indexMs: number): void {
    try {
      const isDue = this.#retention.isDue(this.#nowMs());
      if (isDue || (indexMs > 0 && this.#index.waiting > 0)) {
        this.#inTransaction(() => {
          if (isDue) this.#forget();
          else this.#index.step(indexMs);
        });
      }
      if (indexMs > 0 && this.#retention.isLoose) this.#retention.shrink();
    } catch (error) {
      // The work is repeated later. If the file cannot be used, writes fail and report it.
      if (!isOfTheFile(error)) throw error;
    }
  }

  #forget(): void {
    const evicted = this.#retention.step(this.#nowMs());
    for (const tenant of new Set(evicted.map(({ tenant }) => tenant))) {
      const traces = evicted.filter((trace) => trace.tenant === tenant);
      const runs = traces.reduce((sum, trace) => sum + trace.runs, 0);
      const forgotten = { traces: traces.length, runs };
      const traceIds = traces.map(({ traceId }) => traceId);
      this.#changed({ tenant, seq: this.#writer.nextSeq(), traceIds, forgotten });
    }
  }

  #changed(change: TenantChange | undefined): void {
    if (change !== undefined) this.#changes.push(change);
  }

  #commitCalls(): void {
    const begunMs = performance.now();
    const done: (() => void)[] = [];
    const taken: WaitingCall[] = [];
    try {
      this.#inTransaction(() => {
        for (const call of this.#calls) {
          taken.push(call);
          done.push(this.#settlement(call));
          if (performance.now() - begunMs > GROUP_MS) break;
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

  /** Runs a call, and undoes it if it fails. The returned function settles its promise after the commit. */
  #settlement({ work, resolve, reject }: WaitingCall): () => void {
    const changes = this.#changes.length;
    this.#connection.exec('SAVEPOINT call');
    try {
      const value = work();
      this.#connection.exec('RELEASE call');
      this.#writer.counters.endCall(true);
      return () => resolve(value);
    } catch (error) {
      if (isOfTheFile(error)) throw error;
      this.#connection.exec('ROLLBACK TO call; RELEASE call');
      this.#writer.counters.endCall(false);
      this.#changes.length = changes;
      return () => reject(error);
    }
  }

  /** Changes are reported after the commit. */
  #inTransaction(work: () => void): void {
    this.#changes = [];
    this.#connection.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#writer.counters.endCall(true);
      this.#writer.counters.flush();
      this.#connection.exec('COMMIT');
    } catch (error) {
      this.#writer.counters.drop();
      try {
        this.#connection.exec('ROLLBACK');
      } catch {
        // SQLite itself has rolled back, as it does if the disk is full.
      }
      this.#retention.reload();
      throw error;
    }
    for (const change of this.#changes) this.#report(change);
  }
}
