import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, resolve } from 'node:path';
import { RunspanError } from '../base/errors.ts';
import { messageOf, visible } from '../base/text.ts';
import { env } from '../config/environment.ts';
import { cacheComparison } from '../receiver/api/cache-comparison.ts';
import { savedTrace } from '../receiver/api/export/saved-trace.ts';
import { exportTrace, joined } from '../receiver/api/export/trace-export.ts';
import { hashOf } from '../receiver/domain/cost/price-table.ts';
import { checkPriceOptions, type PriceOptions, type Prices } from '../receiver/domain/cost/prices.ts';
import type { ListPage, ListQuery, Scope, Statistics, StatisticsQuery } from '../receiver/domain/query/query.ts';
import type {
  CacheComparison,
  PayloadField,
  RunDetails,
  RunOutline,
  TraceSummary,
} from '../receiver/domain/run-view.ts';
import { ALL_TIMES, parsedQuery } from '../receiver/filter/run-filter.ts';
import type { ClickHouseStore } from '../receiver/store/clickhouse/clickhouse-store.ts';
import { MemoryStore } from '../receiver/store/memory-store.ts';
import { realPathOf } from '../receiver/store/sqlite/file/file.ts';
import { SqliteStore } from '../receiver/store/sqlite/sqlite-store.ts';
import { DEFAULT_SCOPE, type Store } from '../receiver/store/store.ts';
import { CommandFailure, type Output, UsageError } from './command-line.ts';
import { counted } from './terminal-text.ts';

export const DEFAULT_PORT = 4777;

/**
 * Returns the path of the store file without symbolic links. Returns undefined for a store in memory. Throws if the store
 * is a ClickHouse database.
 */
export function storeFile(named: string | undefined): string | undefined {
  const store = named ?? env('RUNSPAN_STORE') ?? '~/.runspan/runs.db';
  if (isUrl(store)) {
    // The URL may contain a password, so the error does not show it.
    throw new UsageError(
      'expected a store file, got a URL: start `runspan serve` with the ClickHouse database, and use --url',
    );
  }
  return IN_MEMORY.includes(store) ? undefined : storeLocation(store);
}

/** Returns the URL of a store, or the path of its file without symbolic links. Throws for a store in memory. */
export function storeLocation(store: string, folder = ''): string {
  if (isUrl(store)) return store;
  if (IN_MEMORY.includes(store)) throw new UsageError(`expected a store file or a ClickHouse URL, got ${store}`);
  // Only shells expand `~`, and not in the files of systemd, Docker or `node --env-file`.
  const path = store.replace(/^~(?=\/)/, () => homedir());
  return realPathOf(resolve(folder, path));
}

/** Names of a store in memory. SQLite uses the second one. */
const IN_MEMORY: readonly string[] = ['memory', ':memory:'];

/** Returns whether a store is a URL instead of a file. Only the URL of a ClickHouse database is valid. */
export function isUrl(store: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(store);
}

/** Returns the location of a store without its user and password. */
export function shownStore(location: string): string {
  if (!isUrl(location)) return location;
  const url = new URL(location);
  return `${url.origin}${url.pathname}`;
}

/** Reports an opened store and its number of projects, calls `use`, and closes the store. */
export async function withReported<Opened extends SqliteStore | ClickHouseStore, Result>(
  location: string,
  store: Opened,
  stderr: Output,
  use: (store: Opened) => Result | Promise<Result>,
): Promise<Result> {
  try {
    let projects = 0;
    for (const tenant of await store.tenants()) projects += (await store.projects({ tenant }, ALL_TIMES)).length;
    stderr.write(`runspan: the store ${visible(shownStore(location))} with ${counted(projects, 'project')}\n`);
    return await use(store);
  } finally {
    await store.close();
  }
}

export function openStoreToRead(file: string): Promise<SqliteStore> {
  return SqliteStore.open(file, { readOnly: true });
}

/** Limits of a command that must not delete other traces. The store's receiver enforces its own limits later. */
export const NO_LIMITS: { readonly maxAgeMs: number; readonly maxBytes: number } = {
  maxAgeMs: Number.MAX_SAFE_INTEGER,
  maxBytes: Number.MAX_SAFE_INTEGER,
};

/** Reads runs from a receiver or from a file. */
export interface RunSource {
  traces(query: Pick<ListQuery, 'project' | 'filter' | 'order' | 'cursor' | 'limit'>): Promise<ListPage<TraceSummary>>;
  runs(query: Pick<ListQuery, 'filter' | 'order' | 'limit'>): Promise<ListPage<RunOutline>>;
  statistics(query: Pick<StatisticsQuery, 'project' | 'filter' | 'groupBy' | 'groups'>): Promise<Statistics>;
  outline(traceId: string): Promise<RunOutline[]>;
  details(runId: string): Promise<RunDetails | undefined>;
  payload(runId: string, field: PayloadField): Promise<string | undefined>;
  cache(runId: string): Promise<CacheComparison | undefined>;
  /** Exports a trace as JSON text, which a receiver can import. */
  exported(traceId: string): Promise<string | undefined>;
  /** Returns an HTML file that shows a trace, with secrets masked. */
  saved(traceId: string): Promise<string | undefined>;
}

export function storeSource(store: Store, scope: Scope = DEFAULT_SCOPE): RunSource {
  return {
    traces: (query) => store.traces(scope, parsedQuery(query, 'traces')),
    runs: (query) => store.list(scope, parsedQuery(query)),
    statistics: (query) => store.statistics(scope, parsedQuery(query)),
    outline: async (traceId) => (await store.outline(scope, traceId)).map((text) => JSON.parse(text)),
    details: (runId) => store.details(scope, runId),
    payload: (runId, field) => store.payload(scope, runId, field),
    cache: (runId) => cacheComparison({ store, scope }, runId),
    exported: (traceId) => exportTrace({ store, scope }, traceId),
    saved: async (traceId) => {
      const pieces = await savedTrace({ store, scope }, traceId);
      return pieces && joined(pieces);
    },
  };
}

export interface StoreOptions {
  readonly store?: string | undefined;
  readonly maxAge?: number | undefined;
  readonly maxSize?: number | undefined;
  readonly prices?: string | undefined;
}

/**
 * Opens the store file. If `file` is undefined, opens a store in memory. If SQLite is missing, a store in memory is
 * opened unless the user has named a file.
 */
export async function openStore(
  file: string | undefined,
  options: StoreOptions,
  log: (line: string) => void,
): Promise<SqliteStore | MemoryStore> {
  const { store: named = env('RUNSPAN_STORE'), maxAge, maxSize } = options;
  const prices = readPrices(options.prices);
  try {
    if (file === undefined) return new MemoryStore(prices);
    return await SqliteStore.open(file, {
      ...prices,
      ...(maxAge && { maxAgeMs: maxAge }),
      ...(maxSize && { maxBytes: maxSize }),
    });
  } catch (error) {
    if (!(error instanceof RunspanError) || error.code !== 'RUNSPAN_SQLITE_MISSING' || named !== undefined) throw error;
    log(`runs are kept in memory only: ${error.message}`);
    return new MemoryStore(prices);
  }
}

export const PRICES_OPTION =
  'JSON file with prices for runs that report no cost: a table as of genai-prices, or { "a-model": { "input": 2.5, "output": 10 } } per million tokens (default: built-in table)';

/**
 * Reads a file with prices: a table of prices in the format of genai-prices, which is an array, or prices by model name,
 * which apply instead of those in the built-in table.
 */
export function readPrices(file: string | undefined, configured?: Prices): PriceOptions {
  const own = configured && { prices: configured };
  if (file === undefined) return { ...own };
  try {
    const text = readFileSync(file, 'utf8');
    const given: unknown = JSON.parse(text);
    const options = Array.isArray(given)
      ? { priceTable: { name: `${basename(file)} ${hashOf(text)}`, providers: given } }
      : { prices: given as Prices };
    checkPriceOptions(options);
    return { ...own, ...options };
  } catch (error) {
    throw new CommandFailure(`cannot use the prices of ${visible(file)}: ${messageOf(error)}`);
  }
}
