import { setMaxListeners } from 'node:events';
import type { ClickHouseClient } from '@clickhouse/client';
import { RunspanError } from '../../../base/errors.ts';
import { messageOf } from '../../../base/text.ts';
import { grouped } from '../../domain/grouped.ts';
import type { Sql as SqlOf } from '../../filter/sql.ts';
import { type Store, StoreError } from '../store.ts';

export interface Param {
  readonly type: string;
  readonly value: unknown;
}

export type Sql = SqlOf<Param>;

export type InsertRow = Readonly<Record<string, unknown>>;

/** Retention may run longer and read more rows than the queries of users. */
type Purpose = 'requests' | 'retention';
const QUERY_MAX_S: Readonly<Record<Purpose, number>> = { requests: 10, retention: 3_600 };
/** Extra time that the client waits for a response, in seconds, so that the limit of ClickHouse applies first. */
const TIMEOUT_MARGIN_S = 5;
const CONNECTIONS_MAX = 20;
/** ClickHouse writes one part per day, and accepts at most 100 parts per insert. */
const DAYS_MAX = 20;

/** Limits of queries, except those of retention. */
const LIMITS = { max_memory_usage: '4000000000', max_rows_to_read: '2000000000' } as const;
const SETTINGS = {
  max_result_bytes: '256000000',
  output_format_json_quote_64bit_integers: 0,
  do_not_merge_across_partitions_select_final: 1,
  async_insert: 0,
  // Builds the text indexes when parts are merged, which takes less CPU. Until then, searches scan the new parts.
  exclude_materialize_skip_indexes_on_insert: 'by_word, by_character',
} as const;

/** A method of the store, as a function of a connection. */
export type Query<Name extends keyof Store> = (
  db: ClickHouse,
  ...args: Parameters<Store[Name]>
) => ReturnType<Store[Name]>;

/** Sends queries and inserts to a ClickHouse server. Methods reject with a `StoreError` if ClickHouse fails. */
export class ClickHouse {
  readonly #client: ClickHouseClient;
  readonly #closing = new AbortController();

  /**
   * Creates a client with the package `@clickhouse/client`. Sends no request. The URL contains the user, the password
   * and the database. Rejects with a RunspanError if the package is not installed or the URL is invalid.
   */
  static async connect(url: string, purpose: Purpose = 'requests'): Promise<ClickHouse> {
    const { ClickHouseLogLevel, createClient } = await import('@clickhouse/client').catch((error: unknown) => {
      const message =
        'A store in ClickHouse needs the package @clickhouse/client: run `npm install @clickhouse/client`';
      throw new RunspanError('RUNSPAN_STORE_FAILED', message, { cause: error });
    });
    try {
      const address = new URL(url);
      const [, database] = /^\/([^/]+)\/?$/.exec(address.pathname) ?? [];
      if (database === undefined) throw new URIError('The path is not the name of a database');
      address.pathname = '';
      const client = createClient({
        url: address,
        database: decodeURIComponent(database),
        application: 'runspan',
        // By default, the client also logs every error that it throws.
        log: { level: ClickHouseLogLevel.OFF },
        request_timeout: (QUERY_MAX_S[purpose] + TIMEOUT_MARGIN_S) * 1_000,
        max_open_connections: CONNECTIONS_MAX,
        use_multipart_params_auto: true,
        clickhouse_settings: {
          ...SETTINGS,
          ...(purpose === 'requests' && LIMITS),
          max_execution_time: QUERY_MAX_S[purpose],
        },
      });
      return new ClickHouse(client);
    } catch {
      // The error includes neither the URL nor the cause, because both may contain the password.
      throw new RunspanError(
        'RUNSPAN_INVALID_OPTION',
        'Expected the URL of a ClickHouse database, for example https://user:password@host:8443/runspan, with special characters percent-encoded',
      );
    }
  }

  private constructor(client: ClickHouseClient) {
    this.#client = client;
    // Every pending request adds a listener. With the default limit of 10, Node would warn of a memory leak.
    setMaxListeners(0, this.#closing.signal);
  }

  async rows<Row>({ sql: text, params }: Sql): Promise<Row[]> {
    const { query, query_params } = numbered(text, params);
    return await this.#attempt(async (abort_signal) => {
      const result = await this.#client.query({ query, query_params, format: 'JSONEachRow', abort_signal });
      return await result.json<Row>();
    });
  }

  /** Inserts rows into a table. Resolves when ClickHouse has acknowledged them. */
  async insert(table: string, rows: readonly InsertRow[]): Promise<void> {
    const days = [...grouped(rows, ({ day }) => day).values()];
    for (let at = 0; at < days.length; at += DAYS_MAX) {
      const values = days
        .slice(at, at + DAYS_MAX)
        .flat()
        .map(wellFormed);
      await this.#attempt((abort_signal) =>
        this.#client.insert({ table, values, format: 'JSONEachRow', abort_signal }),
      );
    }
  }

  async command({ sql: text, params }: Sql): Promise<void> {
    const { query, query_params } = numbered(text, params);
    await this.#attempt((abort_signal) => this.#client.command({ query, query_params, abort_signal }));
  }

  /** Aborts all requests. Later requests fail. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#client.close();
  }

  async #attempt<Result>(send: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    try {
      this.#closing.signal.throwIfAborted();
      return await send(this.#closing.signal);
    } catch (error) {
      throw storeErrorOf(error);
    }
  }
}

/**
 * Returns SQL text with its parameters. As a tag, the text has them in place, and other SQL with its own parameters:
 * sql`tenant = ${string(tenant)} AND ${condition}`. In a text without a tag, each `?` stands for the next part.
 */
export function sql(text: string | TemplateStringsArray, ...parts: readonly (Param | Sql | number)[]): Sql {
  const params: Param[] = [];
  const inserted = parts.map((part) => {
    if (typeof part === 'number') return part;
    params.push(...('type' in part ? [part] : part.params));
    return 'type' in part ? '?' : part.sql;
  });
  return { sql: String.raw({ raw: typeof text === 'string' ? text.split('?') : text }, ...inserted), params };
}

export const string = (value: string): Param => ({ type: 'String', value });
export const strings = (value: readonly string[]): Param => ({ type: 'Array(String)', value });
export const uuidParam = (value: string): Param => ({ type: 'UUID', value });
export const uuids = (value: readonly string[]): Param => ({ type: 'Array(UUID)', value });
export const integer = (value: number): Param => ({ type: 'Int64', value });
export const integers = (value: readonly number[]): Param => ({ type: 'Array(Int64)', value });
export const float = (value: number): Param => ({ type: 'Float64', value });

/** Maximum size of a parameter in bytes. ClickHouse rejects parameters larger than 128 KiB. */
const PARAM_BYTES_MAX = 64 * 1024;
/** Overhead per array item, in bytes: its quotes and a separator. */
const ITEM_BYTES = 4;

/** Replaces each `?` with a named parameter. Splits long arrays into several parameters. */
function numbered(text: string, params: readonly Param[]): { query: string; query_params: Record<string, unknown> } {
  const query_params: Record<string, unknown> = {};
  const add = (type: string, value: unknown): string => {
    const name = `p${Object.keys(query_params).length}`;
    query_params[name] = value;
    return `{${name}:${type}}`;
  };
  let at = 0;
  const query = text.replaceAll('?', () => {
    const { type, value } = params[at++] ?? string('');
    const parts = Array.isArray(value) ? partsOf(value) : [value];
    const names = parts.map((part) => add(type, part)).join(', ');
    return parts.length === 1 ? names : `arrayConcat(${names})`;
  });
  return { query, query_params };
}

function partsOf(items: readonly unknown[]): unknown[][] {
  let part: unknown[] = [];
  const parts = [part];
  let sizeBytes = 0;
  for (const item of items) {
    const itemBytes = Buffer.byteLength(String(item)) + ITEM_BYTES;
    if (part.length > 0 && sizeBytes + itemBytes > PARAM_BYTES_MAX) {
      part = [];
      parts.push(part);
      sizeBytes = 0;
    }
    part.push(item);
    sizeBytes += itemBytes;
  }
  return parts;
}

/** Replaces lone surrogates in all strings, because ClickHouse rejects JSON that contains them. */
function wellFormed(value: unknown): unknown {
  if (isWellFormed(value)) return value;
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(Object.entries(value as object).map(([key, own]) => [key.toWellFormed(), wellFormed(own)]));
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isWellFormed) && Object.keys(value).every((key) => key.isWellFormed());
}

/** ClickHouse error codes for temporary overload. */
const BUSY_CODES: readonly string[] = [
  '202', // TOO_MANY_SIMULTANEOUS_QUERIES
  '241', // MEMORY_LIMIT_EXCEEDED
  '252', // TOO_MANY_PARTS
];
/** ClickHouse error codes for queries that read or return too much data. */
const TOO_LARGE_CODES: readonly string[] = [
  '158', // TOO_MANY_ROWS
  '159', // TIMEOUT_EXCEEDED
  '307', // TOO_MANY_BYTES
  '396', // TOO_MANY_ROWS_OR_BYTES
];
const RETRY_AFTER_S = 5;

export class QueryLimitError extends StoreError {
  constructor() {
    super('busy', 'The query reads too much: choose a shorter time range', RETRY_AFTER_S);
  }
}

function storeErrorOf(error: unknown): StoreError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (TOO_LARGE_CODES.includes(code)) return new QueryLimitError();
  if (BUSY_CODES.includes(code)) {
    return new StoreError('busy', `ClickHouse is overloaded: ${messageOf(error)}`, RETRY_AFTER_S);
  }
  return new StoreError('unavailable', `ClickHouse failed: ${messageOf(error)}`, RETRY_AFTER_S);
}

/** Reads the data of some items, in order. If ClickHouse refuses to read as much at once, reads each half by itself. */
export async function* inParts<Item, Data>(
  items: readonly Item[],
  read: (part: readonly Item[]) => Promise<Data>,
): AsyncGenerator<Data> {
  let data: Data;
  try {
    data = await read(items);
  } catch (error) {
    if (items.length <= 1 || !(error instanceof QueryLimitError)) throw error;
    const half = Math.ceil(items.length / 2);
    yield* inParts(items.slice(0, half), read);
    yield* inParts(items.slice(half), read);
    return;
  }
  yield data;
}
