import { isObject, TRUE_OR_FALSE } from '../../config/checker.ts';
import { failureOf } from '../../http/failure.ts';
import { parseBody, RESPONSE_BYTES_MAX, readText } from '../body.ts';
import { type CallOptions, oneOrMoreOf, TIMEOUT } from '../client-options.ts';
import { type Arguments, type Endpoint, endpoints, ONE_IF_TRUE, preparedCall, type Table } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, listSchema, type Schema } from '../schema.ts';
import { recordPlace } from '../tracing.ts';
import type { AgentService, PageRequest } from './agent-service.ts';
import { RunFailedError, StreamError } from './errors.ts';
import { RUN, type RunRequest, STREAM_MODES, type StatelessRunRequest, type StreamMode } from './run-request.ts';
import { runErrorOf } from './streams/agent-event.ts';
import { placeOf } from './streams/event-source.ts';
import { type RunStream, STREAM_OPTIONS, type StreamOptions } from './streams/run-stream.ts';

/** Status of a run. Newer servers may send other statuses. */
export type AgentRunStatus = 'pending' | 'running' | 'error' | 'success' | 'timeout' | 'interrupted' | (string & {});

/** A run of an assistant. */
export interface AgentRun {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: AgentRunStatus;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue' | (string & {}) | null;
  readonly [field: string]: unknown;
}

/** Selects runs on a thread and the fields to return. */
export interface AgentRunFilter extends PageRequest {
  status?: AgentRun['status'];
  /** Names of the fields to return. */
  select?: readonly string[];
}

/** Options of `Runs.join`. */
export interface JoinOptions extends CallOptions {
  /** Whether to cancel the run when this connection ends. @default false */
  cancelOnDisconnect?: boolean;
}

/** Options of `Runs.joinStream`. */
export interface JoinStreamOptions extends StreamOptions, JoinOptions {
  /** Stream modes to use. @default the run's stream modes */
  streamMode?: StreamMode | readonly StreamMode[];
}

/** Options of `Runs.cancel`. */
export interface CancelOptions extends CallOptions {
  /** Whether to wait until the run has ended. @default false */
  wait?: boolean;
  /** How to cancel the run. `rollback` also deletes the run and its data. @default 'interrupt' */
  action?: 'interrupt' | 'rollback';
}

/** Selects the runs to cancel, either by status or by thread and run ids. */
export interface RunCancellation {
  status?: 'pending' | 'running' | 'all';
  thread_id?: string;
  run_ids?: readonly string[];
}

/**
 * Calls for runs on threads. Calls that create a run are retried only if the connection could not be opened, or after a
 * 429 response.
 */
export interface AgentRuns {
  /** Starts a run in the background. */
  create(threadId: string, run: RunRequest, options?: CallOptions): Promise<AgentRun>;
  /**
   * Starts a run and returns its final state. The total time of the run is not limited. The response headers must
   * arrive within `timeoutMs`, or within `idleTimeoutMs` if `timeoutMs` is not set. Rejects with a RunFailedError if
   * the run fails.
   */
  wait<Values = Record<string, unknown>>(threadId: string, run: RunRequest, options?: CallOptions): Promise<Values>;
  /** Starts a run and returns a stream of its events. */
  stream<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>>;
  /** Lists the thread's runs, newest first. */
  list(threadId: string, filter?: AgentRunFilter, options?: CallOptions): PageList<AgentRun>;
  get(threadId: string, runId: string, options?: CallOptions): Promise<AgentRun>;
  delete(threadId: string, runId: string, options?: CallOptions): Promise<void>;
  /**
   * Waits until an existing run ends and returns its final state. The timeouts and errors are the same as for `wait`.
   */
  join<Values = Record<string, unknown>>(threadId: string, runId: string, options?: JoinOptions): Promise<Values>;
  /**
   * Streams new events from a run. If the server stores events, `lastEventId` selects the event after which the stream
   * starts.
   */
  joinStream<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>>;
  /** Cancels a run. */
  cancel(threadId: string, runId: string, options?: CancelOptions): Promise<void>;
}

/** Calls for runs without a thread. The retry rules are the same as for `AgentRuns`. */
export interface StatelessRuns {
  /** Starts a run in the background. */
  create(run: StatelessRunRequest, options?: CallOptions): Promise<AgentRun>;
  /** Starts a run and returns its final state. The timeouts and errors are the same as for `runs.wait`. */
  wait<Values = Record<string, unknown>>(run: StatelessRunRequest, options?: CallOptions): Promise<Values>;
  /** Starts a run and returns a stream of its events. */
  stream<Values = Record<string, unknown>>(
    run: StatelessRunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>>;
  /**
   * Streams new events from a run. If the server stores events, `lastEventId` selects the event after which the stream
   * starts.
   */
  joinStream<Values = Record<string, unknown>>(runId: string, options?: JoinStreamOptions): Promise<RunStream<Values>>;
  /** Starts several runs with one HTTP request. The result has the same order as the request. */
  batch(runs: readonly StatelessRunRequest[], options?: CallOptions): Promise<AgentRun[]>;
  /** Cancels several runs, with or without a thread. The action `rollback` also deletes the runs and their data. */
  cancel(which: RunCancellation, options?: CallOptions & { action?: 'interrupt' | 'rollback' }): Promise<void>;
}

type Settings = Omit<Endpoint, 'name' | 'method' | 'path'>;

const CREATE: Settings = { body: RUN, makesRun: true };
const WAIT: Settings = { ...CREATE, response: 'result' };
const STREAM: Settings = { ...CREATE, response: 'events', options: { idleTimeoutMs: TIMEOUT } };
const JOIN: Settings = { response: 'result', query: { cancelOnDisconnect: [TRUE_OR_FALSE] } };
const JOIN_STREAM: Settings = {
  response: 'events',
  options: STREAM_OPTIONS,
  query: { ...JOIN.query, streamMode: [oneOrMoreOf(STREAM_MODES)] },
};
const CANCEL: Settings = {
  response: 'none',
  query: { action: [["'interrupt' or 'rollback'", (action) => action === 'interrupt' || action === 'rollback']] },
  isIdempotent: true,
};

export const RUNS: Table<AgentRuns> = endpoints('runs', {
  create: ['POST /threads/{thread_id}/runs', CREATE],
  wait: ['POST /threads/{thread_id}/runs/wait', WAIT],
  stream: ['POST /threads/{thread_id}/runs/stream', STREAM],
  list: ['GET /threads/{thread_id}/runs', { body: BODY, response: 'pages' }],
  get: ['GET /threads/{thread_id}/runs/{run_id}'],
  delete: ['DELETE /threads/{thread_id}/runs/{run_id}', { response: 'none' }],
  join: ['GET /threads/{thread_id}/runs/{run_id}/join', JOIN],
  joinStream: ['GET /threads/{thread_id}/runs/{run_id}/stream', JOIN_STREAM],
  cancel: [
    'POST /threads/{thread_id}/runs/{run_id}/cancel',
    { ...CANCEL, query: { ...CANCEL.query, wait: [TRUE_OR_FALSE, ONE_IF_TRUE] } },
  ],
});

export const STATELESS_RUNS: Table<StatelessRuns> = endpoints('statelessRuns', {
  create: ['POST /runs', CREATE],
  wait: ['POST /runs/wait', WAIT],
  stream: ['POST /runs/stream', STREAM],
  joinStream: ['GET /runs/{run_id}/stream', JOIN_STREAM],
  batch: ['POST /runs/batch', { body: listSchema(RUN as Schema<object>, 1), response: 'list', makesRun: true }],
  cancel: ['POST /runs/cancel', { ...CANCEL, body: BODY }],
});

/**
 * Waits for a run's result, or for a response of JSON-RPC. The server sends empty lines to keep the connection alive.
 * `idleTimeoutMs` also limits the wait for response headers, which may arrive only with the result.
 */
export async function waitForRun<Values>(service: AgentService, endpoint: Endpoint, args: Arguments): Promise<Values> {
  const call = preparedCall(endpoint, args);
  const { api, idleTimeoutMs, headTimeoutMs } = service;
  const known = { runId: call.ids.run_id, threadId: call.ids.thread_id };
  const wait = async (headers: Record<string, string>, record?: Parameters<typeof recordPlace>[0]): Promise<Values> => {
    const options = { ...call.options, timeoutMs: call.options?.timeoutMs ?? headTimeoutMs };
    const head = await api.open({ ...call, headers, options });
    const place = placeOf(head.headers['content-location'], known);
    if (record !== undefined) recordPlace(record, place);
    const text = await readText(head.body, { idleTimeoutMs, bytesMax: RESPONSE_BYTES_MAX }).catch((thrown: unknown) => {
      call.options?.signal?.throwIfAborted();
      const outlook = 'the run may still be active; call runs.join to wait for its end';
      const broken = { ...place, lastEvent: undefined, problem: failureOf(thrown).detail, outlook };
      throw new StreamError(api.factsOf(call), broken, { cause: thrown });
    });
    const { data, problem } = parseBody('any', text, head.headers);
    if (problem !== undefined || text === '') throw api.invalidResponse(call, head, problem ?? 'is not JSON');
    const fields = isObject(data) ? data : {};
    const [error, result] = endpoint.response === 'reply' ? [fields.error, fields.result] : [fields.__error__, data];
    // Some servers send `error: null` beside the result of a reply.
    if (error === undefined || error === null) return result as Values;
    throw new RunFailedError(place, runErrorOf(error), (shown) => api.masked(shown, call));
  };
  return endpoint.makesRun ? service.traced(call, wait) : wait({});
}
