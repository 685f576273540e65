import { type CallOptions, TRUTH } from '../client-options.ts';
import type { Endpoint } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { ANY, objectOf, oneOf, RECORD, request, TEXT, TEXTS, UUID, value, whole } from '../schema.ts';
import { type AgentService, PAGE, type PageRequest } from './agent-service.ts';

/** Configuration of runs. */
export interface AgentConfig {
  tags?: readonly string[];
  /** Maximum steps of a run. */
  recursion_limit?: number;
  configurable?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** A configured graph. */
export interface Assistant {
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly config: AgentConfig;
  readonly context?: unknown;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at?: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly version?: number;
  readonly name?: string;
  readonly description?: string | null;
  readonly [field: string]: unknown;
}

export interface AssistantCreate {
  graph_id: string;
  /** A UUID. @default a new UUID */
  assistant_id?: string;
  config?: AgentConfig;
  context?: unknown;
  metadata?: Readonly<Record<string, unknown>>;
  /** Behaviour if the id exists. `raise` responds with 409. @default 'raise' */
  if_exists?: 'raise' | 'do_nothing';
  name?: string;
  description?: string;
}

/** Changes to an assistant. Missing fields do not change, and metadata is merged. */
export type AssistantUpdate = Partial<Omit<AssistantCreate, 'assistant_id' | 'if_exists'>>;

export interface AssistantFilter {
  metadata?: Readonly<Record<string, unknown>>;
  graph_id?: string;
  /** A part of the name, case-insensitive. */
  name?: string;
}

export interface AssistantSearch extends AssistantFilter, PageRequest {
  sort_by?: 'assistant_id' | 'graph_id' | 'created_at' | 'updated_at' | 'name';
  sort_order?: 'asc' | 'desc';
  /** Fields to return. */
  select?: readonly string[];
}

export interface AssistantVersionSearch extends PageRequest {
  metadata?: Readonly<Record<string, unknown>>;
}

/** The nodes and edges of a graph. */
export interface AssistantGraph {
  readonly nodes: readonly { readonly id: string | number; readonly [field: string]: unknown }[];
  readonly edges: readonly { readonly source: string; readonly target: string; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

/** JSON schemas of a graph. A schema that the server cannot generate is missing or null. */
export interface GraphSchemas {
  readonly graph_id?: string;
  readonly input_schema?: unknown;
  readonly output_schema?: unknown;
  readonly state_schema?: unknown;
  readonly config_schema?: unknown;
  readonly context_schema?: unknown;
  readonly [field: string]: unknown;
}

const FIELDS = {
  config: objectOf<AgentConfig>(),
  context: ANY,
  metadata: RECORD,
  name: TEXT,
  description: value<string>('text', (text) => typeof text === 'string'),
};

const FILTER = { metadata: RECORD, graph_id: TEXT, name: TEXT };

const ONE = '/assistants/{assistant_id}';

const ENDPOINTS = {
  create: {
    name: 'assistants.create',
    method: 'POST',
    path: '/assistants',
    body: request<AssistantCreate>(
      { graph_id: TEXT },
      { ...FIELDS, assistant_id: UUID, if_exists: oneOf('raise', 'do_nothing') },
    ),
    isIdempotent: ({ assistant_id, if_exists }: AssistantCreate) =>
      assistant_id !== undefined && if_exists === 'do_nothing',
  },
  get: { name: 'assistants.get', method: 'GET', path: ONE },
  update: {
    name: 'assistants.update',
    method: 'PATCH',
    path: ONE,
    body: request<AssistantUpdate>({}, { ...FIELDS, graph_id: TEXT }),
  },
  delete: {
    name: 'assistants.delete',
    method: 'DELETE',
    path: ONE,
    response: 'none',
    options: { deleteThreads: [TRUTH, 'delete_threads'] },
  },
  search: {
    name: 'assistants.search',
    method: 'POST',
    path: '/assistants/search',
    body: request<AssistantSearch>(
      {},
      {
        ...FILTER,
        ...PAGE,
        sort_by: oneOf('assistant_id', 'graph_id', 'created_at', 'updated_at', 'name'),
        sort_order: oneOf('asc', 'desc'),
        select: TEXTS,
      },
    ),
  },
  count: {
    name: 'assistants.count',
    method: 'POST',
    path: '/assistants/count',
    body: request<AssistantFilter>({}, FILTER),
    response: 'number',
    isIdempotent: true,
  },
  graph: {
    name: 'assistants.graph',
    method: 'GET',
    path: `${ONE}/graph`,
    options: { xray: [['true, false or a whole number', isDepth], 'xray'] },
  },
  schemas: { name: 'assistants.schemas', method: 'GET', path: `${ONE}/schemas` },
  subgraphs: {
    name: 'assistants.subgraphs',
    method: 'GET',
    path: `${ONE}/subgraphs`,
    options: {
      namespace: [['text', (text) => typeof text === 'string' && text !== '']],
      recurse: [TRUTH, 'recurse'],
    },
  },
  versions: {
    name: 'assistants.versions',
    method: 'POST',
    path: `${ONE}/versions`,
    body: request<AssistantVersionSearch>({}, { ...PAGE, metadata: RECORD }),
  },
  setLatest: {
    name: 'assistants.setLatest',
    method: 'POST',
    path: `${ONE}/latest`,
    body: request<{ version: number }>({ version: whole(1) }, {}),
    isIdempotent: true,
  },
} satisfies Record<string, Endpoint>;

/** Assistants of an agent server. The id of the default assistant of a graph is the name of the graph. */
export class Assistants {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(assistant: AssistantCreate, options?: CallOptions): Promise<Assistant> {
    return this.#service.call(ENDPOINTS.create, { body: assistant, options });
  }

  async get(assistantId: string, options?: CallOptions): Promise<Assistant> {
    return this.#service.call(ENDPOINTS.get, { ids: [assistantId], options });
  }

  async update(assistantId: string, changes: AssistantUpdate, options?: CallOptions): Promise<Assistant> {
    return this.#service.call(ENDPOINTS.update, { ids: [assistantId], body: changes, options });
  }

  async delete(assistantId: string, options?: CallOptions & { deleteThreads?: boolean }): Promise<void> {
    return this.#service.call(ENDPOINTS.delete, { ids: [assistantId], options });
  }

  search(filter: AssistantSearch = {}, options?: CallOptions): PageList<Assistant> {
    return this.#service.list(ENDPOINTS.search, { body: filter, options });
  }

  async count(filter: AssistantFilter = {}, options?: CallOptions): Promise<number> {
    return this.#service.call(ENDPOINTS.count, { body: filter, options });
  }

  /** Returns the graph. `xray` includes subgraphs, as a number down to that depth. */
  async graph(assistantId: string, options?: CallOptions & { xray?: boolean | number }): Promise<AssistantGraph> {
    return this.#service.call(ENDPOINTS.graph, { ids: [assistantId], options });
  }

  async schemas(assistantId: string, options?: CallOptions): Promise<GraphSchemas> {
    return this.#service.call(ENDPOINTS.schemas, { ids: [assistantId], options });
  }

  /** Returns the schemas of subgraphs by name. `recurse` includes the subgraphs of subgraphs. */
  async subgraphs(
    assistantId: string,
    options?: CallOptions & { namespace?: string; recurse?: boolean },
  ): Promise<Readonly<Record<string, GraphSchemas>>> {
    const { namespace } = options ?? {};
    const { path } = ENDPOINTS.subgraphs;
    const endpoint = { ...ENDPOINTS.subgraphs, path: namespace === undefined ? path : `${path}/{namespace}` };
    return this.#service.call(endpoint, { ids: [assistantId, namespace ?? ''], options });
  }

  /** Lists the latest version first. */
  versions(assistantId: string, filter: AssistantVersionSearch = {}, options?: CallOptions): PageList<Assistant> {
    return this.#service.list(ENDPOINTS.versions, { ids: [assistantId], body: filter, options });
  }

  /** Makes a version the one that runs use. */
  async setLatest(assistantId: string, version: number, options?: CallOptions): Promise<Assistant> {
    return this.#service.call(ENDPOINTS.setLatest, { ids: [assistantId], body: { version }, options });
  }
}

function isDepth(value: unknown): boolean {
  return typeof value === 'boolean' || Number.isSafeInteger(value);
}
