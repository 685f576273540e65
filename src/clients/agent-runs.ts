import type { Check, Checks } from '../base/options.ts';
import type { AgentRun } from './agent-run.ts';
import { type AgentService, agentPath, splitOptions } from './agent-service.ts';
import { type BodyRules, checkedBody, oneOf, someOf, TEXT, TEXTS, TRUTH } from './body-rules.ts';
import type { Query } from './call.ts';
import type { CallOptions } from './client-options.ts';
import type { PageList } from './page.ts';
import { PAGE_RULES, type PageRequest } from './page-request.ts';
import { RUN_RULES, type RunRequest, STREAM_MODES, type StreamMode } from './run-request.ts';
import { openRunStream, type RunStream, STREAM_CHECKS, type StreamOptions } from './run-stream.ts';
import { waitForRun } from './run-wait.ts';
import { tracedStream } from './stream-trace.ts';

export interface RunFilter extends PageRequest {
  status?: AgentRun['status'];
  /** The fields that are wanted. */
  select?: readonly string[];
}

export interface JoinOptions extends CallOptions {
  /** Whether the run is cancelled when this connection ends. @default false */
  cancelOnDisconnect?: boolean;
}

export interface JoinStreamOptions extends StreamOptions {
  /** As for `join`. @default false */
  cancelOnDisconnect?: boolean;
  /** What is streamed; by default all that the run was asked for. */
  streamMode?: StreamMode | readonly StreamMode[];
}

export interface CancelOptions extends CallOptions {
  /** Whether it takes until the run has ended. @default false */
  wait?: boolean;
  /** `rollback` deletes the run and what it has kept. @default 'interrupt' */
  action?: 'interrupt' | 'rollback';
}

/**
 * Runs of threads. What makes a run is sent once: it is tried again only where there was no connection, or the server had no time
 * for it (429).
 */
export class AgentRuns {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  /** Starts a run in the background. */
  async create(threadId: string, run: RunRequest, options?: CallOptions): Promise<AgentRun> {
    const name = 'runs.create';
    const body = checkedBody(name, run, RUN_RULES);
    const path = runsPath(name, threadId);
    return this.#service.traced(name, { thread_id: threadId, ...body }, (headers) =>
      this.#service.json({ name, method: 'POST', path, body, headers, options }),
    );
  }

  /**
   * Makes a run and waits for the state that it ends with, however long it takes; a `timeoutMs` of the call or the
   * client is for the head of the answer alone, and without one the idle time is.
   * Rejects with a RunFailedError where the run fails.
   */
  async wait<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: CallOptions,
  ): Promise<Values> {
    const name = 'runs.wait';
    const body = checkedBody(name, run, RUN_RULES);
    const path = runsPath(name, threadId, 'wait');
    return this.#service.traced(name, { thread_id: threadId, ...body }, (headers, callRun) => {
      const call = { name, method: 'POST', path, body, headers, options } as const;
      return waitForRun<Values>(this.#service, call, { runId: undefined, threadId }, callRun);
    });
  }

  /** Makes a run and streams what it does. */
  async stream<Values = Record<string, unknown>>(
    threadId: string,
    run: RunRequest,
    options?: Omit<StreamOptions, 'lastEventId'>,
  ): Promise<RunStream<Values>> {
    const name = 'runs.stream';
    const { own, options: common } = splitOptions(name, options, { idleTimeoutMs: STREAM_CHECKS.idleTimeoutMs });
    const body = checkedBody(name, run, RUN_RULES);
    const path = runsPath(name, threadId, 'stream');
    return tracedStream(name, { thread_id: threadId, ...body }, (trace) => {
      const headers = this.#service.traceHeaders();
      const call = { name, method: 'POST', path, body, headers, options: common } as const;
      const isKept = body.stream_resumable === true;
      return openRunStream<Values>(this.#service, { call, threadId, isOfRun: true, isKept, trace, ...own });
    });
  }

  /** The latest first. */
  list(threadId: string, filter: RunFilter = {}, options?: CallOptions): PageList<AgentRun> {
    const name = 'runs.list';
    return this.#service.list(() => {
      const query = checkedBody(name, filter, FILTER_RULES) as RunFilter & Record<string, undefined>;
      return { name, method: 'GET', path: runsPath(name, threadId), query, options };
    });
  }

  async get(threadId: string, runId: string, options?: CallOptions): Promise<AgentRun> {
    const name = 'runs.get';
    return this.#service.json({ name, method: 'GET', path: runPath(name, threadId, runId), options });
  }

  async delete(threadId: string, runId: string, options?: CallOptions): Promise<void> {
    const name = 'runs.delete';
    return this.#service.none({ name, method: 'DELETE', path: runPath(name, threadId, runId), options });
  }

  /** Waits for the state that a run ends with, as `wait` does. */
  async join<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinOptions,
  ): Promise<Values> {
    const name = 'runs.join';
    const { own, options: common } = splitOptions(name, options, { cancelOnDisconnect: TRUTH });
    const path = runPath(name, threadId, runId, 'join');
    const query = { cancel_on_disconnect: own.cancelOnDisconnect };
    const call = { name, method: 'GET', path, query, options: common } as const;
    return waitForRun(this.#service, call, { runId, threadId });
  }

  /** Streams what a run does from now on, or after `lastEventId` where the server keeps its events. */
  async joinStream<Values = Record<string, unknown>>(
    threadId: string,
    runId: string,
    options?: JoinStreamOptions,
  ): Promise<RunStream<Values>> {
    const name = 'runs.joinStream';
    const { own, options: common } = splitOptions(name, options, JOIN_STREAM_CHECKS);
    const path = runPath(name, threadId, runId, 'stream');
    const call = { name, method: 'GET', path, query: joinQuery(own), options: common } as const;
    const { lastEventId, idleTimeoutMs } = own;
    return openRunStream(this.#service, { call, threadId, runId, isOfRun: true, lastEventId, idleTimeoutMs });
  }

  /** Ends a run. */
  async cancel(threadId: string, runId: string, options?: CancelOptions): Promise<void> {
    const name = 'runs.cancel';
    const { own, options: common } = splitOptions(name, options, { wait: TRUTH, action: CANCEL_ACTION });
    const path = runPath(name, threadId, runId, 'cancel');
    const query = { wait: own.wait === true ? 1 : undefined, action: own.action };
    return this.#service.none({ name, method: 'POST', path, query, isIdempotent: true, options: common });
  }
}

export const CANCEL_ACTION: Check = oneOf('interrupt', 'rollback');

export const JOIN_STREAM_CHECKS: Checks<Omit<JoinStreamOptions, keyof CallOptions>> = {
  ...STREAM_CHECKS,
  cancelOnDisconnect: TRUTH,
  streamMode: someOf(...STREAM_MODES),
};

/** The query of a stream that is joined. */
export function joinQuery({ streamMode, cancelOnDisconnect }: JoinStreamOptions): Query {
  const modes = streamMode === undefined ? undefined : [streamMode].flat();
  return { stream_mode: modes, cancel_on_disconnect: cancelOnDisconnect };
}

function runsPath(call: string, threadId: string, ...below: readonly string[]): string {
  return agentPath(call, 'threads', { thread_id: threadId }, 'runs', ...below);
}

function runPath(call: string, threadId: string, runId: string, ...below: readonly string[]): string {
  return agentPath(call, 'threads', { thread_id: threadId }, 'runs', { run_id: runId }, ...below);
}

const FILTER_RULES: BodyRules<RunFilter> = { ...PAGE_RULES, status: TEXT, select: TEXTS };
