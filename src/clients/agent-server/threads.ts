import { type CallOptions, OBJECT_OPTION, oneOrMoreOf, TEXT_OPTION, TRUTH } from '../client-options.ts';
import { type Arguments, callOf, type Endpoint, endpoints } from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import { BODY, oneOf, required, TEXTS } from '../schema.ts';
import { type AgentService, PAGE_BODY } from './agent-service.ts';
import type { StreamOptions } from './run-policy.ts';
import { openRunStream, type RunStream, STREAM_OPTIONS } from './run-stream.ts';
import type {
  Checkpoint,
  Thread,
  ThreadCreate,
  ThreadFilter,
  ThreadHistory,
  ThreadPrune,
  ThreadSearch,
  ThreadState,
  ThreadStateUpdate,
  ThreadUpdate,
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

/** Lists states. The limit is needed to tell whether a page is the last. */
export const HISTORY: Omit<Endpoint, 'name' | 'method' | 'path'> = {
  body: PAGE_BODY,
  response: 'list',
  isIdempotent: true,
};

const STATE_OPTIONS: NonNullable<Endpoint['options']> = {
  checkpointId: [TEXT_OPTION],
  checkpoint: [OBJECT_OPTION],
  subgraphs: [TRUTH],
};

const PRUNE = required<ThreadPrune>({ thread_ids: TEXTS, strategy: oneOf('delete', 'keep_latest') });

const CALLS = endpoints('threads', {
  create: [
    'POST /threads',
    {
      body: BODY,
      isIdempotent: ({ thread_id, if_exists }: ThreadCreate) => thread_id !== undefined && if_exists === 'do_nothing',
    },
  ],
  get: ['GET /threads/{thread_id}'],
  update: ['PATCH /threads/{thread_id}', { body: BODY }],
  delete: ['DELETE /threads/{thread_id}', { response: 'none' }],
  search: ['POST /threads/search', { body: BODY }],
  count: ['POST /threads/count', { body: BODY, response: 'number', isIdempotent: true }],
  copy: ['POST /threads/{thread_id}/copy'],
  prune: ['POST /threads/prune', { body: PRUNE, isIdempotent: true }],
  state: ['GET /threads/{thread_id}/state', { options: STATE_OPTIONS }],
  updateState: ['POST /threads/{thread_id}/state', { body: BODY }],
  history: ['POST /threads/{thread_id}/history', HISTORY],
  joinStream: [
    'GET /threads/{thread_id}/stream',
    {
      options: {
        ...STREAM_OPTIONS,
        streamModes: [oneOrMoreOf(['run_modes', 'lifecycle', 'state_update']), 'stream_modes'],
      },
    },
  ],
});

/** Threads of an agent server. */
export class Threads {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(thread: ThreadCreate = {}, options?: CallOptions): Promise<Thread> {
    return this.#service.call(CALLS.create, { body: thread, options });
  }

  async get<Values = Record<string, unknown>>(threadId: string, options?: CallOptions): Promise<Thread<Values>> {
    return this.#service.call(CALLS.get, { ids: [threadId], options });
  }

  async update(threadId: string, changes: ThreadUpdate, options?: CallOptions): Promise<Thread> {
    return this.#service.call(CALLS.update, { ids: [threadId], body: changes, options });
  }

  async delete(threadId: string, options?: CallOptions): Promise<void> {
    return this.#service.call(CALLS.delete, { ids: [threadId], options });
  }

  search<Values = Record<string, unknown>>(filter: ThreadSearch = {}, options?: CallOptions): PageList<Thread<Values>> {
    return this.#service.list(CALLS.search, { body: filter, options });
  }

  async count(filter: ThreadFilter = {}, options?: CallOptions): Promise<number> {
    return this.#service.call(CALLS.count, { body: filter, options });
  }

  /** Creates a thread with the same states. */
  async copy(threadId: string, options?: CallOptions): Promise<Thread> {
    return this.#service.call(CALLS.copy, { ids: [threadId], options });
  }

  async prune(prune: ThreadPrune, options?: CallOptions): Promise<{ readonly pruned_count: number }> {
    return this.#service.call(CALLS.prune, { body: prune, options });
  }

  async state<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStateOptions,
  ): Promise<ThreadState<Values>> {
    const { checkpoint, checkpointId, subgraphs } = options ?? {};
    const { path } = CALLS.state;
    const isPost = checkpoint !== undefined;
    const below = isPost ? '/checkpoint' : checkpointId === undefined ? '' : '/{checkpoint_id}';
    const endpoint: Endpoint = { ...CALLS.state, path: path + below, method: isPost ? 'POST' : 'GET' };
    const call = callOf(endpoint, { ids: [threadId, checkpointId ?? ''], options });
    const sent = isPost
      ? { ...call, body: { checkpoint, subgraphs }, isIdempotent: true }
      : { ...call, query: { subgraphs } };
    return (await this.#service.api.send<ThreadState<Values>>(sent)).data;
  }

  /** Changes the state as if a node had changed it. The response identifies the new state. */
  async updateState(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<{ readonly checkpoint: Checkpoint; readonly [field: string]: unknown }> {
    return this.#service.call(CALLS.updateState, { ids: [threadId], body: update, options });
  }

  /** Lists the latest state first. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter: ThreadHistory = {},
    options?: CallOptions,
  ): PageList<ThreadState<Values>> {
    const args = { ids: [threadId], body: filter, options };
    // Servers differ in the type of `before` in a body. All servers accept an id in a query.
    return statePages(this.#service, CALLS.history, args, true);
  }

  /** Streams the events of all runs of the thread from now on, or after `lastEventId`. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStreamOptions,
  ): Promise<RunStream<Values>> {
    const request = { isOfRun: false, isStored: true };
    return openRunStream(this.#service, CALLS.joinStream, { ids: [threadId], options }, request);
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
