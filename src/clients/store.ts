import { wholeFrom } from '../base/options.ts';
import type { AgentService } from './agent-service.ts';
import { type BodyRules, checkedBody, OBJECT, required, TEXT, TEXTS } from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import type { PageList } from './page.ts';
import { PAGE_RULES, type PageRequest } from './page-request.ts';

/** A value that outlives threads, under a key of a namespace. */
export interface StoreItem<Value = Record<string, unknown>> {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Value;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  /** How well it fits the query of a search, where there was one. */
  readonly score?: number | null;
  readonly [field: string]: unknown;
}

export interface StorePut {
  namespace: readonly string[];
  key: string;
  value: Readonly<Record<string, unknown>>;
  /** The fields that can be searched; false for none. */
  index?: false | readonly string[];
  /** Minutes until it goes. */
  ttl?: number;
}

export interface StoreSearch extends PageRequest {
  namespace_prefix: readonly string[];
  filter?: Readonly<Record<string, unknown>>;
  /** In words, where the server can search by meaning. */
  query?: string;
}

export interface NamespaceSearch extends PageRequest {
  prefix?: readonly string[];
  suffix?: readonly string[];
  /** Longer ones are cut to so many names. */
  max_depth?: number;
}

/** The long-term memory of an agent server. */
export class Store {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Keeps a value in the place of what was under its key. */
  async put(item: StorePut, options?: CallOptions): Promise<void> {
    const name = 'store.put';
    const body = checkedBody(name, item, PUT_RULES);
    return this.#service.none({ name, method: 'PUT', path: '/store/items', body, options });
  }

  /** Undefined where a server answers that there is none; others answer with 404. */
  async get<Value = Record<string, unknown>>(
    namespace: readonly string[],
    key: string,
    options?: CallOptions,
  ): Promise<StoreItem<Value> | undefined> {
    const name = 'store.get';
    checkedBody(name, { namespace, key }, PLACE_RULES);
    // Names have no dots, so that all servers read a namespace that is joined by them.
    const query = { namespace: namespace.join('.'), key };
    const call = { name, method: 'GET', path: '/store/items', query, options } as const;
    const item = await this.#service.json<StoreItem<Value> | null>(call, 'any');
    return item ?? undefined;
  }

  async delete(namespace: readonly string[], key: string, options?: CallOptions): Promise<void> {
    const name = 'store.delete';
    const body = checkedBody(name, { namespace, key }, PLACE_RULES);
    return this.#service.none({ name, method: 'DELETE', path: '/store/items', body, options });
  }

  search<Value = Record<string, unknown>>(filter: StoreSearch, options?: CallOptions): PageList<StoreItem<Value>> {
    const name = 'store.search';
    const items = (data: unknown) => (data as { readonly items?: unknown } | null | undefined)?.items;
    return this.#service.list(() => {
      const body = checkedBody(name, filter, SEARCH_RULES);
      return { name, method: 'POST', path: '/store/items/search', body, options };
    }, items);
  }

  namespaces(filter: NamespaceSearch = {}, options?: CallOptions): PageList<readonly string[]> {
    const name = 'store.namespaces';
    return this.#service.list(() => {
      const body = checkedBody(name, filter, NAMESPACE_RULES);
      return { name, method: 'POST', path: '/store/namespaces', body, options };
    }, namespacesOf);
  }
}

/** Some servers give the list itself. */
function namespacesOf(data: unknown): unknown {
  return Array.isArray(data) ? data : (data as { readonly namespaces?: unknown } | null | undefined)?.namespaces;
}

const NAMESPACE: BodyRules<{ namespace: readonly string[] }>['namespace'] = [
  'a list of names without dots',
  (value) => TEXTS[1](value) && !(value as string[]).some((name) => name.includes('.')),
  'required',
];

interface StorePlace {
  readonly namespace: readonly string[];
  readonly key: string;
}

const PLACE_RULES: BodyRules<StorePlace> = { namespace: NAMESPACE, key: required(TEXT) };

const PUT_RULES: BodyRules<StorePut> = {
  ...PLACE_RULES,
  value: required(OBJECT),
  index: ['false or a list of texts', (value) => value === false || TEXTS[1](value)],
  ttl: ['a number above 0', (value) => Number.isFinite(value) && (value as number) > 0],
};

const SEARCH_RULES: BodyRules<StoreSearch> = {
  ...PAGE_RULES,
  namespace_prefix: required(TEXTS),
  filter: OBJECT,
  query: TEXT,
};

const NAMESPACE_RULES: BodyRules<NamespaceSearch> = {
  ...PAGE_RULES,
  prefix: TEXTS,
  suffix: TEXTS,
  max_depth: wholeFrom(1, 1_000),
};
