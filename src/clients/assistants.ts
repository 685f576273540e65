import { type AgentService, agentPath, splitOptions } from './agent-service.ts';
import {
  ANYTHING,
  type BodyRules,
  checkedBody,
  OBJECT,
  oneOf,
  required,
  TEXT,
  TEXTS,
  TRUTH,
  UUID,
} from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import type { PageList } from './page.ts';
import { PAGE_RULES, type PageRequest } from './page-request.ts';
import { InvalidRequestError } from './validation-error.ts';

/** What runs of a graph are given beside their input. */
export interface AgentConfig {
  tags?: readonly string[];
  /** Steps after which a run fails. */
  recursion_limit?: number;
  configurable?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** A graph with a configuration. */
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
  /** A UUID; by default a new one. */
  assistant_id?: string;
  config?: AgentConfig;
  context?: unknown;
  metadata?: Readonly<Record<string, unknown>>;
  /** What is done where the id is taken. @default 'raise', a 409 */
  if_exists?: 'raise' | 'do_nothing';
  name?: string;
  description?: string;
}

/** What is left out stays; metadata is added to what is there. */
export type AssistantUpdate = Partial<Omit<AssistantCreate, 'assistant_id' | 'if_exists'>>;

export interface AssistantFilter {
  metadata?: Readonly<Record<string, unknown>>;
  graph_id?: string;
  /** A part of the name, in whatever case. */
  name?: string;
}

export interface AssistantSearch extends AssistantFilter, PageRequest {
  sort_by?: 'assistant_id' | 'graph_id' | 'created_at' | 'updated_at' | 'name';
  sort_order?: 'asc' | 'desc';
  /** The fields that are wanted. */
  select?: readonly string[];
}

export interface AssistantVersionSearch extends PageRequest {
  metadata?: Readonly<Record<string, unknown>>;
}

/** A graph as nodes and edges. */
export interface AssistantGraph {
  readonly nodes: readonly { readonly id: string | number; readonly [field: string]: unknown }[];
  readonly edges: readonly { readonly source: string; readonly target: string; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

/** JSON schemas of a graph; those that could not be made are missing or null. */
export interface GraphSchemas {
  readonly graph_id?: string;
  readonly input_schema?: unknown;
  readonly output_schema?: unknown;
  readonly state_schema?: unknown;
  readonly config_schema?: unknown;
  readonly context_schema?: unknown;
  readonly [field: string]: unknown;
}

/** Assistants of an agent server. Each is found by its id, or the one of a graph by the graph's name. */
export class Assistants {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(assistant: AssistantCreate, options?: CallOptions): Promise<Assistant> {
    const name = 'assistants.create';
    const body = checkedBody(name, assistant, CREATE_RULES);
    const isIdempotent = body.assistant_id !== undefined && body.if_exists === 'do_nothing';
    return this.#service.json({ name, method: 'POST', path: '/assistants', body, isIdempotent, options });
  }

  async get(assistantId: string, options?: CallOptions): Promise<Assistant> {
    const name = 'assistants.get';
    return this.#service.json({ name, method: 'GET', path: assistantPath(name, assistantId), options });
  }

  async update(assistantId: string, changes: AssistantUpdate, options?: CallOptions): Promise<Assistant> {
    const name = 'assistants.update';
    const body = checkedBody(name, changes, UPDATE_RULES);
    return this.#service.json({ name, method: 'PATCH', path: assistantPath(name, assistantId), body, options });
  }

  async delete(assistantId: string, options?: CallOptions & { deleteThreads?: boolean }): Promise<void> {
    const name = 'assistants.delete';
    const { own, options: common } = splitOptions(name, options, { deleteThreads: TRUTH });
    const query = { delete_threads: own.deleteThreads };
    const path = assistantPath(name, assistantId);
    return this.#service.none({ name, method: 'DELETE', path, query, options: common });
  }

  search(filter: AssistantSearch = {}, options?: CallOptions): PageList<Assistant> {
    const name = 'assistants.search';
    return this.#service.list(() => {
      const body = checkedBody(name, filter, SEARCH_RULES);
      return { name, method: 'POST', path: '/assistants/search', body, options };
    });
  }

  async count(filter: AssistantFilter = {}, options?: CallOptions): Promise<number> {
    const name = 'assistants.count';
    const body = checkedBody(name, filter, FILTER_RULES);
    const call = { name, method: 'POST', path: '/assistants/count', body, isIdempotent: true, options } as const;
    return this.#service.json(call, 'number');
  }

  /** The graph; `xray` draws subgraphs as well, to this depth where it is a number. */
  async graph(assistantId: string, options?: CallOptions & { xray?: boolean | number }): Promise<AssistantGraph> {
    const name = 'assistants.graph';
    const { own, options: common } = splitOptions(name, options, {
      xray: ['true, false or a whole number', (value) => typeof value === 'boolean' || Number.isSafeInteger(value)],
    });
    const path = assistantPath(name, assistantId, 'graph');
    return this.#service.json({ name, method: 'GET', path, query: { xray: own.xray }, options: common });
  }

  async schemas(assistantId: string, options?: CallOptions): Promise<GraphSchemas> {
    const name = 'assistants.schemas';
    return this.#service.json({ name, method: 'GET', path: assistantPath(name, assistantId, 'schemas'), options });
  }

  /** The schemas of subgraphs by their names; `recurse` goes into those of subgraphs. */
  async subgraphs(
    assistantId: string,
    options?: CallOptions & { namespace?: string; recurse?: boolean },
  ): Promise<Readonly<Record<string, GraphSchemas>>> {
    const name = 'assistants.subgraphs';
    const { own, options: common } = splitOptions(name, options, { namespace: TEXT, recurse: TRUTH });
    const below = own.namespace === undefined ? ['subgraphs'] : ['subgraphs', own.namespace];
    const path = assistantPath(name, assistantId, ...below);
    return this.#service.json({ name, method: 'GET', path, query: { recurse: own.recurse }, options: common });
  }

  /** The latest first. */
  versions(assistantId: string, filter: AssistantVersionSearch = {}, options?: CallOptions): PageList<Assistant> {
    const name = 'assistants.versions';
    return this.#service.list(() => {
      const body = checkedBody(name, filter, VERSION_RULES);
      return { name, method: 'POST', path: assistantPath(name, assistantId, 'versions'), body, options };
    });
  }

  /** Makes a version the one that runs use. */
  async setLatest(assistantId: string, version: number, options?: CallOptions): Promise<Assistant> {
    const name = 'assistants.setLatest';
    if (!Number.isSafeInteger(version) || version < 1) {
      const msg = 'Expected a whole number from 1';
      throw new InvalidRequestError(name, [{ loc: ['body', 'version'], msg, type: 'value_error' }]);
    }
    const path = assistantPath(name, assistantId, 'latest');
    return this.#service.json({ name, method: 'POST', path, body: { version }, isIdempotent: true, options });
  }
}

function assistantPath(call: string, assistantId: string, ...below: readonly string[]): string {
  return agentPath(call, 'assistants', { assistant_id: assistantId }, ...below);
}

const UPDATE_RULES: BodyRules<AssistantUpdate> = {
  graph_id: TEXT,
  config: OBJECT,
  context: ANYTHING,
  metadata: OBJECT,
  name: TEXT,
  description: ['text', (value) => typeof value === 'string'],
};

const CREATE_RULES: BodyRules<AssistantCreate> = {
  ...UPDATE_RULES,
  graph_id: required(TEXT),
  assistant_id: UUID,
  if_exists: oneOf('raise', 'do_nothing'),
};

const FILTER_RULES: BodyRules<AssistantFilter> = { metadata: OBJECT, graph_id: TEXT, name: TEXT };

const SEARCH_RULES: BodyRules<AssistantSearch> = {
  ...FILTER_RULES,
  ...PAGE_RULES,
  sort_by: oneOf('assistant_id', 'graph_id', 'created_at', 'updated_at', 'name'),
  sort_order: oneOf('asc', 'desc'),
  select: TEXTS,
};

const VERSION_RULES: BodyRules<AssistantVersionSearch> = { ...PAGE_RULES, metadata: OBJECT };
