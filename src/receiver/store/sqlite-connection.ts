import type { Database, Row, SqlValue, Statement } from './sqlite-engine.ts';

/** Statements kept ready. Filters put together many different ones. */
const STATEMENTS_MAX = 500;

/** A database whose statements are prepared once. What `each` gives has to be read to its end before the same text is asked again. */
export class SqliteConnection {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Database) {
    this.#database = database;
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

  /** The key of the row that was inserted. */
  insert(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  /** The only value of the only row, for pragmas and counts. */
  number(sql: string, ...values: SqlValue[]): number {
    return Number(Object.values(this.one(sql, ...values) ?? {})[0] ?? 0);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  /** Makes a function that SQL can call. */
  define(name: string, fn: (...values: SqlValue[]) => SqlValue): void {
    this.#database.function(name, { deterministic: true }, fn);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #statement(sql: string): Statement {
    const ready = this.#statements.get(sql);
    if (ready !== undefined) return ready;
    if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
