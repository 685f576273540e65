import type { Prices } from './prices.ts';
import { SqliteCommits } from './sqlite-commits.ts';
import { loadEngine } from './sqlite-engine.ts';
import { clearOwner, currentOwner, openToRead, openToWrite, type StoreOwner, setOwner } from './sqlite-file.ts';
import { SqliteReader } from './sqlite-reader.ts';
import type { Retention } from './sqlite-retention.ts';
import { troubleOf } from './sqlite-trouble.ts';
import type { StoreChange } from './store.ts';

/** What a thread is to do with the file of a store: to write, of which there is one, or to read. */
export interface DeskOptions {
  readonly path: string;
  /** Absent for a desk that reads. */
  readonly write?: Retention & { readonly prices: Prices; readonly owner: StoreOwner };
}

/** What a desk that writes is asked. */
export type WriterCalls = Pick<SqliteCommits, 'apply' | 'addFeedback' | 'addTokens' | 'setOwner'>;
/** What a desk that reads is asked. */
export type ReaderCalls = { [Name in keyof SqliteReader]: SqliteReader[Name] };

type AnyCall = (...args: readonly unknown[]) => unknown;

/** Where a thread that has the file of a store open takes what is asked of it. */
export class Desk {
  readonly #target: Readonly<Record<string, AnyCall>>;
  readonly #path: string;
  readonly #close: () => Promise<void>;

  static async open({ path, write }: DeskOptions, tell: (change: StoreChange) => void): Promise<Desk> {
    const engine = await loadEngine();
    if (write === undefined) {
      const connection = openToRead(engine, path);
      const reader = new SqliteReader(connection, () => currentOwner(engine, path));
      return new Desk(reader, path, async () => connection.close());
    }
    const { connection, lock } = openToWrite(engine, path);
    const close = (): void => {
      connection.close();
      lock.release();
    };
    try {
      setOwner(connection, write.owner);
      const commits = new SqliteCommits(connection, write, Date.now, tell);
      return new Desk(commits, path, async () => {
        commits.close();
        clearOwner(connection);
        close();
      });
    } catch (error) {
      close();
      throw troubleOf(error, path);
    }
  }

  private constructor(target: SqliteCommits | SqliteReader, path: string, close: () => Promise<void>) {
    this.#target = target as unknown as Readonly<Record<string, AnyCall>>;
    this.#path = path;
    this.#close = close;
  }

  async answer(method: string, args: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#target[method]?.(...args);
    } catch (error) {
      throw troubleOf(error, this.#path);
    }
  }

  close(): Promise<void> {
    return this.#close();
  }
}
