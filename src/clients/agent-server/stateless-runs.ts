import type { CallOptions } from '../client-options.ts';
import type { Endpoint, OwnOption } from '../endpoint.ts';
import { listOf, oneOf, request, TEXT, TEXTS } from '../schema.ts';
import type { AgentService } from './agent-service.ts';
import { STATELESS_RUN_REQUEST, type StatelessRunRequest } from './run-request.ts';
import { openNewRunStream, openRunStream, type RunStream, STREAM_OPTIONS, type StreamOptions } from './run-stream.ts';
import { waitForRun } from './run-wait.ts';
import { type AgentRun, CANCEL_ACTION, JOIN_STREAM, type JoinStreamOptions } from './runs.ts';

/** Runs to cancel: by status, or by ids and thread. */
export interface RunCancellation {
  status?: 'pending' | 'running' | 'all';
  thread_id?: string;
  run_ids?: readonly string[];
}

const ENDPOINTS = {
  create: {
    name: 'statelessRuns.create',
    method: 'POST',
    path: '/runs',
    body: STATELESS_RUN_REQUEST,
    makesRun: true,
  },
  wait: {
    name: 'statelessRuns.wait',
    method: 'POST',
    path: '/runs/wait',
    body: STATELESS_RUN_REQUEST,
    makesRun: true,
  },
  stream: {
    name: 'statelessRuns.stream',
    method: 'POST',
    path: '/runs/stream',
    body: STATELESS_RUN_REQUEST,
    options: { idleTimeoutMs: STREAM_OPTIONS.idleTimeoutMs as OwnOption },
    makesRun: true,
  },
  joinStream: {
    name: 'statelessRuns.joinStream',
    method: 'GET',
    path: '/runs/{run_id}/stream',
    options: JOIN_STREAM,
  },
  batch: {
    name: 'statelessRuns.batch',
    method: 'POST',
    path: '/runs/batch',
    body: listOf(STATELESS_RUN_REQUEST, 1),
    response: 'list',
    makesRun: true,
  },
  cancel: {
    name: 'statelessRuns.cancel',
    method: 'POST',
    path: '/runs/cancel',
    body: request<RunCancellation>({}, { status: oneOf('pending', 'running', 'all'), thread_id: TEXT, run_ids: TEXTS }),
    response: 'none',
    options: { action: CANCEL_ACTION },
    isIdempotent: true,
  },
} satisfies Record<string, Endpoint>;

/** Runs without a thread. A request that creates a run is repeated as rarely as for `AgentRuns`. */
export class StatelessRuns {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Starts a run in the background. */
  async create(run: StatelessRunRequest, options?: CallOptions): Promise<AgentRun> {
    return this.#service.call(ENDPOINTS.create, { body: run, options });
  }

  /** Starts a run and waits for its final state, as `runs.wait` does. */
  async wait<Values = Record<string, unknown>>(run: StatelessRunRequest, options?: CallOptions): Promise<Values> {
    return waitForRun(this.#service, ENDPOINTS.wait, { body: run, options });
  }

  /** Starts a run and streams its events. */
  async stream<Values = Record<string, unknown>>(
    run: StatelessRunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    return openNewRunStream(this.#service, ENDPOINTS.stream, { body: run, options });
  }

  /** Streams the events of a run from now on, or after `lastEventId` if the server stores the events. */
  async joinStream<Values = Record<string, unknown>>(
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    return openRunStream(this.#service, ENDPOINTS.joinStream, { ids: [runId], options }, { isOfRun: true });
  }

  /** Starts several runs with one request. The result has the order of the requests. */
  async batch(runs: readonly StatelessRunRequest[], options?: CallOptions): Promise<AgentRun[]> {
    return this.#service.call(ENDPOINTS.batch, { body: runs, options });
  }

  /** Ends runs, including runs of threads. `rollback` also deletes the runs and their data. */
  async cancel(which: RunCancellation, options?: CallOptions & { action?: 'interrupt' | 'rollback' }): Promise<void> {
    return this.#service.call(ENDPOINTS.cancel, { body: which, options });
  }
}
