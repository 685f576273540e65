import { RunspanError } from '../../base/errors.ts';

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

/** Loads Node's built-in SQLite if it has FTS5 (nodejs.org builds do since 22.16), otherwise the SQLite package. */
export async function loadEngine(): Promise<Engine> {
  const own = process.getBuiltinModule?.('node:sqlite') as unknown as Engine | undefined;
  if (own !== undefined && hasFts5(own)) return own;
  try {
    return (await import('@photostructure/sqlite')) as unknown as Engine;
  } catch (cause) {
    const lack = own === undefined ? 'no built-in SQLite' : 'a SQLite without FTS5';
    const message = `Node ${process.versions.node} has ${lack}: install the package @photostructure/sqlite, or use Node 22.16 or later`;
    throw new RunspanError('RUNSPAN_SQLITE_MISSING', message, { cause });
  }
}

function hasFts5({ DatabaseSync }: Engine): boolean {
  const database = new DatabaseSync(':memory:');
  try {
    return database.prepare("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").get() !== undefined;
  } finally {
    database.close();
  }
}
