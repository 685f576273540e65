import { type CallOptions, TRUTH } from '../client-options.ts';
import type { Endpoint, OwnOption } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { request, TEXT, TEXTS } from '../schema.ts';
import { type AgentService, PAGE, type PageRequest } from './agent-service.ts';
import { RUN_REQUEST, type RunRequest, STREAM_MODES, type StreamMode } from './run-request.ts';
import { openNewRunStream, openRunStream, type RunStream, STREAM_OPTIONS, type StreamOptions } from './run-stream.ts';
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

const MODES: readonly unknown[] = STREAM_MODES;

const JOIN: Readonly<Record<string, OwnOption>> = { cancelOnDisconnect: [TRUTH, 'cancel_on_disconnect'] };

export const JOIN_STREAM: NonNullable<Endpoint['options']> = {
  ...STREAM_OPTIONS,
  ...JOIN,
  streamMode: [
    [`one or a list of ${MODES.join(', ')}`, (modes) => [modes].flat().every((mode) => MODES.includes(mode))],
    'stream_mode',
  ],
};

export const CANCEL_ACTION: OwnOption = [
  ["'interrupt' or 'rollback'", (action) => action === 'interrupt' || action === 'rollback'],
  'action',
];

const RUNS = '/threads/{thread_id}/runs';
const ONE = `${RUNS}/{run_id}`;

const ENDPOINTS = {
  create: { name: 'runs.create', method: 'POST', path: RUNS, body: RUN_REQUEST, makesRun: true },
  wait: { name: 'runs.wait', method: 'POST', path: `${RUNS}/wait`, body: RUN_REQUEST, makesRun: true },
  stream: {
    name: 'runs.stream',
    method: 'POST',
    path: `${RUNS}/stream`,
    body: RUN_REQUEST,
    options: { idleTimeoutMs: STREAM_OPTIONS.idleTimeoutMs as OwnOption },
    makesRun: true,
  },
  list: {
    name: 'runs.list',
    method: 'GET',
    path: RUNS,
    body: request<RunFilter>({}, { ...PAGE, status: TEXT, select: TEXTS }),
  },
  get: { name: 'runs.get', method: 'GET', path: ONE },
  delete: { name: 'runs.delete', method: 'DELETE', path: ONE, response: 'none' },
  join: { name: 'runs.join', method: 'GET', path: `${ONE}/join`, options: JOIN },
  joinStream: { name: 'runs.joinStream', method: 'GET', path: `${ONE}/stream`, options: JOIN_STREAM },
  cancel: {
    name: 'runs.cancel',
    method: 'POST',
    path: `${ONE}/cancel`,
    response: 'none',
    options: { wait: [TRUTH, 'wait', (wait: boolean) => (wait ? 1 : undefined)], action: CANCEL_ACTION },
    isIdempotent: true,
  },
} satisfies Record<string, Endpoint>;

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
    return this.#service.call(ENDPOINTS.create, { ids: [threadId], body: run, options });
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
    return waitForRun(this.#service, ENDPOINTS.wait, { ids: [threadId], body: run, options });
  }

  /** Starts a run and streams its events. */
  async stream<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    return openNewRunStream(this.#service, ENDPOINTS.stream, { ids: [threadId], body: run, options });
  }

  /** Lists the latest run first. */
  list(threadId: string, filter: RunFilter = {}, options?: CallOptions): PageList<AgentRun> {
    return this.#service.list(ENDPOINTS.list, { ids: [threadId], body: filter, options });
  }

  async get(threadId: string, runId: string, options?: CallOptions): Promise<AgentRun> {
    return this.#service.call(ENDPOINTS.get, { ids: [threadId, runId], options });
  }

  async delete(threadId: string, runId: string, options?: CallOptions): Promise<void> {
    return this.#service.call(ENDPOINTS.delete, { ids: [threadId, runId], options });
  }

  /** Waits for the final state of a run. See `wait`. */
  async join<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinOptions,
  ): Promise<Values> {
    return waitForRun(this.#service, ENDPOINTS.join, { ids: [threadId, runId], options });
  }

  /** Streams the events of a run from now on, or after `lastEventId` if the server stores the events. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    const args = { ids: [threadId, runId], options };
    return openRunStream(this.#service, ENDPOINTS.joinStream, args, { isOfRun: true });
  }

  /** Ends a run. */
  async cancel(threadId: string, runId: string, options?: CancelOptions): Promise<void> {
    return this.#service.call(ENDPOINTS.cancel, { ids: [threadId, runId], options });
  }
}
