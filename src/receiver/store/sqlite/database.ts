import { RunspanError } from '../../../base/errors.ts';

export type SqlValue = null | number | bigint | string | Uint8Array;
export type Row = Record<string, SqlValue>;

/** The part of `DatabaseSync` that Node's own module and the SQLite package have in common. */
interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  function(name: string, options: { deterministic: boolean }, fn: (...values: SqlValue[]) => SqlValue): void;
  close(): void;
}

interface Statement {
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

/** Maximum number of prepared statements. Filters produce many different statements. */
const STATEMENTS_MAX = 500;

/** A database that prepares each statement once. A result of `each` must be read to its end before the next call. */
export class SqliteConnection {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();

  constructor({ DatabaseSync }: Engine, path: string, options: { readonly readOnly?: boolean } = {}) {
    this.#database = new DatabaseSync(path, options);
  }

  one<Found = Row>(sql: string, ...values: SqlValue[]): Found | undefined {
    return this.#statement(sql).get(...values) as Found | undefined;
  }

  all<Found = Row>(sql: string, ...values: SqlValue[]): Found[] {
    return this.#statement(sql).all(...values) as Found[];
  }

  each<Found = Row>(sql: string, ...values: SqlValue[]): Iterable<Found> {
    return this.#statement(sql).iterate(...values) as Iterable<Found>;
  }

  run(sql: string, ...values: SqlValue[]): void {
    // `Statement.run` reads `last_insert_rowid`, which FTS5 sets to a value beyond 2^53 on deletion. Node 26 then throws.
    this.#statement(sql).get(...values);
  }

  /** Returns the key of the inserted row. */
  insert(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  /** Updates the columns of a row that have changed, because each index on a column costs time. */
  update(table: string, n: number, before: Readonly<Record<string, SqlValue>>, after: typeof before): void {
    const changed = Object.entries(after).filter(([column, value]) => !isSame(before[column], value));
    if (changed.length === 0) return;
    const assignments = changed.map(([column]) => `${column} = ?`).join(', ');
    this.run(`UPDATE ${table} SET ${assignments} WHERE n = ?`, ...changed.map(([, value]) => value), n);
  }

  /** Returns the first value of the first row as a number, or 0. */
  number(sql: string, ...values: SqlValue[]): number {
    return Number(Object.values(this.one(sql, ...values) ?? {})[0] ?? 0);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  /** Defines an SQL function. */
  define(name: string, fn: (...values: SqlValue[]) => SqlValue): void {
    this.#database.function(name, { deterministic: true }, fn);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function isSame(a: SqlValue | undefined, b: SqlValue): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return a === b;
}

/** Returns the 16 bytes of an id, which sort as the text of the id does. */
export function idBytes(id: string): Uint8Array {
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

export function idText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
