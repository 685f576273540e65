import * as v from 'valibot';
import type { CallOptions } from '../client-options.ts';
import { endpoints, methodsOf, type Send, type Table } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, RECORD, required, TEXT, TEXTS, value } from '../schema.ts';
import type { PageRequest } from './agent-service.ts';

/** A stored value. Stored values do not belong to a thread. */
export interface StoreItem<Value = Record<string, unknown>> {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Value;
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Relevance score for the search query. */
  readonly score?: number | null;
  readonly [field: string]: unknown;
}

/** A value to store, with its namespace and key. */
export interface StorePut {
  namespace: readonly string[];
  key: string;
  value: Readonly<Record<string, unknown>>;
  /** Fields to index for search. Set `false` to index no fields. */
  index?: false | readonly string[];
  /** Lifetime of the value, in minutes. */
  ttl?: number;
}

/** Selects values by namespace, fields or text. */
export interface StoreSearch extends PageRequest {
  namespace_prefix: readonly string[];
  filter?: Readonly<Record<string, unknown>>;
  /** Text for a semantic search. Requires a server with semantic search. */
  query?: string;
}

/** Selects namespaces by prefix or suffix. */
export interface NamespaceSearch extends PageRequest {
  prefix?: readonly string[];
  suffix?: readonly string[];
  /** Maximum depth of returned namespaces. Deeper namespaces are truncated. */
  max_depth?: number;
}

/** An agent server's key-value store, which agents use as long-term memory. */
export interface AgentStore {
  /** Stores a value and replaces any value with the same namespace and key. */
  put(item: StorePut, options?: CallOptions): Promise<void>;
  /**
   * Returns a value, or undefined if it does not exist. Rejects with an ApiError if the server responds with 404
   * instead.
   */
  get<Value = Record<string, unknown>>(
    namespace: readonly string[],
    key: string,
    options?: CallOptions,
  ): Promise<StoreItem<Value> | undefined>;
  delete(namespace: readonly string[], key: string, options?: CallOptions): Promise<void>;
  search<Value = Record<string, unknown>>(filter: StoreSearch, options?: CallOptions): PageList<StoreItem<Value>>;
  namespaces(filter?: NamespaceSearch, options?: CallOptions): PageList<readonly string[]>;
}

/**
 * Validates a namespace. The names in a namespace must not contain dots, because dots separate the names in a query.
 */
const NAMESPACE = value<string[]>(
  'a list of names without dots',
  (names) => Array.isArray(names) && names.every((name) => /^[^.]+$/.test(typeof name === 'string' ? name : '')),
);

const ITEM_ID = required<Pick<StorePut, 'namespace' | 'key'>>({ namespace: NAMESPACE, key: TEXT });
const ITEM_ID_QUERY = v.pipe(
  ITEM_ID,
  v.transform(({ namespace, key }) => ({ namespace: namespace.join('.'), key })),
);
const ITEM = required<StorePut>({ namespace: NAMESPACE, key: TEXT, value: RECORD });

export const STORE: Table<AgentStore> = endpoints('store', {
  put: ['PUT /store/items', { body: ITEM, response: 'none' }],
  get: ['GET /store/items', { body: ITEM_ID_QUERY, response: 'any' }],
  delete: ['DELETE /store/items', { body: ITEM_ID, response: 'none' }],
  search: [
    'POST /store/items/search',
    { body: required<StoreSearch>({ namespace_prefix: TEXTS }), response: 'pages', listField: 'items' },
  ],
  namespaces: ['POST /store/namespaces', { body: BODY, response: 'pages', listField: 'namespaces' }],
});

export function createStore(send: Send): AgentStore {
  return {
    ...methodsOf(STORE, send),
    get: async (namespace, key, options) =>
      (await send<Promise<never>>(STORE.get, { body: { namespace, key }, options })) ?? undefined,
    delete: async (namespace, key, options) => send(STORE.delete, { body: { namespace, key }, options }),
  };
}
