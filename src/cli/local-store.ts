import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from '../base/env.ts';
import { RunspanError } from '../base/errors.ts';
import { messageOf, visible } from '../base/text.ts';
import type { ListQuery, Page } from '../receiver/query/query.ts';
import { exportTrace } from '../receiver/query/trace-export.ts';
import { MemoryStore } from '../receiver/store/memory-store.ts';
import { checkedPrices, type Prices } from '../receiver/store/prices.ts';
import { ranged } from '../receiver/store/run-filter.ts';
import type { PayloadField, RunDetails, RunOutline, RunSummary, TraceSummary } from '../receiver/store/run-view.ts';
import { SqliteStore } from '../receiver/store/sqlite/sqlite-store.ts';
import { DEFAULT_SCOPE, type RunOperation, type Scope, type Store, type StoreChange } from '../receiver/store/store.ts';
import { CommandFailure } from './command-line.ts';

export const DEFAULT_PORT = 4777;

/** This value of `RUNSPAN_STORE` selects a store in memory. */
const MEMORY = 'memory';

export interface DevStoreOptions {
  readonly store?: string | undefined;
  readonly memory?: boolean | undefined;
  readonly maxAge?: number | undefined;
  readonly maxSize?: number | undefined;
  readonly prices?: string | undefined;
}

/** The store of `runspan dev`. */
export interface DevStore {
  readonly store: Store;
  /** The file, or a description of the store in memory. */
  readonly where: string;
  /** Whether the runs are kept in memory because Node has no SQLite. */
  readonly isFallback: boolean;
  /** Records the address of the receiver for other processes that find the file in use. */
  setAddress(url: string): Promise<void>;
  close(): Promise<void>;
}

/** Returns the file of the store, or undefined if the store is in memory. */
export function storeFile(named: string | undefined): string | undefined {
  const file = named ?? env('RUNSPAN_STORE') ?? join(homedir(), '.runspan', 'runs.db');
  return file === MEMORY ? undefined : file;
}

/** Opens the file. Without SQLite, and if the option names no file, logs a line and keeps the runs in memory. */
export async function openDevStore(options: DevStoreOptions, log: (line: string) => void): Promise<DevStore> {
  const { maxAge, maxSize, store: named } = options;
  const prices = options.prices === undefined ? undefined : readPrices(options.prices);
  const file = options.memory ? undefined : storeFile(named);
  if (file === undefined) return inMemory(prices, false);
  try {
    const store = await SqliteStore.open(file, {
      ...(maxAge && { maxAgeMs: maxAge }),
      ...(maxSize && { maxBytes: maxSize }),
      ...(prices && { prices }),
    });
    return {
      store,
      where: visible(file),
      isFallback: false,
      setAddress: (url) => store.setAddress(url),
      close: () => store.close(),
    };
  } catch (error) {
    if (!(error instanceof RunspanError) || error.code !== 'RUNSPAN_SQLITE_MISSING' || named !== undefined) throw error;
    log(`runs are kept in memory only: ${error.message}`);
    return inMemory(prices, true);
  }
}

function inMemory(prices: Prices | undefined, isFallback: boolean): DevStore {
  return {
    store: new MemoryStore(prices && { prices }),
    where: 'memory, until the receiver ends',
    isFallback,
    setAddress: async () => {},
    close: async () => {},
  };
}

function readPrices(file: string): Prices {
  try {
    return checkedPrices(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new CommandFailure(`cannot use the prices of ${visible(file)}: ${messageOf(error)}`);
  }
}

/** Reads runs from a receiver or from a file. */
export interface RunSource {
  traces(query: ListQuery): Promise<Page<TraceSummary>>;
  list(query: ListQuery): Promise<Page<RunSummary>>;
  outline(traceId: string): Promise<RunOutline[]>;
  details(runId: string): Promise<RunDetails | undefined>;
  payload(runId: string, field: PayloadField): Promise<string | undefined>;
  /** Returns a trace as JSON text that can be imported. */
  exported(traceId: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Reads runs from a file. */
export async function openFileSource(file: string): Promise<RunSource> {
  const store = await SqliteStore.open(file, { readOnly: true });
  return {
    traces: (query) => store.traces(DEFAULT_SCOPE, ranged(query)),
    list: (query) => store.list(DEFAULT_SCOPE, ranged(query)),
    outline: (traceId) => store.outline(DEFAULT_SCOPE, traceId),
    details: (runId) => store.details(DEFAULT_SCOPE, runId),
    payload: (runId, field) => store.payload(DEFAULT_SCOPE, runId, field),
    exported: (traceId) => exportTrace(store, DEFAULT_SCOPE, traceId),
    close: () => store.close(),
  };
}

/** Writes a copy of the store to `to`. */
export async function copyStore(from: string, to: string): Promise<void> {
  const store = await SqliteStore.open(from, { readOnly: true });
  try {
    await store.backup(to);
  } finally {
    await store.close();
  }
}

/** Passes each received record on, counts it, and stores nothing. */
export class AuditStore extends MemoryStore {
  readonly counts = { posts: 0, patches: 0, attachments: 0, bytes: 0 };
  readonly #show: (operation: RunOperation) => void;
  readonly #listeners = new Set<(change: StoreChange) => void>();

  constructor(show: (operation: RunOperation) => void) {
    super();
    this.#show = show;
  }

  override async apply(_scope: Scope, operations: readonly RunOperation[]): Promise<void> {
    for (const operation of operations) {
      this.counts[operation.kind === 'post' ? 'posts' : 'patches'] += 1;
      this.counts.attachments += operation.attachments.length;
      this.counts.bytes += recordBytes(operation);
      this.#show(operation);
    }
    for (const listener of this.#listeners) listener({ cursor: '0', traceIds: [] });
  }

  override subscribe(_scope: Scope, listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** Returns the bytes of the fields as JSON and of the attachments. */
export function recordBytes({ fields, attachments }: RunOperation): number {
  const sizes = Object.values(fields).map((value) => Buffer.byteLength(JSON.stringify(value)));
  return [...sizes, ...attachments.map(({ bytes }) => bytes.length)].reduce((sum, size) => sum + size, 0);
}

/** The last request of a command may arrive after the command has ended. */
const IDLE_MS = 300;
/** Limits the wait if another program keeps sending. */
const IDLE_WAIT_MAX_MS = 2_000;

/** Resolves when no runs have arrived for a moment. */
export function waitForIdle(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      unsubscribe();
      clearTimeout(idle);
      clearTimeout(limit);
      resolve();
    };
    const idle = setTimeout(finish, IDLE_MS);
    const limit = setTimeout(finish, IDLE_WAIT_MAX_MS);
    const unsubscribe = store.subscribe(DEFAULT_SCOPE, () => void idle.refresh());
  });
}
