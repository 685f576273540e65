import { TRUE_OR_FALSE } from '../../config/checker.ts';
import { type CallOptions, OBJECT_OPTION, oneOrMoreOf, TEXT_OPTION } from '../client-options.ts';
import {
  type Arguments,
  type Endpoint,
  endpoints,
  methodsOf,
  preparedCall,
  type Send,
  type Table,
} from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import { BODY, oneOf, RECORD, required, TEXTS } from '../schema.ts';
import { PAGE_BODY } from './agent-service.ts';
import { type RunStream, STREAM_OPTIONS, type StreamOptions } from './streams/run-stream.ts';
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

/** Options of `Threads.state`. */
export interface ThreadStateOptions extends CallOptions {
  /** Id of the checkpoint to return. @default the latest checkpoint */
  checkpointId?: string;
  /** Checkpoint to return, which may belong to a subgraph. */
  checkpoint?: Checkpoint;
  /** Whether to include the states of subgraph tasks. @default false */
  subgraphs?: boolean;
}

/** Options of `Threads.stream`. */
export interface ThreadStreamOptions extends StreamOptions {
  /** Types of events to stream. With `run_modes`, each run uses its own stream modes. @default 'run_modes' */
  streamModes?: 'run_modes' | 'lifecycle' | 'state_update' | readonly ('run_modes' | 'lifecycle' | 'state_update')[];
}

/** Calls that manage an agent server's threads. */
export interface Threads {
  create(thread?: ThreadCreate, options?: CallOptions): Promise<Thread>;
  get<Values = Record<string, unknown>>(threadId: string, options?: CallOptions): Promise<Thread<Values>>;
  update(threadId: string, changes: ThreadUpdate, options?: CallOptions): Promise<Thread>;
  delete(threadId: string, options?: CallOptions): Promise<void>;
  search<Values = Record<string, unknown>>(filter?: ThreadSearch, options?: CallOptions): PageList<Thread<Values>>;
  count(filter?: ThreadFilter, options?: CallOptions): Promise<number>;
  /** Copies a thread with all its states. */
  copy(threadId: string, options?: CallOptions): Promise<Thread>;
  prune(prune: ThreadPrune, options?: CallOptions): Promise<{ readonly pruned_count: number }>;
  state<Values = Record<string, unknown>>(threadId: string, options?: ThreadStateOptions): Promise<ThreadState<Values>>;
  /** Changes the thread's state as if a node of the graph had changed it. Returns the checkpoint of the new state. */
  updateState(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<{ readonly checkpoint: Checkpoint; readonly [field: string]: unknown }>;
  /** Lists the thread's states, newest first. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter?: ThreadHistory,
    options?: CallOptions,
  ): PageList<ThreadState<Values>>;
  /** Streams new events from all runs on the thread. `lastEventId` selects the event after which the stream starts. */
  joinStream<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStreamOptions,
  ): Promise<RunStream<Values>>;
}

export const THREADS: Table<Threads> = endpoints('threads', {
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
  search: ['POST /threads/search', { body: BODY, response: 'pages' }],
  count: ['POST /threads/count', { body: BODY, response: 'number', isIdempotent: true }],
  copy: ['POST /threads/{thread_id}/copy'],
  prune: [
    'POST /threads/prune',
    {
      body: required<ThreadPrune>({ thread_ids: TEXTS, strategy: oneOf('delete', 'keep_latest') }),
      isIdempotent: true,
    },
  ],
  state: [
    'GET /threads/{thread_id}/state',
    { options: { checkpointId: TEXT_OPTION, checkpoint: OBJECT_OPTION }, query: { subgraphs: [TRUE_OR_FALSE] } },
  ],
  updateState: ['POST /threads/{thread_id}/state', { body: BODY }],
  // `limit` is validated, because the client uses `limit` to detect the last page.
  history: ['POST /threads/{thread_id}/history', { body: PAGE_BODY, response: 'list', isIdempotent: true }],
  joinStream: [
    'GET /threads/{thread_id}/stream',
    {
      response: 'events',
      options: STREAM_OPTIONS,
      query: { streamModes: [oneOrMoreOf(['run_modes', 'lifecycle', 'state_update'])] },
    },
  ],
});

/** Endpoint that returns the state at a checkpoint. The checkpoint may belong to a subgraph. */
export const STATE_OF_CHECKPOINT: Endpoint = {
  ...THREADS.state,
  method: 'POST',
  path: `${THREADS.state.path}/checkpoint`,
  body: required<{ checkpoint: Record<string, unknown> }>({ checkpoint: RECORD }),
  query: {},
  isIdempotent: true,
};

export function threadsOf(send: Send): Threads {
  const { state, history } = THREADS;
  return {
    ...methodsOf(THREADS, send),
    state: async (threadId, options) => {
      const { checkpoint, checkpointId, subgraphs, ...common } = options ?? {};
      if (checkpoint !== undefined)
        return send(STATE_OF_CHECKPOINT, { ids: [threadId], body: { checkpoint, subgraphs }, options: common });
      const path = checkpointId === undefined ? state.path : `${state.path}/{checkpoint_id}`;
      return send({ ...state, path }, { ids: [threadId, checkpointId ?? ''], options });
    },
    history: (threadId, body = {}, options) => statePages(send, history, { ids: [threadId], body, options }),
  };
}

/**
 * Lists states page by page, using a checkpoint as the cursor. A checkpoint id is sent in the query of a GET request,
 * where all servers accept it. In a request body, servers expect different types.
 */
function statePages<Values>(send: Send, endpoint: Endpoint, args: Arguments): PageList<ThreadState<Values>> {
  const first = (): ThreadHistory => preparedCall(endpoint, args).body as ThreadHistory;
  return pagesFrom(first, async ({ limit = 10, ...filter }) => {
    const { before, metadata, checkpoint } = filter;
    const isQuery = metadata === undefined && checkpoint === undefined && typeof before !== 'object';
    const page: Endpoint = isQuery ? { ...endpoint, method: 'GET' } : endpoint;
    const items = await send<Promise<ThreadState<Values>[]>>(page, { ...args, body: { ...filter, limit } });
    const last = items.at(-1)?.checkpoint;
    const next = (isQuery ? last?.checkpoint_id : last) ?? undefined;
    // Stop if the cursor does not advance, to avoid requesting the same page forever.
    const isLast = items.length < limit || next === undefined || next === before;
    return { items, next: isLast ? undefined : { ...filter, limit, before: next } };
  });
}
