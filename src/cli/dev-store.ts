import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from '../base/env.ts';
import { RunspanError } from '../base/errors.ts';
import { messageOf, visible } from '../base/text.ts';
import { MemoryStore } from '../receiver/store/memory-store.ts';
import { checkedPrices, type Prices } from '../receiver/store/prices.ts';
import { SqliteStore } from '../receiver/store/sqlite-store.ts';
import type { Store } from '../receiver/store/store.ts';
import type { DevInvocation } from './dev-arguments.ts';

/** Said in the place of a file: runs are kept in memory. */
const MEMORY = 'memory';

/** The store of a receiver that somebody starts by hand. */
export interface DevStore {
  readonly store: Store;
  /** Where its runs are kept, as people are told. */
  readonly where: string;
  /** Whether runs are kept in memory because SQLite is not available. */
  readonly isFallback: boolean;
  /** Records the address of the receiver for other processes that find the file in use. */
  setAddress(url: string): Promise<void>;
  close(): Promise<void>;
}

/** The file that is meant where none is named; undefined when that is none, and runs are in memory. */
export function storeFile(named: string | undefined): string | undefined {
  const file = named ?? env('RUNSPAN_STORE') ?? join(homedir(), '.runspan', 'runs.db');
  return file === MEMORY ? undefined : file;
}

/** Opens the file, or, without a SQLite to read it, keeps runs in memory and says so. Throws in words for the user. */
export async function openDevStore(invocation: DevInvocation, tell: (line: string) => void): Promise<DevStore> {
  const { isInMemory, maxAgeMs, maxBytes, store: named } = invocation;
  const prices = invocation.prices === undefined ? undefined : readPrices(invocation.prices);
  const file = isInMemory ? undefined : storeFile(named);
  if (file === undefined) return inMemory(prices, false);
  const options = { ...(maxAgeMs && { maxAgeMs }), ...(maxBytes && { maxBytes }), ...(prices && { prices }) };
  try {
    const store = await SqliteStore.open(file, options);
    return {
      store,
      where: visible(file),
      isFallback: false,
      setAddress: (url) => store.setAddress(url),
      close: () => store.close(),
    };
  } catch (error) {
    if (!(error instanceof RunspanError) || error.code !== 'RUNSPAN_SQLITE_MISSING' || named !== undefined) throw error;
    tell(`runs are kept in memory only: ${error.message}`);
    return inMemory(prices, true);
  }
}

function inMemory(prices: Prices | undefined, isFallback: boolean): DevStore {
  const store = new MemoryStore(prices === undefined ? {} : { prices });
  return {
    store,
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
    throw new Error(`cannot use the prices of ${visible(file)}: ${messageOf(error)}`);
  }
}
