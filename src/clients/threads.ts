import { type AgentService, agentPath, splitOptions } from './agent-service.ts';
import {
  ANYTHING,
  type BodyRules,
  checkedBody,
  OBJECT,
  OBJECT_OR_NULL,
  oneOf,
  required,
  someOf,
  TEXT,
  TEXTS,
  TRUTH,
  UUID,
  UUIDS,
} from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import { Page, PageList } from './page.ts';
import { PAGE_RULES } from './page-request.ts';
import { openRunStream, type RunStream, STREAM_CHECKS, type StreamOptions } from './run-stream.ts';
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
  /** An earlier state; by default the latest. */
  checkpointId?: string;
  /** The same by all that names it, where it is one of a subgraph. */
  checkpoint?: Checkpoint;
  /** Whether tasks that are subgraphs have their state with them. @default false */
  subgraphs?: boolean;
}

export interface ThreadStreamOptions extends StreamOptions {
  /** What is streamed. @default 'run_modes', what the runs stream */
  streamModes?: 'run_modes' | 'lifecycle' | 'state_update' | readonly ('run_modes' | 'lifecycle' | 'state_update')[];
}

/** Threads of an agent server. */
export class Threads {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(thread: ThreadCreate = {}, options?: CallOptions): Promise<Thread> {
    const name = 'threads.create';
    const body = checkedBody(name, thread, CREATE_RULES);
    const isIdempotent = body.thread_id !== undefined && body.if_exists === 'do_nothing';
    return this.#service.json({ name, method: 'POST', path: '/threads', body, isIdempotent, options });
  }

  async get<Values = Record<string, unknown>>(threadId: string, options?: CallOptions): Promise<Thread<Values>> {
    const name = 'threads.get';
    return this.#service.json({ name, method: 'GET', path: threadPath(name, threadId), options });
  }

  async update(threadId: string, changes: ThreadUpdate, options?: CallOptions): Promise<Thread> {
    const name = 'threads.update';
    const body = checkedBody(name, changes, UPDATE_RULES);
    return this.#service.json({ name, method: 'PATCH', path: threadPath(name, threadId), body, options });
  }

  async delete(threadId: string, options?: CallOptions): Promise<void> {
    const name = 'threads.delete';
    return this.#service.none({ name, method: 'DELETE', path: threadPath(name, threadId), options });
  }

  search<Values = Record<string, unknown>>(filter: ThreadSearch = {}, options?: CallOptions): PageList<Thread<Values>> {
    const name = 'threads.search';
    return this.#service.list(() => {
      const body = checkedBody(name, filter, SEARCH_RULES);
      return { name, method: 'POST', path: '/threads/search', body, options };
    });
  }

  async count(filter: ThreadFilter = {}, options?: CallOptions): Promise<number> {
    const name = 'threads.count';
    const body = checkedBody(name, filter, FILTER_RULES);
    const call = { name, method: 'POST', path: '/threads/count', body, isIdempotent: true, options } as const;
    return this.#service.json(call, 'number');
  }

  /** A new thread with the same states. */
  async copy(threadId: string, options?: CallOptions): Promise<Thread> {
    const name = 'threads.copy';
    return this.#service.json({ name, method: 'POST', path: threadPath(name, threadId, 'copy'), options });
  }

  async prune(prune: ThreadPrune, options?: CallOptions): Promise<{ readonly pruned_count: number }> {
    const name = 'threads.prune';
    const body = checkedBody(name, prune, PRUNE_RULES);
    return this.#service.json({ name, method: 'POST', path: '/threads/prune', body, isIdempotent: true, options });
  }

  async state<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStateOptions,
  ): Promise<ThreadState<Values>> {
    const name = 'threads.state';
    const { own, options: common } = splitOptions(name, options, {
      checkpointId: TEXT,
      checkpoint: OBJECT,
      subgraphs: TRUTH,
    });
    const { checkpoint, checkpointId, subgraphs } = own;
    if (checkpoint !== undefined) {
      const path = threadPath(name, threadId, 'state', 'checkpoint');
      const body = { checkpoint, ...(subgraphs === undefined ? {} : { subgraphs }) };
      return this.#service.json({ name, method: 'POST', path, body, isIdempotent: true, options: common });
    }
    const path = threadPath(name, threadId, 'state', ...(checkpointId === undefined ? [] : [checkpointId]));
    return this.#service.json({ name, method: 'GET', path, query: { subgraphs }, options: common });
  }

  /** Changes the state, as if a node had; the answer names the new one. */
  async updateState(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<{ readonly checkpoint: Checkpoint; readonly [field: string]: unknown }> {
    const name = 'threads.updateState';
    const body = checkedBody(name, update, STATE_RULES);
    return this.#service.json({ name, method: 'POST', path: threadPath(name, threadId, 'state'), body, options });
  }

  /** The states, the latest first, each page those before the last of the one ahead. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter: ThreadHistory = {},
    options?: CallOptions,
  ): PageList<ThreadState<Values>> {
    const name = 'threads.history';
    const page = async (body: Record<string, unknown>, limit: number): Promise<Page<ThreadState<Values>>> => {
      const path = threadPath(name, threadId, 'history');
      const { before, metadata, checkpoint } = body;
      // Servers differ in what `before` is in a body; in a query it is an id for all of them.
      const isPlain = metadata === undefined && checkpoint === undefined && typeof before !== 'object';
      const states = await this.#service.json<ThreadState<Values>[]>(
        isPlain
          ? { name, method: 'GET', path, query: { limit, before: before as string | undefined }, options }
          : { name, method: 'POST', path, body: { ...body, limit }, isIdempotent: true, options },
        'list',
      );
      const last = states.at(-1)?.checkpoint;
      const next = isPlain ? last?.checkpoint_id : last;
      const hasNext = states.length >= limit && next !== undefined && next !== null;
      return new Page(states, hasNext ? () => page({ ...body, before: next }, limit) : undefined);
    };
    return new PageList(async () => {
      const { limit = 10, ...body } = checkedBody(name, filter, HISTORY_RULES);
      return page(body, limit as number);
    });
  }

  /** What happens in the thread from now on, or after `lastEventId`, whichever run it belongs to. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadStreamOptions,
  ): Promise<RunStream<Values>> {
    const name = 'threads.joinStream';
    const { own, options: common } = splitOptions(name, options, {
      ...STREAM_CHECKS,
      streamModes: someOf('run_modes', 'lifecycle', 'state_update'),
    });
    const { streamModes, ...stream } = own;
    const modes = streamModes === undefined ? undefined : [streamModes].flat();
    const path = threadPath(name, threadId, 'stream');
    const call = { name, method: 'GET', path, query: { stream_modes: modes }, options: common } as const;
    return openRunStream(this.#service, { call, threadId, isOfRun: false, isKept: true, ...stream });
  }
}

function threadPath(call: string, threadId: string, ...below: readonly string[]): string {
  return agentPath(call, 'threads', { thread_id: threadId }, ...below);
}

const TTL = [
  'minutes, or an object',
  (value: unknown) => (typeof value === 'number' && value > 0) || OBJECT[1](value),
] as const;

const CREATE_RULES: BodyRules<ThreadCreate> = {
  thread_id: UUID,
  metadata: OBJECT,
  if_exists: oneOf('raise', 'do_nothing'),
  ttl: TTL,
  supersteps: ['a list', Array.isArray],
};

const UPDATE_RULES: BodyRules<ThreadUpdate> = { metadata: OBJECT, ttl: TTL };

const FILTER_RULES: BodyRules<ThreadFilter> = { metadata: OBJECT, values: OBJECT, status: TEXT };

const SEARCH_RULES: BodyRules<ThreadSearch> = {
  ...FILTER_RULES,
  ...PAGE_RULES,
  ids: UUIDS,
  sort_by: oneOf('thread_id', 'status', 'created_at', 'updated_at'),
  sort_order: oneOf('asc', 'desc'),
  select: TEXTS,
};

const PRUNE_RULES: BodyRules<ThreadPrune> = {
  thread_ids: required(UUIDS),
  strategy: required(oneOf('delete', 'keep_latest')),
};

export const STATE_RULES: BodyRules<ThreadStateUpdate> = {
  values: ANYTHING,
  checkpoint: OBJECT_OR_NULL,
  as_node: TEXT,
};

export const HISTORY_RULES: BodyRules<ThreadHistory> = {
  limit: PAGE_RULES.limit,
  before: ['the id of a checkpoint, or a checkpoint', (value) => TEXT[1](value) || OBJECT[1](value)],
  metadata: OBJECT,
  checkpoint: OBJECT,
};
