import * as v from 'valibot';
import type { CallOptions } from '../client-options.ts';
import { endpoints, methodsOf, type Send } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, RECORD, required, TEXT, TEXTS, value } from '../schema.ts';
import type { PageRequest } from './agent-service.ts';

/** A stored value, which does not belong to a thread. */
export interface StoreItem<Value = Record<string, unknown>> {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Value;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Relevance to the search query. */
  readonly score?: number | null;
  readonly [field: string]: unknown;
}

export interface StorePut {
  namespace: readonly string[];
  key: string;
  value: Readonly<Record<string, unknown>>;
  /** Fields to index for searches. `false` indexes none. */
  index?: false | readonly string[];
  /** Minutes until the value is deleted. */
  ttl?: number;
}

export interface StoreSearch extends PageRequest {
  namespace_prefix: readonly string[];
  filter?: Readonly<Record<string, unknown>>;
  /** Text for a semantic search, if the server supports it. */
  query?: string;
}

export interface NamespaceSearch extends PageRequest {
  prefix?: readonly string[];
  suffix?: readonly string[];
  /** Maximum number of names in a namespace. Longer namespaces are truncated. */
  max_depth?: number;
}

/** The long-term memory of an agent server. */
export interface Store {
  /** Stores a value. Replaces any value with the same namespace and key. */
  put(item: StorePut, options?: CallOptions): Promise<void>;
  /** Returns undefined if the server reports that there is no value. Some servers respond with 404 instead. */
  get<Value = Record<string, unknown>>(
    namespace: readonly string[],
    key: string,
    options?: CallOptions,
  ): Promise<StoreItem<Value> | undefined>;
  delete(namespace: readonly string[], key: string, options?: CallOptions): Promise<void>;
  search<Value = Record<string, unknown>>(filter: StoreSearch, options?: CallOptions): PageList<StoreItem<Value>>;
  namespaces(filter?: NamespaceSearch, options?: CallOptions): PageList<readonly string[]>;
}

/** Names must not contain dots, because a query separates names by dots. */
const NAMESPACE = value<string[]>(
  'a list of names without dots',
  (names) => Array.isArray(names) && names.every((name) => /^[^.]+$/.test(typeof name === 'string' ? name : '')),
);

const PLACE = required<Pick<StorePut, 'namespace' | 'key'>>({ namespace: NAMESPACE, key: TEXT });
const PLACE_QUERY = v.pipe(
  PLACE,
  v.transform(({ namespace, key }) => ({ namespace: namespace.join('.'), key })),
);
const ITEM = required<StorePut>({ namespace: NAMESPACE, key: TEXT, value: RECORD });

const STORE = endpoints<Store>('store', {
  put: ['PUT /store/items', { body: ITEM, response: 'none' }],
  get: ['GET /store/items', { body: PLACE_QUERY, response: 'any' }],
  delete: ['DELETE /store/items', { body: PLACE, response: 'none' }],
  search: [
    'POST /store/items/search',
    { body: required<StoreSearch>({ namespace_prefix: TEXTS }), response: 'pages', listField: 'items' },
  ],
  namespaces: ['POST /store/namespaces', { body: BODY, response: 'pages', listField: 'namespaces' }],
});

export function storeOf(send: Send): Store {
  return {
    ...methodsOf(STORE, send),
    get: async (namespace, key, options) =>
      (await send<Promise<never>>(STORE.get, { body: { namespace, key }, options })) ?? undefined,
    delete: async (namespace, key, options) => send(STORE.delete, { body: { namespace, key }, options }),
  };
}
