import type { Check } from '../../base/options.ts';
import { type CallOptions, TEXT_OPTION, TRUTH } from '../client-options.ts';
import { endpoints, methodsOf, type Send } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, required, TEXT, whole } from '../schema.ts';
import type { PageRequest } from './agent-service.ts';

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

/** Assistants of an agent server. A graph's default assistant has the graph's name as its id. */
export interface Assistants {
  create(assistant: AssistantCreate, options?: CallOptions): Promise<Assistant>;
  get(assistantId: string, options?: CallOptions): Promise<Assistant>;
  update(assistantId: string, changes: AssistantUpdate, options?: CallOptions): Promise<Assistant>;
  delete(assistantId: string, options?: CallOptions & { deleteThreads?: boolean }): Promise<void>;
  search(filter?: AssistantSearch, options?: CallOptions): PageList<Assistant>;
  count(filter?: AssistantFilter, options?: CallOptions): Promise<number>;
  /** Returns the graph. `xray` includes subgraphs. A number limits their depth. */
  graph(assistantId: string, options?: CallOptions & { xray?: boolean | number }): Promise<AssistantGraph>;
  schemas(assistantId: string, options?: CallOptions): Promise<GraphSchemas>;
  /** Returns the schemas of subgraphs by name. `recurse` includes the subgraphs of subgraphs. */
  subgraphs(
    assistantId: string,
    options?: CallOptions & { namespace?: string; recurse?: boolean },
  ): Promise<Readonly<Record<string, GraphSchemas>>>;
  /** Lists the latest version first. */
  versions(assistantId: string, filter?: AssistantVersionSearch, options?: CallOptions): PageList<Assistant>;
  /** Sets the version that runs use. */
  setLatest(assistantId: string, version: number, options?: CallOptions): Promise<Assistant>;
}

const DEPTH: Check = [
  'true, false or a whole number',
  (value) => typeof value === 'boolean' || Number.isSafeInteger(value),
];

const ASSISTANTS = endpoints<Assistants>('assistants', {
  create: [
    'POST /assistants',
    {
      body: required<AssistantCreate>({ graph_id: TEXT }),
      isIdempotent: ({ assistant_id, if_exists }: AssistantCreate) =>
        assistant_id !== undefined && if_exists === 'do_nothing',
    },
  ],
  get: ['GET /assistants/{assistant_id}'],
  update: ['PATCH /assistants/{assistant_id}', { body: BODY }],
  delete: ['DELETE /assistants/{assistant_id}', { response: 'none', query: { deleteThreads: [TRUTH] } }],
  search: ['POST /assistants/search', { body: BODY, response: 'pages' }],
  count: ['POST /assistants/count', { body: BODY, response: 'number', isIdempotent: true }],
  graph: ['GET /assistants/{assistant_id}/graph', { query: { xray: [DEPTH] } }],
  schemas: ['GET /assistants/{assistant_id}/schemas'],
  subgraphs: [
    'GET /assistants/{assistant_id}/subgraphs',
    { options: { namespace: TEXT_OPTION }, query: { recurse: [TRUTH] } },
  ],
  versions: ['POST /assistants/{assistant_id}/versions', { body: BODY, response: 'pages' }],
  setLatest: [
    'POST /assistants/{assistant_id}/latest',
    { body: required<{ version: number }>({ version: whole(1) }), isIdempotent: true },
  ],
});

export function assistantsOf(send: Send): Assistants {
  const { subgraphs, setLatest } = ASSISTANTS;
  return {
    ...methodsOf(ASSISTANTS, send),
    subgraphs: async (assistantId, options) => {
      const namespace = options?.namespace;
      const path = namespace === undefined ? subgraphs.path : `${subgraphs.path}/{namespace}`;
      return send({ ...subgraphs, path }, { ids: [assistantId, namespace ?? ''], options });
    },
    setLatest: async (assistantId, version, options) =>
      send(setLatest, { ids: [assistantId], body: { version }, options }),
  };
}
