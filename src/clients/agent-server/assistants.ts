import { type Check, TRUE_OR_FALSE } from '../../config/checker.ts';
import { type CallOptions, TEXT_OPTION } from '../client-options.ts';
import { endpoints, methodsOf, type Send, type Table } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, RECORD, required, TEXT, whole } from '../schema.ts';
import type { PageRequest } from './agent-service.ts';

/** Configuration for an assistant's runs. */
export interface AgentConfig {
  tags?: readonly string[];
  /** Maximum number of steps per run. */
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
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at?: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly version?: number;
  readonly name?: string;
  readonly description?: string | null;
  readonly [field: string]: unknown;
}

/** A request to create an assistant. Only `graph_id` is required. */
export interface AssistantCreate {
  graph_id: string;
  /** UUID of the assistant. @default a new UUID */
  assistant_id?: string;
  config?: AgentConfig;
  context?: unknown;
  metadata?: Readonly<Record<string, unknown>>;
  /**
   * What to do if an assistant with this id already exists. With `raise`, the server responds with status 409.
   * @default 'raise'
   */
  if_exists?: 'raise' | 'do_nothing';
  name?: string;
  description?: string;
}

/**
 * Fields of an assistant to change. Omitted fields keep their values. New metadata is merged into the existing
 * metadata.
 */
export type AssistantUpdate = Partial<Omit<AssistantCreate, 'assistant_id' | 'if_exists'>>;

/** Selects assistants that match all of the given fields. */
export interface AssistantFilter {
  metadata?: Readonly<Record<string, unknown>>;
  graph_id?: string;
  /** Text that the assistant's name must contain, ignoring case. */
  name?: string;
}

/** Filter, sort order and returned fields of a search for assistants. */
export interface AssistantSearch extends AssistantFilter, PageRequest {
  sort_by?: 'assistant_id' | 'graph_id' | 'created_at' | 'updated_at' | 'name';
  sort_order?: 'asc' | 'desc';
  /** Names of the fields to return. */
  select?: readonly string[];
}

/** Selects versions of an assistant by metadata. */
export interface AssistantVersionSearch extends PageRequest {
  metadata?: Readonly<Record<string, unknown>>;
}

/** The nodes and edges of a graph. */
export interface AssistantGraph {
  readonly nodes: readonly { readonly id: string | number; readonly [field: string]: unknown }[];
  readonly edges: readonly { readonly source: string; readonly target: string; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

/**
 * JSON schemas of a graph's input, output, state, config and context. Schemas that the server cannot generate are
 * missing or null.
 */
export interface GraphSchemas {
  readonly graph_id?: string;
  readonly input_schema?: unknown;
  readonly output_schema?: unknown;
  readonly state_schema?: unknown;
  readonly config_schema?: unknown;
  readonly context_schema?: unknown;
  readonly [field: string]: unknown;
}

/** Calls that manage an agent server's assistants. Each graph has a default assistant, whose id is the graph's name. */
export interface Assistants {
  create(assistant: AssistantCreate, options?: CallOptions): Promise<Assistant>;
  get(assistantId: string, options?: CallOptions): Promise<Assistant>;
  update(assistantId: string, changes: AssistantUpdate, options?: CallOptions): Promise<Assistant>;
  delete(assistantId: string, options?: CallOptions & { deleteThreads?: boolean }): Promise<void>;
  search(filter?: AssistantSearch, options?: CallOptions): PageList<Assistant>;
  count(filter?: AssistantFilter, options?: CallOptions): Promise<number>;
  /**
   * Returns the nodes and edges of the assistant's graph. Set `xray` to include subgraphs: `true` for all levels, or a
   * number for the maximum depth.
   */
  graph(assistantId: string, options?: CallOptions & { xray?: boolean | number }): Promise<AssistantGraph>;
  schemas(assistantId: string, options?: CallOptions): Promise<GraphSchemas>;
  /** Returns the JSON schemas of the graph's subgraphs, keyed by name. Set `recurse` to include nested subgraphs. */
  subgraphs(
    assistantId: string,
    options?: CallOptions & { namespace?: string; recurse?: boolean },
  ): Promise<Readonly<Record<string, GraphSchemas>>>;
  /** Lists the assistant's versions, newest first. */
  versions(assistantId: string, filter?: AssistantVersionSearch, options?: CallOptions): PageList<Assistant>;
  /** Sets the version of the assistant that new runs use. */
  setLatest(assistantId: string, version: number, options?: CallOptions): Promise<Assistant>;
}

const DEPTH: Check = [
  'true, false or a whole number',
  (value) => typeof value === 'boolean' || Number.isSafeInteger(value),
];

export const ASSISTANTS: Table<Assistants> = endpoints('assistants', {
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
  delete: ['DELETE /assistants/{assistant_id}', { response: 'none', query: { deleteThreads: [TRUE_OR_FALSE] } }],
  search: ['POST /assistants/search', { body: required<AssistantSearch>({}, { metadata: RECORD }), response: 'pages' }],
  count: ['POST /assistants/count', { body: BODY, response: 'number', isIdempotent: true }],
  graph: ['GET /assistants/{assistant_id}/graph', { query: { xray: [DEPTH] } }],
  schemas: ['GET /assistants/{assistant_id}/schemas'],
  subgraphs: [
    'GET /assistants/{assistant_id}/subgraphs',
    { options: { namespace: TEXT_OPTION }, query: { recurse: [TRUE_OR_FALSE] } },
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
