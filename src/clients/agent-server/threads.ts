import { isObject } from '../../base/options.ts';
import { type CallOptions, TRUTH } from '../client-options.ts';
import { type Arguments, callOf, type Endpoint } from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import type { AgentService } from './agent-service.ts';
import { openRunStream, type RunStream, STREAM_OPTIONS, type StreamOptions } from './run-stream.ts';
import {
  type Checkpoint,
  HISTORY,
  STATE_UPDATE,
  THREAD_CREATE,
  THREAD_FILTER,
  THREAD_PRUNE,
  THREAD_SEARCH,
  THREAD_UPDATE,
  type Thread,
  type ThreadCreate,
  type ThreadFilter,
  type ThreadHistory,
  type ThreadPrune,
  type ThreadSearch,
  type ThreadState,
  type ThreadStateUpdate,
  type ThreadUpdate,
} from './thread.ts';

export interface ThreadStateOptions extends CallOptions {
  /** Id of an earlier state. @default the latest state */
  checkpointId?: string;
  /** An earlier state, which may belong to a subgraph. */
  checkpoint?: Checkpoint;
  /** Whether to include the states of tasks that are subgraphs. @default false */
  subgraphs?: boolean;
}

export interface ThreadStreamOptions extends StreamOptions {
  /** Modes to stream. `run_modes` is the modes of the runs. @default 'run_modes' */
  streamModes?: 'run_modes' | 'lifecycle' | 'state_update' | readonly ('run_modes' | 'lifecycle' | 'state_update')[];
}

const MODES: readonly unknown[] = ['run_modes', 'lifecycle', 'state_update'];

const THREAD = '/threads/{thread_id}';

const STATE_OPTIONS: NonNullable<Endpoint['options']> = {
  checkpointId: [['text that is not empty', (id) => typeof id === 'string' && id !== '']],
  checkpoint: [['an object', isObject]],
  subgraphs: [TRUTH],
};

const ENDPOINTS = {
  create: {
    name: 'threads.create',
    method: 'POST',
    path: '/threads',
    body: THREAD_CREATE,
    isIdempotent: ({ thread_id, if_exists }: ThreadCreate) => thread_id !== undefined && if_exists === 'do_nothing',
  },
  get: { name: 'threads.get', method: 'GET', path: THREAD },
  update: { name: 'threads.update', method: 'PATCH', path: THREAD, body: THREAD_UPDATE },
  delete: { name: 'threads.delete', method: 'DELETE', path: THREAD, response: 'none' },
  search: { name: 'threads.search', method: 'POST', path: '/threads/search', body: THREAD_SEARCH },
  count: {
    name: 'threads.count',
    method: 'POST',
    path: '/threads/count',
    body: THREAD_FILTER,
    response: 'number',
    isIdempotent: true,
  },
  copy: { name: 'threads.copy', method: 'POST', path: `${THREAD}/copy` },
  prune: { name: 'threads.prune', method: 'POST', path: '/threads/prune', body: THREAD_PRUNE, isIdempotent: true },
  state: { name: 'threads.state', method: 'GET', path: `${THREAD}/state`, options: STATE_OPTIONS },
  stateOf: {
    name: 'threads.state',
    method: 'POST',
    path: `${THREAD}/state/checkpoint`,
    options: STATE_OPTIONS,
    isIdempotent: true,
  },
  updateState: { name: 'threads.updateState', method: 'POST', path: `${THREAD}/state`, body: STATE_UPDATE },
  history: {
    name: 'threads.history',
    method: 'POST',
    path: `${THREAD}/history`,
    body: HISTORY,
    response: 'list',
    isIdempotent: true,
  },
  joinStream: {
    name: 'threads.joinStream',
    method: 'GET',
    path: `${THREAD}/stream`,
    options: {
      ...STREAM_OPTIONS,
      streamModes: [
        [`one or a list of ${MODES.join(', ')}`, (modes) => [modes].flat().every((mode) => MODES.includes(mode))],
        'stream_modes',
      ],
    },
  },
} satisfies Record<string, Endpoint>;

/** Threads of an agent server. */
export class Threads {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(thread: ThreadCreate = {}, options?: CallOptions): Promise<Thread> {
    return this.#service.call(ENDPOINTS.create, { body: thread, options });
  }

  async get<Values = Record<string, unknown>>(threadId: string, options?: CallOptions): Promise<Thread<Values>> {
    return this.#service.call(ENDPOINTS.get, { ids: [threadId], options });
  }

  async update(threadId: string, changes: ThreadUpdate, options?: CallOptions): Promise<Thread> {
    return this.#service.call(ENDPOINTS.update, { ids: [threadId], body: changes, options });
  }

  async delete(threadId: string, options?: CallOptions): Promise<void> {
    return this.#service.call(ENDPOINTS.delete, { ids: [threadId], options });
  }

  search<Values = Record<string, unknown>>(filter: ThreadSearch = {}, options?: CallOptions): PageList<Thread<Values>> {
    return this.#service.list(ENDPOINTS.search, { body: filter, options });
  }

  async count(filter: ThreadFilter = {}, options?: CallOptions): Promise<number> {
    return this.#service.call(ENDPOINTS.count, { body: filter, options });
  }

  /** Creates a thread with the same states. */
  async copy(threadId: string, options?: CallOptions): Promise<Thread> {
    return this.#service.call(ENDPOINTS.copy, { ids: [threadId], options });
  }

  async prune(prune: ThreadPrune, options?: CallOptions): Promise<{ readonly pruned_count: number }> {
    return this.#service.call(ENDPOINTS.prune, { body: prune, options });
  }

  async state<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStateOptions,
  ): Promise<ThreadState<Values>> {
    const { checkpoint, checkpointId, subgraphs } = options ?? {};
    if (checkpoint !== undefined) {
      const call = callOf(ENDPOINTS.stateOf, { ids: [threadId], options });
      return (await this.#service.api.send<ThreadState<Values>>({ ...call, body: { checkpoint, subgraphs } })).data;
    }
    const { state } = ENDPOINTS;
    const path = checkpointId === undefined ? state.path : `${state.path}/{checkpoint_id}`;
    const call = callOf({ ...state, path }, { ids: [threadId, checkpointId ?? ''], options });
    return (await this.#service.api.send<ThreadState<Values>>({ ...call, query: { subgraphs } })).data;
  }

  /** Changes the state as if a node had changed it. The response identifies the new state. */
  async updateState(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<{ readonly checkpoint: Checkpoint; readonly [field: string]: unknown }> {
    return this.#service.call(ENDPOINTS.updateState, { ids: [threadId], body: update, options });
  }

  /** Lists the latest state first. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter: ThreadHistory = {},
    options?: CallOptions,
  ): PageList<ThreadState<Values>> {
    const args = { ids: [threadId], body: filter, options };
    // Servers differ in the type of `before` in a body. All servers accept an id in a query.
    return statePages(this.#service, ENDPOINTS.history, args, true);
  }

  /** Streams the events of all runs of the thread from now on, or after `lastEventId`. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStreamOptions,
  ): Promise<RunStream<Values>> {
    const request = { isOfRun: false, isStored: true };
    return openRunStream(this.#service, ENDPOINTS.joinStream, { ids: [threadId], options }, request);
  }
}

/** Lists states by their checkpoints. `mayQuery` sends a GET if a query can carry the filter. */
export function statePages<Values>(
  service: AgentService,
  endpoint: Endpoint,
  args: Arguments,
  mayQuery: boolean,
): PageList<ThreadState<Values>> {
  const first = (): ThreadHistory => callOf(endpoint, args).body as ThreadHistory;
  return pagesFrom(first, async ({ limit = 10, ...filter }) => {
    const { before, metadata, checkpoint } = filter;
    const isQuery = mayQuery && metadata === undefined && checkpoint === undefined && typeof before !== 'object';
    const page: Endpoint = isQuery ? { ...endpoint, method: 'GET' } : endpoint;
    const items = await service.call<ThreadState<Values>[]>(page, { ...args, body: { ...filter, limit } });
    const last = items.at(-1)?.checkpoint;
    const next = (isQuery || !mayQuery ? last?.checkpoint_id : last) ?? undefined;
    // A cursor that does not advance would repeat the same page forever.
    const isLast = items.length < limit || next === undefined || next === before;
    return { items, next: isLast ? undefined : { ...filter, limit, before: next } };
  });
}
