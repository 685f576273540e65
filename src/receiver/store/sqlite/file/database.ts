import { RunspanError } from '../../../../base/errors.ts';
import { messageOf } from '../../../../base/text.ts';

export type SqlValue = null | number | bigint | string | Uint8Array;
export type Row = Record<string, SqlValue>;

/** The part of `DatabaseSync` that both `node:sqlite` and the SQLite package implement. */
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

/** Loads Node's SQLite if it has full-text indexes, as builds from nodejs.org since 22.16, or else the package. */
export async function loadEngine(): Promise<Engine> {
  const own = process.getBuiltinModule?.('node:sqlite') as unknown as Engine | undefined;
  if (own !== undefined && canIndexWords(own)) return own;
  try {
    return (await import('@photostructure/sqlite')) as unknown as Engine;
  } catch (cause) {
    const lack = own === undefined ? 'no built-in SQLite' : 'a SQLite without FTS5, or before 3.43';
    const message = `Node ${process.versions.node} has ${lack}: install the package @photostructure/sqlite, or use Node 22.16 or later`;
    throw new RunspanError('RUNSPAN_SQLITE_MISSING', message, { cause });
  }
}

export const WORDS_TABLE = `CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_'"
  )`;

function canIndexWords({ DatabaseSync }: Engine): boolean {
  const database = new DatabaseSync(':memory:');
  try {
    database.exec(WORDS_TABLE);
    return true;
  } catch {
    return false;
  } finally {
    database.close();
  }
}

/** Maximum number of prepared statements to cache. Filters produce many different statements. */
const STATEMENTS_MAX = 500;

/** An SQLite connection that caches prepared statements. Read all results of `each` before the next call. */
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
    // Use `get` instead of `run`, because `run` reads `last_insert_rowid`. On deletion, FTS5 sets `last_insert_rowid`
    // above 2^53, and Node 26 then throws.
    this.#statement(sql).get(...values);
  }

  insert(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  /** Updates only the changed columns of a row, because updating an index costs time. */
  update(table: string, n: number, before: Readonly<Record<string, SqlValue>>, after: typeof before): void {
    const changed = Object.entries(after).filter(([column, value]) => !isSame(before[column], value));
    if (changed.length === 0) return;
    const assignments = changed.map(([column]) => `${column} = ?`).join(', ');
    this.run(`UPDATE ${table} SET ${assignments} WHERE n = ?`, ...changed.map(([, value]) => value), n);
  }

  /** Returns the first value of the first row as a number, or 0 if there is no row. */
  number(sql: string, ...values: SqlValue[]): number {
    return Number(Object.values(this.one(sql, ...values) ?? {})[0] ?? 0);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  define(name: string, fn: (...values: SqlValue[]) => SqlValue): void {
    this.#database.function(name, { deterministic: true }, fn);
  }

  /** Call this after a function has ended a query by an error. Otherwise, `each` would fail for the same SQL. */
  forgetStatements(): void {
    this.#statements.clear();
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

/** Converts an id to 16 bytes. The bytes sort in the same order as the text. */
export function idBytes(id: string): Uint8Array {
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

export function idText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** SQLite result codes for problems with the file or the machine. See https://sqlite.org/rescode.html. */
const CODES = {
  permission: 3,
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  inputOutput: 10,
  damaged: 11,
  full: 13,
  cannotOpen: 14,
  noDatabase: 26,
} as const;
const OF_THE_FILE: readonly number[] = Object.values(CODES);
/** The messages of errors that reading a row can cause. */
const MESSAGES = new Map<unknown, number>([
  ['database is locked', CODES.busy],
  ['disk I/O error', CODES.inputOutput],
  ['database disk image is malformed', CODES.damaged],
  ['file is not a database', CODES.noDatabase],
]);

function resultCodeOf(error: unknown): number | undefined {
  const { code, errcode, message } = (error ?? {}) as { code?: unknown; errcode?: unknown; message?: unknown };
  // In version 1.2 of the SQLite package, `all` and `iterate` throw errors without `errcode`.
  if (code === 'ERR_SQLITE_ERROR' && errcode === undefined) return MESSAGES.get(message);
  // The lowest 8 bits are the result code, and the higher bits contain details.
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

export function hasCode(error: unknown, name: keyof typeof CODES): boolean {
  return resultCodeOf(error) === CODES[name];
}

/** Returns whether an error means that the file is currently unusable. */
export function isOfTheFile(error: unknown): boolean {
  return OF_THE_FILE.includes(resultCodeOf(error) ?? -1);
}

/** What to do if the disk is full. The end of the message of such an error. */
export const DISK_FULL = 'the disk is full: free some space';

/** Converts an SQLite error or a system error to a RunspanError with advice. Returns other errors unchanged. */
export function toStoreError(error: unknown, path: string): unknown {
  const { syscall } = (error ?? {}) as { syscall?: unknown };
  if (!isOfTheFile(error) && typeof syscall !== 'string') return error;
  const code = resultCodeOf(error);
  const options = { cause: error };
  if (code === CODES.damaged || code === CODES.noDatabase) return damaged(path, messageOf(error), options);
  const remedy =
    code === CODES.full ? DISK_FULL : `${messageOf(error)}: check that the folder and the file are writable`;
  return new RunspanError('RUNSPAN_STORE_FAILED', `The store ${path} cannot be used: ${remedy}`, options);
}

function damaged(path: string, problem: string, options: ErrorOptions): RunspanError {
  const message = `The store ${path} is damaged (${problem}): move it and ${path}-wal to another folder to start with an empty store, and recover its readable data with \`sqlite3 <file> .recover\``;
  return new RunspanError('RUNSPAN_STORE_INVALID', message, options);
}
