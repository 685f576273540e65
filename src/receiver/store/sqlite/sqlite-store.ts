import { statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { diagnostics } from '../../../base/diagnostics.ts';
import { RunspanError } from '../../../base/errors.ts';
import { ignoreErrors } from '../../../base/guard.ts';
import { shown } from '../../../base/text.ts';
import {
  type Checks,
  checkedOptions,
  isObject,
  TRUE_OR_FALSE,
  WHOLE_FROM_1,
  wholeFrom,
} from '../../../config/checker.ts';
import { exactJson } from '../../../payload/fields.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import { checkPriceOptions, PRICE_CHECKS, type PriceOptions } from '../../domain/cost/prices.ts';
import { takeTurn } from '../../domain/in-turns.ts';
import type {
  DeletionTarget,
  ListQuery,
  RunCounts,
  RunQuery,
  Scope,
  Statistics,
  StatisticsQuery,
} from '../../domain/query/query.ts';
import { MAX_AGE_MS, PROJECT_AGES, type ProjectAges } from '../../domain/retention/ages.ts';
import { deletionOf } from '../../domain/retention/deletion.ts';
import { lagReport } from '../../domain/retention/retention-time.ts';
import type { RunOperation } from '../../domain/run-message.ts';
import { SharedLimit } from '../../domain/shared-limit.ts';
import { type Parsed, singleValueOf, valuesIn } from '../../filter/run-filter.ts';
import type { KeyStore } from '../key-store.ts';
import { type Store, type StoreChange, StoreError, type StoreStatus } from '../store.ts';
import { Subscribers, type TenantChange } from '../subscribers.ts';
import type { SqliteCommits } from './commits.ts';
import { DISK_FULL } from './file/database.ts';
import { realPathOf, type StoreOwner } from './file/file.ts';
import { type EncodedOperation, encodedOperation } from './payloads.ts';
import type { SqliteReader } from './reads/reader.ts';
import { StatisticsCache } from './statistics-cache.ts';
import { type ArgumentsOf, type ResultOf, type Thread, WorkerThread } from './threads/thread.ts';
import { type Caller, ThreadPool } from './threads/thread-pool.ts';

/** Options for a store on disk. Above a limit, the store deletes whole traces, least recently changed first. */
export interface SqliteStoreOptions extends PriceOptions {
  /**
   * Maximum age of a trace since its last change, in milliseconds. Older traces are deleted.
   * @default 2592000000 (30 days)
   */
  maxAgeMs?: number;
  /**
   * Overrides of `maxAgeMs` for individual projects, in milliseconds, by tenant and project name. The tenant of a receiver
   * without tenants is `default`. The project of a trace is the project of its root run. The ages are checked once a
   * minute.
   * @default none
   */
  projectMaxAgeMs?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /**
   * Maximum size of the database file in bytes, without the write-ahead log (WAL). Minimum: 1048576 (1 MiB).
   * @default 4294967296 (4 GiB)
   */
  maxBytes?: number;
  /** Whether to open an existing file read-only, also while another process writes to it. @default false */
  readOnly?: boolean;
}

const DEFAULTS: Required<Omit<SqliteStoreOptions, keyof PriceOptions>> = {
  maxAgeMs: MAX_AGE_MS,
  projectMaxAgeMs: {},
  maxBytes: 4 * 1024 ** 3,
  readOnly: false,
};
const CHECKS: Checks<SqliteStoreOptions> = {
  maxAgeMs: WHOLE_FROM_1,
  projectMaxAgeMs: PROJECT_AGES,
  // The file of an empty store has 0.7 MB.
  maxBytes: wholeFrom(1024 ** 2),
  ...PRICE_CHECKS,
  readOnly: TRUE_OR_FALSE,
};

/** Maximum size of pending operations, in bytes. At the limit, `apply` rejects with the reason `busy`. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024;
const DAMAGED = 'The store is damaged';
/** Interval at which the store checks for expired traces, in milliseconds. */
const AGE_MS = 60_000;
/** Minimum interval between log lines about failed writes, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;
/**
 * Where a query runs. `quick`: in the one thread for quick queries, and if it takes too long there, again as `medium`.
 * `medium`: apart from slow queries, so that they cannot delay it. `slow`: it may read all runs.
 */
type Speed = 'quick' | 'medium' | 'slow';
const MEDIUM_READERS_MAX = 1;
const SLOW_READERS_MAX = 3;
const RUNS_AT_ONCE = 100;

export type WriterCalls = Omit<SqliteCommits, 'close'>;
export type ReaderCalls = { [Name in keyof SqliteReader]: SqliteReader[Name] };
type RemoteCall<Call> = (...args: ArgumentsOf<Call>) => Promise<ResultOf<Call>>;

interface Threads {
  /** The writer thread. Undefined if the file is open read-only. */
  readonly writer?: Thread<WriterCalls>;
  /** The thread for quick queries, see `Speed`. */
  readonly reader: Thread<ReaderCalls>;
  /** Opens a thread for other queries. See `ConnectionOptions` for `ended`. */
  readonly openSlowReader: (ended: Int32Array) => Promise<Thread<ReaderCalls>>;
}

/**
 * A store that keeps runs in an SQLite file. When `apply` resolves, the runs are in the file. Stored runs survive the
 * end of the process, even a kill. After a power failure, the file is intact, but runs from the last
 * seconds may be missing. One process at a time can open the file for writing, and others can read it.
 */
export class SqliteStore implements Store {
  readonly #path: string;
  readonly #threads: Threads;
  readonly #subscribers: Subscribers;
  readonly #apply = this.#writing('apply');
  readonly #setOwner = this.#writing('setOwner');
  readonly #pools: Readonly<Record<Exclude<Speed, 'quick'>, ThreadPool<ReaderCalls>>>;
  readonly #remove = this.#writing('remove');
  readonly #cache: StatisticsCache;
  #closing: Promise<void> | undefined;
  #ageTimer: NodeJS.Timeout | undefined;
  readonly #pendingBytes = new SharedLimit(PENDING_BYTES_MAX);
  readonly #applying = new Set<Promise<number>>();
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #isDamaged = false;
  /** The open files. The writer has created the write-ahead log. */
  readonly #openFiles: string;
  /** See `lagReport`. @internal */
  lag: string | undefined;

  /**
   * Opens a store file, or creates the file and its folders. Rejects with `RUNSPAN_SQLITE_MISSING` if neither Node nor an
   * installed package contains SQLite, with `RUNSPAN_STORE_IN_USE` if another process has the file open for writing, with
   * `RUNSPAN_STORE_INVALID` if the file is damaged or not a store, and with `RUNSPAN_STORE_FAILED` if the operating system
   * denies access.
   */
  static async open(path: string, options: SqliteStoreOptions = {}): Promise<SqliteStore> {
    const { readOnly, ...limits } = { ...DEFAULTS, ...checkedOptions('the options', options, CHECKS) };
    checkPriceOptions(limits);
    if (typeof path !== 'string') {
      const problem = `Expected the path of a store to be a string, got ${shown(path)}`;
      throw new RunspanError('RUNSPAN_INVALID_OPTION', problem);
    }
    // All threads must open the same file, even if a symbolic link changes.
    const file = realPathOf(resolve(path));
    const subscribers = new Subscribers();
    const onChange = (change: TenantChange): void => subscribers.report(change);
    const onEnd = (problem: string): void =>
      diagnostics.error(`a thread of the store ${file} failed; restart the program: ${problem}`);
    const openSlowReader = (ended: Int32Array): Promise<Thread<ReaderCalls>> =>
      WorkerThread.open({ path: file, ended }, onChange, (problem) =>
        diagnostics.error(`a slow query of the store ${file} failed with its thread: ${problem}`),
      );
    const openReader = (): Promise<Thread<ReaderCalls>> => WorkerThread.open({ path: file }, onChange, onEnd);

    if (readOnly) return new SqliteStore(file, { reader: await openReader(), openSlowReader }, subscribers);
    const owner = ownOwner();
    const writer = await WorkerThread.open<WriterCalls>({ path: file, write: { ...limits, owner } }, onChange, onEnd);
    const threads = { writer, reader: await openReader(), openSlowReader };
    const store = new SqliteStore(file, threads, subscribers);
    store.checkAge();
    return store;
  }

  /** @internal */
  constructor(
    path: string,
    threads: Threads,
    subscribers: Subscribers,
    cache: StatisticsCache = new StatisticsCache(),
  ) {
    this.#path = path;
    this.#cache = cache;
    this.#threads = threads;
    this.#subscribers = subscribers;
    this.#openFiles = filesAt(path);
    this.#pools = {
      medium: new ThreadPool(threads.openSlowReader, MEDIUM_READERS_MAX),
      slow: new ThreadPool(threads.openSlowReader, SLOW_READERS_MAX),
    };
  }

  readonly attachment: Store['attachment'] = this.#reading('attachment');
  readonly outline: Store['outline'] = this.#reading('outline');
  readonly details: Store['details'] = this.#reading('details');
  readonly projectsOf: Store['projectsOf'] = this.#reading('projectsOf');
  readonly payload: Store['payload'] = this.#reading('payload');
  readonly mergedRuns: Store['mergedRuns'] = this.#reading('mergedRuns');
  readonly suggestions: Store['suggestions'] = this.#reading('suggestions');
  readonly feedback: Store['feedback'] = this.#reading('feedback');
  readonly feedbackWithId: Store['feedbackWithId'] = this.#reading('feedbackWithId');
  readonly tokenSecrets: Store['tokenSecrets'] = this.#reading('tokenSecrets');
  readonly tokensRevokedMs: Store['tokensRevokedMs'] = this.#reading('tokensRevokedMs');
  readonly traces: Store['traces'] = (scope, query) => this.#ask(speedOf(query), 'traces', scope, query);
  readonly threads: Store['threads'] = (scope, query) => this.#ask(speedOf(query), 'threads', scope, query);
  readonly list: Store['list'] = (scope, query) => this.#ask(speedOf(query), 'list', scope, query);
  readonly projects: Store['projects'] = (scope, range) => this.#ask('medium', 'projects', scope, range);
  readonly removable: Store['removable'] = (scope, target) => this.#ask('slow', 'removable', scope, target);
  readonly addFeedback: Store['addFeedback'] = (scope, given) => this.#writing('addFeedback')(scope, exactJson(given));
  readonly removeFeedback: Store['removeFeedback'] = this.#writing('removeFeedback');
  readonly addTokenSecret: Store['addTokenSecret'] = this.#writing('addTokenSecret');
  readonly revokeTokens: Store['revokeTokens'] = this.#writing('revokeTokens');
  /** @internal */
  readonly tenants: RemoteCall<ReaderCalls['tenants']> = this.#reading('tenants');
  /** @internal */
  readonly revokedTokens: RemoteCall<ReaderCalls['revokedTokens']> = this.#reading('revokedTokens');
  /** @internal */
  readonly key: KeyStore['key'] = this.#reading('key');
  /** @internal */
  readonly removed: RemoteCall<WriterCalls['removed']> = this.#writing('removed');
  /** @internal */
  readonly useKey: KeyStore['useKey'] = this.#writing('useKey');
  /** @internal */
  readonly setProjectAges: (ages: ProjectAges) => Promise<void> = this.#writing('setProjectAges');
  /** Returns the process that has the file open for writing, or undefined if there is none. */
  readonly owner: () => Promise<StoreOwner | undefined> = this.#reading('owner');

  apply(scope: Scope, operations: readonly RunOperation[]): Promise<number> {
    const applied: Promise<number> = this.#encodeAndApply(scope, operations).finally(() => {
      this.#applying.delete(applied);
    });
    this.#applying.add(applied);
    return applied;
  }

  async #encodeAndApply(scope: Scope, operations: readonly RunOperation[]): Promise<number> {
    if (operations.length > 0 && !this.#pendingBytes.admits(scope.tenant, 1)) {
      const problem = 'The receiver cannot write runs as fast as they arrive: send the runs again later';
      throw new StoreError('busy', problem, 1);
    }
    let sizeBytes = 0;
    try {
      const encoded: EncodedOperation[] = [];
      for (const operation of operations) {
        if (encoded.length > 0) await takeTurn();
        const one = encodedOperation(operation);
        sizeBytes += one.sizeBytes;
        this.#pendingBytes.add(scope.tenant, one.sizeBytes);
        encoded.push(one);
      }
      return await this.#apply(scope, encoded);
    } finally {
      this.#pendingBytes.add(scope.tenant, -sizeBytes);
    }
  }

  async statistics(scope: Scope, query: Parsed<StatisticsQuery>): Promise<Statistics> {
    const read = () => this.#ask('slow', 'statistics', scope, query);
    // Another process may delete runs of a file that is open read-only.
    const isKept = this.#threads.writer !== undefined && this.#closing === undefined;
    return isKept ? this.#cache.read(scope, query, read) : read();
  }

  async *runs(scope: Scope, query: Parsed<RunQuery>): AsyncGenerator<string> {
    // Unlike a list, an export reads all runs that match.
    const speed = namesRuns(query) ? 'quick' : 'slow';
    const keys = await this.#ask(speed, 'runKeys', scope, query);
    for (let at = 0; at < keys.length; at += RUNS_AT_ONCE) {
      yield* await this.#ask(speed, 'runTexts', scope, keys.slice(at, at + RUNS_AT_ONCE));
    }
  }

  async remove(scope: Scope, target: DeletionTarget): Promise<RunCounts> {
    return await this.#remove(deletionOf(scope, target)).finally(() => this.#cache.clear(scope.tenant));
  }

  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(scope, listener);
  }

  /** Stores the receiver's address in the file, where other processes read it. */
  setAddress(address: string): Promise<void> {
    return this.#setOwner({ ...ownOwner(), address });
  }

  /**
   * Writes a copy of the store to a new file. This or another process may write to the store at the same time. Rejects
   * with `RUNSPAN_STORE_FAILED` if the new file exists or cannot be written. A failed backup leaves no partial copy.
   */
  async backup(path: string): Promise<void> {
    return this.#ask('slow', 'backup', resolve(path));
  }

  /** Returns figures for monitoring. @internal */
  async status(): Promise<StoreStatus> {
    const [unindexedRuns, disk] = await Promise.all([
      this.#ask('quick', 'unindexedRuns').catch((error) => {
        if (this.#isDamaged) return Number.NaN;
        throw error;
      }),
      statfs(dirname(this.#path)),
    ]);
    return {
      queuedBytes: this.#pendingBytes.total,
      unindexedRuns,
      fileBytes: sizeOf(this.#path),
      walBytes: sizeOf(`${this.#path}-wal`),
      freeBytes: disk.bavail * disk.bsize,
      isDamaged: this.#isDamaged,
    };
  }

  /** Why written runs may not be readable again, without names of files. @internal */
  get fault(): string | undefined {
    if (this.#isDamaged) return DAMAGED;
    if (this.#threads.writer === undefined || filesAt(this.#path) === this.#openFiles) return undefined;
    const advice = 'put it back, or restart the receiver';
    this.#logFailure(`${this.#path} or its write-ahead log was removed or replaced: ${advice}`);
    return 'The file of the store was removed or replaced';
  }

  /** Closes the store. Resolves when all pending writes are done. Later calls return the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimer(this.#ageTimer);
    await Promise.allSettled(this.#applying);
    // Close the writer last, because the last connection moves the WAL into the file and readers cannot write.
    const readers = [this.#threads.reader, ...Object.values(this.#pools)];
    await Promise.allSettled(readers.map((reader) => reader.close()));
    await this.#threads.writer?.close();
    this.#subscribers.logDeleted();
  }

  /** Checks for expired traces now, and then once a minute. @internal */
  checkAge(): void {
    const checked = this.#threads.writer?.call('checkAge').then((lagMs) => {
      this.lag = lagReport(lagMs, this.lag);
    });
    // The next check repeats it. If the file stays unusable, the next write reports the error.
    checked?.catch(() => {});
    this.#ageTimer = setTimer(() => this.checkAge(), AGE_MS).unref();
  }

  #reading<Name extends keyof ReaderCalls>(name: Name): RemoteCall<ReaderCalls[Name]> {
    return (...args) => this.#ask('quick', name, ...args);
  }

  async #ask<Name extends keyof ReaderCalls>(
    speed: Speed,
    name: Name,
    ...given: ArgumentsOf<ReaderCalls[Name]>
  ): Promise<ResultOf<ReaderCalls[Name]>> {
    const { args, caller } = withoutSignal(given);
    if (this.#closing !== undefined) {
      throw new RunspanError('RUNSPAN_STORE_FAILED', 'The store cannot be used: it is closed');
    }
    try {
      if (speed !== 'quick') return await this.#pools[speed].call(caller, name, ...args);
      return await this.#threads.reader.call(name, ...args).catch((error) => {
        if (!(error instanceof StoreError) || error.reason !== 'busy') throw error;
        return this.#pools.medium.call(caller, name, ...args);
      });
    } catch (error) {
      this.#noteDamage(error);
      throw error;
    }
  }

  #writing<Name extends keyof WriterCalls>(name: Name): RemoteCall<WriterCalls[Name]> {
    return async (...args) => {
      const { writer } = this.#threads;
      if (writer === undefined) {
        throw new RunspanError('RUNSPAN_STORE_FAILED', `The store ${this.#path} is open read-only`);
      }
      if (this.#isDamaged) throw unavailable(DAMAGED);
      try {
        const result = await writer.call(name, ...withoutSignal(args).args);
        // Checked after the commit, because a commit to a removed file succeeds, and a reader may have found damage.
        const { fault } = this;
        if (fault !== undefined) throw unavailable(fault);
        return result;
      } catch (error) {
        throw this.#unavailable(error);
      }
    };
  }

  /** Logs why a write failed. Returns the error to throw. This error tells the client to retry. */
  #unavailable(error: unknown): unknown {
    if (!(error instanceof RunspanError)) return error;
    if (this.#noteDamage(error)) return unavailable(DAMAGED);
    this.#logFailure(error.message);
    const isFull = error.message.endsWith(DISK_FULL);
    return unavailable(isFull ? 'The disk of the store is full' : 'Runs cannot be stored at present');
  }

  #logFailure(problem: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs < LOG_INTERVAL_MS) return;
    this.#loggedAtMs = nowMs;
    diagnostics.error(`runs cannot be stored: ${problem}`);
  }

  /** Returns whether an error means that the file is damaged. Logs the first such error. */
  #noteDamage(error: unknown): boolean {
    if (!(error instanceof RunspanError) || error.code !== 'RUNSPAN_STORE_INVALID') return false;
    if (!this.#isDamaged && this.#threads.writer !== undefined) {
      diagnostics.error(`the receiver stores no more runs: ${error.message}`);
    }
    this.#isDamaged = true;
    return true;
  }
}

/** A query is quick if it names runs or traces, or if an index may return its results in order. */
function speedOf(query: Parsed<RunQuery & ListQuery>): Speed {
  const { conditions, search } = query.filter;
  const isIndexed =
    search === undefined &&
    conditions.every((node) => QUICK_FIELDS.some((field) => singleValueOf(node, field) !== undefined));
  const isOrdered = query.sort === undefined || query.sort === 'start_time';
  return namesRuns(query) || (isIndexed && isOrdered) ? 'quick' : 'slow';
}

/** Returns whether a query finds only runs whose ids, or the ids of whose traces, it contains. */
function namesRuns({ filter }: Parsed<RunQuery>): boolean {
  return (valuesIn(filter, 'run') ?? valuesIn(filter, 'trace')) !== undefined;
}

/** Removes the signal from the scope in the arguments of a call, because threads cannot receive signals. */
function withoutSignal<Args extends readonly unknown[]>(args: Args): { args: Args; caller: Caller } {
  const [first, ...others] = args;
  if (!isObject(first) || !('tenant' in first)) return { args, caller: { tenant: '' } };
  const { signal, ...scope } = first as unknown as Scope;
  return { args: [scope, ...others] as unknown as Args, caller: { tenant: scope.tenant, signal } };
}

function unavailable(problem: string): StoreError {
  return new StoreError('unavailable', `${problem}: see the log of the receiver`, 10);
}

/** Identifies the files that are at the path of a store and of its write-ahead log. */
function filesAt(path: string): string {
  const found = ignoreErrors(() => [path, `${path}-wal`].map((file) => statSync(file, { bigint: true })));
  return found?.map(({ dev, ino }) => `${dev}/${ino}`).join() ?? 'missing';
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function ownOwner(): StoreOwner {
  return { pid: process.pid, started_at: new Date().toISOString() };
}

/** Fields for which an index returns runs in chronological order. For other fields, a query may scan many runs. */
const QUICK_FIELDS = ['name', 'model', 'status', 'thread', 'user'] as const;
