import { RunspanError } from '../base/errors.ts';

export type SqlValue = null | number | bigint | string | Uint8Array;
export type Row = Record<string, SqlValue>;

/** The part of `DatabaseSync` that is used, which Node's own module and the package have alike. */
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  function(name: string, options: { deterministic: boolean }, fn: (...values: SqlValue[]) => SqlValue): void;
  close(): void;
}

export interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
  iterate(...values: SqlValue[]): Iterable<Row>;
}

export interface Engine {
  readonly DatabaseSync: new (path: string, options?: { readOnly?: boolean }) => Database;
}

/** Node's own SQLite where it has one that needs no flag, from 22.13 on, else that of the package. */
export async function loadEngine(): Promise<Engine> {
  const own = process.getBuiltinModule?.('node:sqlite') as unknown as Engine | undefined;
  if (own !== undefined) return own;
  try {
    return (await import('@photostructure/sqlite')) as unknown as Engine;
  } catch (cause) {
    const message = `Node ${process.versions.node} has no SQLite of its own: install the package @photostructure/sqlite, or use Node from 22.13 on`;
    throw new RunspanError('RUNSPAN_SQLITE_MISSING', message, { cause });
  }
}
