import type { AgentRun } from './agent-run.ts';
import { CANCEL_ACTION, JOIN_STREAM_CHECKS, type JoinStreamOptions, joinQuery } from './agent-runs.ts';
import { type AgentService, agentPath, splitOptions } from './agent-service.ts';
import { type BodyRules, bodyErrors, checkedBody, oneOf, TEXT, TEXTS } from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import { STATELESS_RUN_RULES, type StatelessRunRequest } from './run-request.ts';
import { openRunStream, type RunStream, STREAM_CHECKS, type StreamOptions } from './run-stream.ts';
import { waitForRun } from './run-wait.ts';
import { tracedStream } from './stream-trace.ts';
import { InvalidRequestError } from './validation-error.ts';

/** Which runs are ended: by their status, or by their ids and thread. */
export interface RunCancellation {
  status?: 'pending' | 'running' | 'all';
  thread_id?: string;
  run_ids?: readonly string[];
}

/** Runs without a thread that was made before. As with those of threads, what makes a run is sent once. */
export class StatelessRuns {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Starts a run in the background. */
  async create(run: StatelessRunRequest, options?: CallOptions): Promise<AgentRun> {
    const name = 'statelessRuns.create';
    const body = checkedBody(name, run, STATELESS_RUN_RULES);
    return this.#service.traced(name, body, (headers) =>
      this.#service.json({ name, method: 'POST', path: '/runs', body, headers, options }),
    );
  }

  /** Makes a run and waits for the state that it ends with, as `runs.wait` does. */
  async wait<Values = Record<string, unknown>>(run: StatelessRunRequest, options?: CallOptions): Promise<Values> {
    const name = 'statelessRuns.wait';
    const body = checkedBody(name, run, STATELESS_RUN_RULES);
    return this.#service.traced(name, body, (headers, callRun) => {
      const call = { name, method: 'POST', path: '/runs/wait', body, headers, options } as const;
      return waitForRun<Values>(this.#service, call, { runId: undefined, threadId: undefined }, callRun);
    });
  }

  /** Makes a run and streams what it does. */
  async stream<Values = Record<string, unknown>>(
    run: StatelessRunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    const name = 'statelessRuns.stream';
    const { own, options: common } = splitOptions(name, options, { idleTimeoutMs: STREAM_CHECKS.idleTimeoutMs });
    const body = checkedBody(name, run, STATELESS_RUN_RULES);
    return tracedStream(name, body, (trace) => {
      const headers = this.#service.traceHeaders();
      const call = { name, method: 'POST', path: '/runs/stream', body, headers, options: common } as const;
      const isKept = body.stream_resumable === true;
      return openRunStream<Values>(this.#service, { call, isOfRun: true, isKept, trace, ...own });
    });
  }

  /** Streams what a run does from now on, or after `lastEventId` where the server keeps its events. */
  async joinStream<Values = Record<string, unknown>>(
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    const name = 'statelessRuns.joinStream';
    const { own, options: common } = splitOptions(name, options, JOIN_STREAM_CHECKS);
    const path = agentPath(name, 'runs', { run_id: runId }, 'stream');
    const call = { name, method: 'GET', path, query: joinQuery(own), options: common } as const;
    const { lastEventId, idleTimeoutMs } = own;
    return openRunStream(this.#service, { call, runId, isOfRun: true, lastEventId, idleTimeoutMs });
  }

  /** Starts several runs in one call; they come in the order in which they are asked for. */
  async batch(runs: readonly StatelessRunRequest[], options?: CallOptions): Promise<AgentRun[]> {
    const name = 'statelessRuns.batch';
    const errors = Array.isArray(runs)
      ? runs.flatMap((run, index) => bodyErrors(['body', index], run, STATELESS_RUN_RULES))
      : [];
    if (!Array.isArray(runs) || runs.length === 0)
      errors.push({ loc: ['body'], msg: 'Expected a list that is not empty', type: 'list_type' });
    if (errors.length > 0) throw new InvalidRequestError(name, errors);
    return this.#service.traced(name, { runs }, (headers) =>
      this.#service.json({ name, method: 'POST', path: '/runs/batch', body: runs, headers, options }, 'list'),
    );
  }

  /** Ends runs, of threads as well; `rollback` deletes them and what they have kept. */
  async cancel(which: RunCancellation, options?: CallOptions & { action?: 'interrupt' | 'rollback' }): Promise<void> {
    const name = 'statelessRuns.cancel';
    const { own, options: common } = splitOptions(name, options, { action: CANCEL_ACTION });
    const body = checkedBody(name, which, CANCELLATION_RULES);
    const query = { action: own.action };
    const call = { name, method: 'POST', path: '/runs/cancel', query, body, isIdempotent: true } as const;
    return this.#service.none({ ...call, options: common });
  }
}

const CANCELLATION_RULES: BodyRules<RunCancellation> = {
  status: oneOf('pending', 'running', 'all'),
  thread_id: TEXT,
  run_ids: TEXTS,
};
