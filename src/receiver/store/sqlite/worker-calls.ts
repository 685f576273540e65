import type { Prices } from '../prices.ts';
import { SqliteCommits } from './commits.ts';
import { loadEngine } from './database.ts';
import { toStoreError } from './errors.ts';
import { clearOwner, currentOwner, openToRead, openToWrite, type StoreOwner, setOwner } from './file.ts';
import { SqliteReader } from './reader.ts';
import type { Retention } from './retention.ts';
import type { TenantChange } from './writer.ts';

/** How a thread opens the file. */
export interface ConnectionOptions {
  readonly path: string;
  /** Undefined to read only. */
  readonly write?: Retention & { readonly prices: Prices; readonly owner: StoreOwner };
}

/** The calls to the thread that writes. */
export type WriterCalls = Pick<SqliteCommits, 'apply' | 'addFeedback' | 'addTokens' | 'setOwner'>;
/** The calls to a thread that reads. */
export type ReaderCalls = { [Name in keyof SqliteReader]: SqliteReader[Name] };

type AnyCall = (...args: readonly unknown[]) => unknown;

/** Executes the calls of a thread. */
export class CallHandler {
  readonly #target: Readonly<Record<string, AnyCall>>;
  readonly #path: string;
  readonly close: () => Promise<void>;

  static async open({ path, write }: ConnectionOptions, report: (change: TenantChange) => void): Promise<CallHandler> {
    const engine = await loadEngine();
    if (write === undefined) {
      const connection = openToRead(engine, path);
      const reader = new SqliteReader(connection, () => currentOwner(engine, path));
      return new CallHandler(reader, path, async () => connection.close());
    }
    const { connection, lock } = openToWrite(engine, path);
    const close = (): void => {
      connection.close();
      lock.release();
    };
    try {
      setOwner(connection, write.owner);
      const commits = new SqliteCommits(connection, write, Date.now, report);
      return new CallHandler(commits, path, async () => {
        commits.close();
        clearOwner(connection);
        close();
      });
    } catch (error) {
      close();
      throw toStoreError(error, path);
    }
  }

  private constructor(target: SqliteCommits | SqliteReader, path: string, close: () => Promise<void>) {
    this.#target = target as unknown as Readonly<Record<string, AnyCall>>;
    this.#path = path;
    this.close = close;
  }

  async call(name: string, args: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#target[name]?.(...args);
    } catch (error) {
      throw toStoreError(error, this.#path);
    }
  }
}
