import { failureOf } from '../../http/errors.ts';
import { ANSWER_BYTES_MAX, parseBody, readText } from '../body.ts';
import { type CallOptions, oneOrMoreOf, TRUTH } from '../client-options.ts';
import { type Arguments, callOf, type Endpoint, endpoints, ONE_IF_TRUE, type OwnOption } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY } from '../schema.ts';
import { recordPlace } from '../tracing.ts';
import { runErrorOf } from './agent-event.ts';
import type { AgentService, PageRequest } from './agent-service.ts';
import { RunFailedError, StreamError } from './errors.ts';
import type { StreamOptions } from './run-policy.ts';
import { placeOf } from './run-policy.ts';
import { NEW_RUN, type RunRequest, STREAM_MODES, type StreamMode } from './run-request.ts';
import { NEW_RUN_STREAM, openNewRunStream, openRunStream, type RunStream, STREAM_OPTIONS } from './run-stream.ts';

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

/**
 * Waits for the result of a run, without a time limit. The server keeps the connection alive with empty lines, and the
 * wait fails after `idleTimeoutMs` without a byte. The response headers may arrive with the result, so that timeout also
 * applies to the headers, unless the call or the client has a `timeoutMs`. Rejects with a RunFailedError if the run
 * fails, and with a StreamError if the response breaks off.
 */
export async function waitForRun<Values>(service: AgentService, endpoint: Endpoint, args: Arguments): Promise<Values> {
  const call = callOf(endpoint, args);
  const { api, idleTimeoutMs, headTimeoutMs } = service;
  const known = { runId: call.ids.run_id, threadId: call.ids.thread_id };
  const wait = async (headers: Record<string, string>, record?: Parameters<typeof recordPlace>[0]): Promise<Values> => {
    const options = { ...call.options, timeoutMs: call.options?.timeoutMs ?? headTimeoutMs };
    const head = await api.open({ ...call, headers, options });
    const place = placeOf(head.headers['content-location'], known);
    if (record !== undefined) recordPlace(record, place);
    const text = await readText(head.body, { idleTimeoutMs, bytesMax: ANSWER_BYTES_MAX }).catch((thrown: unknown) => {
      call.options?.signal?.throwIfAborted();
      const outlook = 'the run may still be running; join it to wait for it again';
      const broken = { ...place, lastEvent: undefined, problem: failureOf(thrown).detail, outlook };
      throw new StreamError(api.factsOf(call), broken, { cause: thrown });
    });
    const { data, problem } = parseBody('any', text, head.headers);
    if (problem !== undefined || text === '') throw api.invalidAnswer(call, head, problem ?? 'is not JSON');
    const error = typeof data === 'object' && data !== null ? (data as { __error__?: unknown }).__error__ : undefined;
    if (error === undefined) return data as Values;
    throw new RunFailedError(place, runErrorOf(error), (shown) => api.masked(shown, call));
  };
  return endpoint.makesRun ? service.traced(call, wait) : wait({});
}
