import { Client, type ClientConfig, Pool, types } from 'pg';
import { type Database, type Query, StoreError, unusableStore } from './database.ts';
import { saverTables } from './saver.ts';
import { STORE_TABLES } from './schema.ts';

const SCHEMA = 'chat';
const CHANNEL = 'chat_wake';
/** Number of the advisory lock that an instance holds while it creates the tables. The number must never change. */
const LOCK = 7_202_611_204;
const VERSION = 4;
const CONNECTIONS_MAX = 10;
const RECONNECT_MS = 1_000;
/** Interval of a query that detects a dead connection, which would otherwise go unnoticed. */
const CHECK_MS = 10_000;

// 64-bit integers are parsed as numbers: event numbers and times in milliseconds are within the safe integers.
types.setTypeParser(types.builtins.INT8, Number);

/** A PostgreSQL database that several instances share. Instances exchange messages by LISTEN and NOTIFY. */
export class PostgresDatabase implements Database {
  readonly nowMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
  readonly #config: ClientConfig;
  readonly #pool: Pool;
  #listener: Client | undefined;
  #isClosed = false;
  #retry: NodeJS.Timeout | undefined;
  #onMessage: (message: string | undefined) => void = () => {};
  readonly #check: NodeJS.Timeout;

  /** Connects to the database and creates missing tables. Instances that start at the same time wait for each other. */
  static async open(url: string): Promise<PostgresDatabase> {
    const database = new PostgresDatabase(url);
    try {
      await database.#prepare();
      await database.#connectListener();
      return database;
    } catch (error) {
      await database.close();
      const { host, pathname } = new URL(url);
      throw unusableStore(`PostgreSQL at ${host}${pathname}`, error);
    }
  }

  private constructor(url: string) {
    this.#config = {
      connectionString: url,
      options: `-c search_path=${SCHEMA}`,
      application_name: 'runspan chat',
      connectionTimeoutMillis: 5_000,
      query_timeout: 10_000,
      keepAlive: true,
    };
    this.#pool = new Pool({ ...this.#config, max: CONNECTIONS_MAX, maxLifetimeSeconds: 600 });
    // Without this listener, a broken connection would end the process.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => void client.on('error', () => {}));
    this.#check = setInterval(() => void this.#listener?.query('SELECT 1').catch(() => this.#reconnect()), CHECK_MS);
    this.#check.unref();
  }

  readonly query: Query = async <Row>(sql: string, ...values: readonly unknown[]) =>
    (await this.#pool.query(sql, [...values])).rows as Row[];

  async transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(async (sql, ...values) => (await client.query(sql, [...values])).rows);
      await client.query('COMMIT');
      client.release();
      return result;
    } catch (error) {
      // If the rollback fails, the connection is broken and must not be returned to the pool.
      const rollback = await client.query('ROLLBACK').catch((failure: Error) => failure);
      client.release(rollback instanceof Error ? rollback : undefined);
      throw error;
    }
  }

  async notify(message: string, query: Query = this.query): Promise<void> {
    await query('SELECT pg_notify($1, $2)', CHANNEL, message);
  }

  listen(onMessage: (message: string | undefined) => void): void {
    this.#onMessage = onMessage;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#check);
    clearTimeout(this.#retry);
    await Promise.allSettled([this.#listener?.end(), this.#pool.end()]);
  }

  async #prepare(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
      await client.query('CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY)');
      const { rows } = await client.query('SELECT coalesce(max(version), 0) AS version FROM migrations');
      const version: number = rows[0].version;
      if (version !== 0 && version !== VERSION)
        throw new StoreError(`The tables have version ${version}. This application needs version ${VERSION}.`);
      if (version === 0)
        await client.query(
          `BEGIN; ${saverTables('BYTEA')} ${STORE_TABLES} INSERT INTO migrations VALUES (${VERSION}); COMMIT`,
        );
    } finally {
      // Closing the connection releases the lock and ends a failed transaction.
      client.release(true);
    }
  }

  async #connectListener(): Promise<void> {
    const client = new Client(this.#config);
    client.on('error', () => {});
    client.on('end', () => this.#reconnect());
    client.on('notification', ({ payload }) => this.#onMessage(payload ?? ''));
    this.#listener = client;
    await client.connect();
    await client.query(`LISTEN ${CHANNEL}`);
  }

  /**
   * Tries to reconnect until it succeeds. Messages sent in the meantime are lost, so all listeners are woken
   * afterwards.
   */
  #reconnect(): void {
    const client = this.#listener;
    if (client === undefined || this.#isClosed) return;
    this.#listener = undefined;
    client.end().catch(() => {});
    this.#retry = setTimeout(() => {
      this.#connectListener().then(
        () => this.#onMessage(undefined),
        () => this.#reconnect(),
      );
    }, RECONNECT_MS).unref();
  }
}
