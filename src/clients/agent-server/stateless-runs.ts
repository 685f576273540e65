import type { CallOptions } from '../client-options.ts';
import { endpoints } from '../endpoint.ts';
import { BODY, listOf, type Schema } from '../schema.ts';
import type { AgentService } from './agent-service.ts';
import type { StreamOptions } from './run-policy.ts';
import { NEW_RUN, RUN, type StatelessRunRequest } from './run-request.ts';
import { NEW_RUN_STREAM, openNewRunStream, openRunStream, type RunStream } from './run-stream.ts';
import { type AgentRun, CANCEL_ACTION, JOIN_STREAM, type JoinStreamOptions, waitForRun } from './runs.ts';

/** Runs to cancel: by status, or by ids and thread. */
export interface RunCancellation {
  status?: 'pending' | 'running' | 'all';
  thread_id?: string;
  run_ids?: readonly string[];
}

const CALLS = endpoints('statelessRuns', {
  create: ['POST /runs', NEW_RUN],
  wait: ['POST /runs/wait', NEW_RUN],
  stream: ['POST /runs/stream', NEW_RUN_STREAM],
  joinStream: ['GET /runs/{run_id}/stream', { options: JOIN_STREAM }],
  batch: ['POST /runs/batch', { body: listOf(RUN as Schema<object>, 1), response: 'list', makesRun: true }],
  cancel: [
    'POST /runs/cancel',
    { body: BODY, response: 'none', options: { action: CANCEL_ACTION }, isIdempotent: true },
  ],
});

/** Runs without a thread. A request that creates a run is repeated as rarely as for `AgentRuns`. */
export class StatelessRuns {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Starts a run in the background. */
  async create(run: StatelessRunRequest, options?: CallOptions): Promise<AgentRun> {
    return this.#service.call(CALLS.create, { body: run, options });
  }

  /** Starts a run and waits for its final state, as `runs.wait` does. */
  async wait<Values = Record<string, unknown>>(run: StatelessRunRequest, options?: CallOptions): Promise<Values> {
    return waitForRun(this.#service, CALLS.wait, { body: run, options });
  }

  /** Starts a run and streams its events. */
  async stream<Values = Record<string, unknown>>(
    run: StatelessRunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    return openNewRunStream(this.#service, CALLS.stream, { body: run, options });
  }

  /** Streams the events of a run from now on, or after `lastEventId` if the server stores the events. */
  async joinStream<Values = Record<string, unknown>>(
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    return openRunStream(this.#service, CALLS.joinStream, { ids: [runId], options }, { isOfRun: true });
  }

  /** Starts several runs with one request. The result has the order of the requests. */
  async batch(runs: readonly StatelessRunRequest[], options?: CallOptions): Promise<AgentRun[]> {
    return this.#service.call(CALLS.batch, { body: runs, options });
  }

  /** Ends runs, including runs of threads. `rollback` also deletes the runs and their data. */
  async cancel(which: RunCancellation, options?: CallOptions & { action?: 'interrupt' | 'rollback' }): Promise<void> {
    return this.#service.call(CALLS.cancel, { body: which, options });
  }
}
