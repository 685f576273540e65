import { type CallOptions, oneOrMoreOf, TRUTH } from '../client-options.ts';
import { type Endpoint, endpoints, ONE_IF_TRUE, type OwnOption } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY } from '../schema.ts';
import type { AgentService, PageRequest } from './agent-service.ts';
import { NEW_RUN, type RunRequest, STREAM_MODES, type StreamMode } from './run-request.ts';
import {
  NEW_RUN_STREAM,
  openNewRunStream,
  openRunStream,
  type RunStream,
  STREAM_OPTIONS,
  type StreamOptions,
} from './run-stream.ts';
import { waitForRun } from './run-wait.ts';

/** Statuses of runs. A later server may have others. */
export type RunStatus = 'pending' | 'running' | 'error' | 'success' | 'timeout' | 'interrupted' | (string & {});

/** A run of an assistant. */
export interface AgentRun {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: RunStatus;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue' | (string & {}) | null;
  readonly [field: string]: unknown;
}

export interface RunFilter extends PageRequest {
  status?: AgentRun['status'];
  /** Fields to return. */
  select?: readonly string[];
}

export interface JoinOptions extends CallOptions {
  /** Whether the run is cancelled when this connection ends. @default false */
  cancelOnDisconnect?: boolean;
}

export interface JoinStreamOptions extends StreamOptions {
  /** See `JoinOptions`. @default false */
  cancelOnDisconnect?: boolean;
  /** Modes to stream. @default the modes of the run */
  streamMode?: StreamMode | readonly StreamMode[];
}

export interface CancelOptions extends CallOptions {
  /** Whether to wait until the run has ended. @default false */
  wait?: boolean;
  /** `rollback` deletes the run and its data. @default 'interrupt' */
  action?: 'interrupt' | 'rollback';
}

const JOIN = { cancelOnDisconnect: [TRUTH, 'cancel_on_disconnect'] } as const;

export const JOIN_STREAM: NonNullable<Endpoint['options']> = {
  ...STREAM_OPTIONS,
  ...JOIN,
  streamMode: [oneOrMoreOf(STREAM_MODES), 'stream_mode'],
};

export const CANCEL_ACTION: OwnOption = [
  ["'interrupt' or 'rollback'", (action) => action === 'interrupt' || action === 'rollback'],
  'action',
];

const CALLS = endpoints('runs', {
  create: ['POST /threads/{thread_id}/runs', NEW_RUN],
  wait: ['POST /threads/{thread_id}/runs/wait', NEW_RUN],
  stream: ['POST /threads/{thread_id}/runs/stream', NEW_RUN_STREAM],
  list: ['GET /threads/{thread_id}/runs', { body: BODY }],
  get: ['GET /threads/{thread_id}/runs/{run_id}'],
  delete: ['DELETE /threads/{thread_id}/runs/{run_id}', { response: 'none' }],
  join: ['GET /threads/{thread_id}/runs/{run_id}/join', { options: JOIN }],
  joinStream: ['GET /threads/{thread_id}/runs/{run_id}/stream', { options: JOIN_STREAM }],
  cancel: [
    'POST /threads/{thread_id}/runs/{run_id}/cancel',
    { response: 'none', options: { wait: [TRUTH, 'wait', ONE_IF_TRUE], action: CANCEL_ACTION }, isIdempotent: true },
  ],
});

/**
 * Runs of threads. A request that creates a run is repeated only if no connection was made, or after the server
 * responded with 429.
 */
export class AgentRuns {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Starts a run in the background. */
  async create(threadId: string, run: RunRequest, options?: CallOptions): Promise<AgentRun> {
    return this.#service.call(CALLS.create, { ids: [threadId], body: run, options });
  }

  /**
   * Starts a run and waits for its final state, without a time limit. A `timeoutMs` of the call or the client applies to
   * the response headers only. Without it, `idleTimeoutMs` applies. Rejects with a RunFailedError if the run fails.
   */
  async wait<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: CallOptions,
  ): Promise<Values> {
    return waitForRun(this.#service, CALLS.wait, { ids: [threadId], body: run, options });
  }

  /** Starts a run and streams its events. */
  async stream<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    return openNewRunStream(this.#service, CALLS.stream, { ids: [threadId], body: run, options });
  }

  /** Lists the latest run first. */
  list(threadId: string, filter: RunFilter = {}, options?: CallOptions): PageList<AgentRun> {
    return this.#service.list(CALLS.list, { ids: [threadId], body: filter, options });
  }

  async get(threadId: string, runId: string, options?: CallOptions): Promise<AgentRun> {
    return this.#service.call(CALLS.get, { ids: [threadId, runId], options });
  }

  async delete(threadId: string, runId: string, options?: CallOptions): Promise<void> {
    return this.#service.call(CALLS.delete, { ids: [threadId, runId], options });
  }

  /** Waits for the final state of a run. See `wait`. */
  async join<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinOptions,
  ): Promise<Values> {
    return waitForRun(this.#service, CALLS.join, { ids: [threadId, runId], options });
  }

  /** Streams the events of a run from now on, or after `lastEventId` if the server stores the events. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    const args = { ids: [threadId, runId], options };
    return openRunStream(this.#service, CALLS.joinStream, args, { isOfRun: true });
  }

  /** Ends a run. */
  async cancel(threadId: string, runId: string, options?: CancelOptions): Promise<void> {
    return this.#service.call(CALLS.cancel, { ids: [threadId, runId], options });
  }
}
