import * as v from 'valibot';
import { isObject } from '../../base/options.ts';
import type { CallOptions } from '../client-options.ts';
import type { Endpoint } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { RECORD, request, TEXT, TEXTS, value, whole } from '../schema.ts';
import { type AgentService, PAGE, type PageRequest } from './agent-service.ts';

/** A stored value. Values outlive threads. */
export interface StoreItem<Value = Record<string, unknown>> {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Value;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Relevance for the query of a search. */
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
  /** Text of a semantic search, if the server supports it. */
  query?: string;
}

export interface NamespaceSearch extends PageRequest {
  prefix?: readonly string[];
  suffix?: readonly string[];
  /** Maximum names of a namespace. Longer namespaces are truncated. */
  max_depth?: number;
}

/** A dot separates names in a query. */
const NAMESPACE = value<string[]>(
  'a list of names without dots',
  (names) => Array.isArray(names) && names.every((name) => /^[^.]+$/.test(typeof name === 'string' ? name : '')),
);

type Place = Pick<StorePut, 'namespace' | 'key'>;

const PLACE = request<Place>({ namespace: NAMESPACE, key: TEXT }, {});

const ITEMS = '/store/items';

const ENDPOINTS = {
  put: {
    name: 'store.put',
    method: 'PUT',
    path: ITEMS,
    response: 'none',
    body: request<StorePut>(
      { namespace: NAMESPACE, key: TEXT, value: RECORD },
      {
        index: value<string[]>('false or a list of texts', (index) => index === false || Array.isArray(index)),
        ttl: value<number>('a number above 0', (ttl) => Number.isFinite(ttl) && (ttl as number) > 0),
      },
    ),
  },
  get: {
    name: 'store.get',
    method: 'GET',
    path: ITEMS,
    response: 'any',
    body: v.pipe(
      PLACE,
      v.transform(({ namespace, key }) => ({ namespace: namespace.join('.'), key })),
    ),
  },
  delete: { name: 'store.delete', method: 'DELETE', path: ITEMS, response: 'none', body: PLACE },
  search: {
    name: 'store.search',
    method: 'POST',
    path: `${ITEMS}/search`,
    body: request<StoreSearch>({ namespace_prefix: TEXTS }, { ...PAGE, filter: RECORD, query: TEXT }),
  },
  namespaces: {
    name: 'store.namespaces',
    method: 'POST',
    path: '/store/namespaces',
    body: request<NamespaceSearch>({}, { ...PAGE, prefix: TEXTS, suffix: TEXTS, max_depth: whole(1, 1_000) }),
  },
} satisfies Record<string, Endpoint>;

/** The long-term memory of an agent server. */
export class Store {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Stores a value. Replaces the value with the same namespace and key. */
  async put(item: StorePut, options?: CallOptions): Promise<void> {
    return this.#service.call(ENDPOINTS.put, { body: item, options });
  }

  /** Returns undefined if the server responds that there is no value. Other servers respond with 404. */
  async get<Value = Record<string, unknown>>(
    namespace: readonly string[],
    key: string,
    options?: CallOptions,
  ): Promise<StoreItem<Value> | undefined> {
    const body = { namespace, key };
    const item = await this.#service.call<StoreItem<Value> | null>(ENDPOINTS.get, { body, options });
    return item ?? undefined;
  }

  async delete(namespace: readonly string[], key: string, options?: CallOptions): Promise<void> {
    return this.#service.call(ENDPOINTS.delete, { body: { namespace, key }, options });
  }

  search<Value = Record<string, unknown>>(filter: StoreSearch, options?: CallOptions): PageList<StoreItem<Value>> {
    return this.#service.list(ENDPOINTS.search, { body: filter, options }, (data) => fieldOf(data, 'items'));
  }

  namespaces(filter: NamespaceSearch = {}, options?: CallOptions): PageList<readonly string[]> {
    // Some servers respond with the list itself.
    const listOf = (data: unknown): unknown => (Array.isArray(data) ? data : fieldOf(data, 'namespaces'));
    return this.#service.list(ENDPOINTS.namespaces, { body: filter, options }, listOf);
  }
}

function fieldOf(data: unknown, field: string): unknown {
  return isObject(data) ? data[field] : undefined;
}
