import { clearTimer, setSoon, setTimer } from '../../base/timers.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import type { Prices } from './prices.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { type StoreOwner, setOwner } from './sqlite-file.ts';
import { SqliteIndex } from './sqlite-index.ts';
import { type Retention, SqliteRetention } from './sqlite-retention.ts';
import { isOfTheFile } from './sqlite-trouble.ts';
import { SqliteWriter } from './sqlite-writer.ts';
import type { StoreChange } from './store.ts';
import type { ToldRun } from './told-run.ts';

/** Further calls are taken into a transaction until it has taken so long. */
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
  readonly #tell: (change: StoreChange) => void;
  #calls: WaitingCall[] = [];
  #turn: NodeJS.Immediate | undefined;
  #backgroundTimer: NodeJS.Timeout | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #ageTimer: NodeJS.Timeout | undefined;
  /** Of the transaction at hand. */
  #changes: StoreChange[] = [];

  constructor(
    connection: SqliteConnection,
    { prices, ...limits }: Retention & { readonly prices: Prices },
    nowMs: () => number,
    tell: (change: StoreChange) => void,
  ) {
    this.#connection = connection;
    this.#nowMs = nowMs;
    this.#tell = tell;
    this.#writer = new SqliteWriter(connection, prices, nowMs);
    this.#index = new SqliteIndex(connection);
    this.#retention = new SqliteRetention(connection, limits);
    this.#rest();
  }

  apply(operations: readonly ToldRun[]): Promise<void> {
    return this.#call(() => {
      this.#changed(this.#writer.apply(operations));
      this.#index.waiting += operations.length;
    });
  }

  addFeedback(feedback: Feedback): Promise<boolean> {
    return this.#call(() => {
      const change = this.#writer.addFeedback(feedback);
      this.#changed(change);
      return change !== undefined;
    });
  }

  addTokens(tokens: readonly FeedbackToken[]): Promise<void> {
    return this.#call(() => this.#writer.addTokens(tokens));
  }

  setOwner(owner: StoreOwner): Promise<void> {
    return this.#call(() => setOwner(this.#connection, owner));
  }

  /** Writes what waits. What the index has not got to stays for the next time. */
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
    // As many as came are indexed before others may come.
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
      // What it did not do it does later. Of a file that is lost, those who write hear.
      if (!isOfTheFile(error)) throw error;
    }
  }

  #forget(): void {
    const { traceIds, runs } = this.#retention.step(this.#nowMs());
    if (traceIds.length === 0) return;
    this.#changed({ seq: this.#writer.nextSeq(), traceIds, forgotten: { traces: traceIds.length, runs } });
  }

  #changed(change: StoreChange | undefined): void {
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

  /** Does what a call asks, and undoes it if it fails; what is given back tells the caller, once all is committed. */
  #settlement({ work, resolve, reject }: WaitingCall): () => void {
    this.#connection.exec('SAVEPOINT call');
    try {
      const value = work();
      this.#connection.exec('RELEASE call');
      return () => resolve(value);
    } catch (error) {
      if (isOfTheFile(error)) throw error;
      this.#connection.exec('ROLLBACK TO call; RELEASE call');
      return () => reject(error);
    }
  }

  /** What has changed is told when it has been committed. */
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
        // SQLite has done so itself, as it does when the disk is full.
      }
      throw error;
    }
    for (const change of this.#changes) this.#tell(change);
  }
}
