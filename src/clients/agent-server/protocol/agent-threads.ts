import { INSPECT } from '../../../base/text.ts';
import { type Check, type Checks, checkedOptions, isObject } from '../../../config/checker.ts';
import { type CallOptions, OBJECT_OPTION } from '../../client-options.ts';
import { callOf, type Endpoint, endpoints, type PreparedCall, type Table } from '../../endpoint.ts';
import { ApiError, ConnectionError, InvalidAnswerError, TimeoutError } from '../../errors.ts';
import type { PageList } from '../../page.ts';
import { BODY } from '../../schema.ts';
import { newThreadId, tracedStream } from '../../tracing.ts';
import {
  type AgentServerOptions,
  AgentService,
  agentServerChecks,
  PAGE_BODY,
  type PageRequest,
  recordedInputs,
} from '../agent-service.ts';
import { type RunPlace, StreamError } from '../errors.ts';
import type { Checkpoint, ThreadHistory, ThreadState, ThreadStateUpdate } from '../thread.ts';
import { HISTORY, statePages } from '../threads.ts';
import {
  type Command,
  type CommandedRun,
  RESPOND,
  START,
  type StartedRun,
  sendCommand,
  type ThreadResponse,
  type ThreadRunRequest,
} from './thread-command.ts';
import {
  EVENTS_OPTIONS,
  eventsRequest,
  openThreadEvents,
  type ThreadEvents,
  type ThreadEventsOptions,
} from './thread-events.ts';
import { allPaths, type ThreadPaths } from './thread-paths.ts';

/** Options of `AgentThreads`. */
export interface AgentThreadsOptions extends AgentServerOptions {
  /**
   * Paths of the service's routes. The defaults are the reference chat application's paths. For an agent server, pass
   * `agentServerPaths`.
   */
  paths?: ThreadPaths | undefined;
}

/** A thread, as returned by `AgentThreads.list`. */
export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601 timestamp. */
  readonly updatedAt: string | null;
  readonly [field: string]: unknown;
}

/** Options of `AgentThreads.state`. */
export interface BootstrapOptions extends CallOptions {
  /**
   * What to do if the thread has no state. Pass `true` to create a state without messages, or an object to create a
   * state with the object's values. With `false`, the call rejects with the server's 404 error.
   * @default true
   */
  bootstrap?: boolean | Readonly<Record<string, unknown>>;
}

/** Options of `AgentThreads.run` and `AgentThreads.resume`. */
export type RunEventsOptions = Omit<ThreadEventsOptions, 'run' | 'lastEventId'>;

/**
 * A client for the agent streaming protocol, which connects a chat page to an agent. The client works with the
 * reference chat application. To connect to an agent server, pass `agentServerPaths`. Inside a traced function, calls
 * that create runs are recorded as child runs.
 */
export class AgentThreads {
  readonly #service: AgentService;
  readonly #calls: Table<Calls>;
  #commands = 0;

  constructor(options: AgentThreadsOptions) {
    const checks: Checks<AgentThreadsOptions> = { ...agentServerChecks, paths: OBJECT_OPTION };
    const { paths = {}, ...server } = checkedOptions('the options of AgentThreads', options, checks);
    this.#service = new AgentService(server);
    this.#calls = endpointsAt(paths);
  }

  /** Base URL of the service. */
  get url(): string {
    return this.#service.api.urlOf('');
  }

  /** Returns a UUIDv7 for a new thread. The thread is created by its first state or run. */
  newThreadId(): string {
    return newThreadId();
  }

  /**
   * Lists threads, most recent first. The server limits the number of threads per call. The reference chat application
   * returns at most 100 threads per call. To request more threads, set `offset`. For an agent server, use
   * `AgentServer`'s `threads.search` instead.
   */
  async list(page: PageRequest = {}, options?: CallOptions): Promise<readonly ThreadSummary[]> {
    return this.#service.call(this.#calls.list, { body: page, options });
  }

  /** Returns a thread's latest state. If the thread has no state, `bootstrap` decides whether to create one. */
  async state<Values = Record<string, unknown>>(
    threadId: string,
    options?: BootstrapOptions,
  ): Promise<ThreadState<Values>> {
    const { state, create, updateState } = this.#calls;
    const { own, ids, ...call } = callOf(state, { ids: { thread_id: threadId }, options });
    const { bootstrap = true } = own as BootstrapOptions;
    const { api } = this.#service;
    const latest = async (): Promise<ThreadState<Values>> => (await api.send<ThreadState<Values>>(call)).data;
    try {
      return await latest();
    } catch (thrown) {
      if (bootstrap === false || !(thrown instanceof ApiError && thrown.status === 404)) throw thrown;
    }
    if (create.path !== '') {
      const body = { thread_id: threadId, if_exists: 'do_nothing' };
      await api.send({ ...callOf(create, { options: call.options }), body });
      return latest();
    }
    const body = { values: bootstrap === true ? { messages: [] } : bootstrap };
    const update = callOf({ ...updateState, name: state.name }, { ids, body, options: call.options });
    const { data } = await api.send<Partial<ThreadState<Values>>>(update);
    // Some servers return only the new checkpoint, so the state must be requested again.
    return data.values === undefined ? latest() : (data as ThreadState<Values>);
  }

  /**
   * Changes the thread's state as if a node of the graph had changed it. Returns the new state or, on some servers,
   * only the new checkpoint.
   */
  async updateState<Values = Record<string, unknown>>(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<Partial<ThreadState<Values>> & { readonly checkpoint: Checkpoint | null }> {
    return this.#service.call(this.#calls.updateState, { ids: { thread_id: threadId }, body: update, options });
  }

  /** Lists the thread's states, newest first. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter: ThreadHistory = {},
    options?: CallOptions,
  ): PageList<ThreadState<Values>> {
    const args = { ids: { thread_id: threadId }, body: filter, options };
    return statePages<Values>(
      (endpoint, one) => this.#service.call(endpoint, one) as never,
      this.#calls.history,
      args,
      false,
    );
  }

  /** Deletes a thread and all its states. */
  async delete(threadId: string, options?: CallOptions): Promise<void> {
    return this.#service.call(this.#calls.delete, { ids: { thread_id: threadId }, options });
  }

  /**
   * Starts a run and resolves when the server accepts it. Rejects with a CommandError if the server refuses the run.
   */
  async start(threadId: string, run: ThreadRunRequest, options?: CallOptions): Promise<StartedRun> {
    return this.#command(this.#calls.start, threadId, run, options) as Promise<StartedRun>;
  }

  /** Responds to one or more interrupts, which lets the agent continue. */
  async respond(threadId: string, response: ThreadResponse, options?: CallOptions): Promise<CommandedRun> {
    return this.#command(this.#calls.respond, threadId, response, options);
  }

  /** Cancels a run. */
  async cancel(threadId: string, runId: string, options?: CallOptions): Promise<void> {
    const ids = { thread_id: threadId, run_id: runId };
    return this.#service.call(this.#calls.cancel, { ids, options });
  }

  /**
   * Opens a stream that returns the thread's stored events and then each new event. Resolves when the stream is open.
   */
  async events<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    return openThreadEvents(this.#service, eventsRequest(this.#calls.events, threadId, options));
  }

  /**
   * Starts a run and streams its events until the run ends. Read or close the stream, because an open stream keeps the
   * process alive. If you do not need the events, use `start` instead.
   */
  async run<Values = Record<string, unknown>>(
    threadId: string,
    run: ThreadRunRequest,
    options?: RunEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    return this.#runEvents(this.#calls.run, threadId, run, options);
  }

  /** Responds to interrupts and streams the continued run's events until the run ends. */
  async resume<Values = Record<string, unknown>>(
    threadId: string,
    response: ThreadResponse,
    options?: RunEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    return this.#runEvents(this.#calls.resume, threadId, response, options);
  }

  /** Aborts all pending calls and closes the connections. */
  async close(): Promise<void> {
    await this.#service.api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  [INSPECT](): string {
    return `AgentThreads { url: '${this.url}' }`;
  }

  async #command(endpoint: Endpoint, threadId: string, body: object, options?: CallOptions): Promise<CommandedRun> {
    const call = callOf(endpoint, { ids: { thread_id: threadId }, body, options });
    const { params } = call.body as Command;
    return this.#service.traced({ ...call, body: params }, (headers) => this.#send({ ...call, headers }));
  }

  #send(call: PreparedCall): Promise<CommandedRun> {
    return sendCommand(this.#service.api, { ...call, body: { id: ++this.#commands, ...(call.body as Command) } });
  }

  async #runEvents<Values>(
    endpoint: Endpoint,
    threadId: string,
    body: object,
    options: RunEventsOptions | undefined,
  ): Promise<ThreadEvents<Values>> {
    const { name } = endpoint;
    const call = callOf(endpoint, { ids: { thread_id: threadId }, body, options });
    const requestOf = (run: CommandedRun): PreparedCall => {
      // Skip events from before the command, because an interrupted run may continue with the same id.
      const since = options?.since ?? run.applied_through_seq;
      return eventsRequest({ ...this.#calls.events, name }, threadId, { ...options, since, run });
    };
    // Validates the options before the run starts.
    requestOf({});
    return tracedStream(name, recordedInputs(call.ids, (call.body as Command).params), async (trace) => {
      const run = await this.#send({ ...call, headers: this.#service.traceHeaders() });
      return openThreadEvents<Values>(this.#service, requestOf(run), trace).catch((thrown: unknown) => {
        throw unopenedStreamError(thrown, { runId: run.run_id, threadId });
      });
    });
  }
}

/** The client's endpoints. `create` creates a thread, and has an empty path if the server does not need this call. */
type Calls = Omit<AgentThreads, 'url' | 'close' | 'newThreadId' | symbol> & { create: unknown };

function endpointsAt(given: ThreadPaths): Table<Calls> {
  const { list, state, history, delete: remove, cancel, commands, stream, create = '' } = allPaths(given);
  const command = `POST ${commands}` as const;
  return endpoints<Calls>('threads', {
    list: [`GET ${list}`, { body: PAGE_BODY, response: 'list' }],
    state: [`GET ${state}`, { options: { bootstrap: BOOTSTRAP } }],
    updateState: [`POST ${state}`, { body: BODY }],
    history: [`POST ${history}`, HISTORY],
    delete: [`DELETE ${remove}`, { response: 'none' }],
    cancel: [`POST ${cancel}`, { response: 'none', isIdempotent: true }],
    start: [command, { body: START }],
    respond: [command, { body: RESPOND }],
    run: [command, { body: START, options: EVENTS_OPTIONS }],
    resume: [command, { body: RESPOND, options: EVENTS_OPTIONS }],
    events: [`POST ${stream}`, { options: EVENTS_OPTIONS }],
    create: [`POST ${create}`, { isIdempotent: true }],
  });
}

const BOOTSTRAP: Check = [
  'true, false or an object of values',
  (value) => typeof value === 'boolean' || isObject(value),
];

/** Returns the error for a run that started but whose stream could not be opened. The error contains the run's id. */
function unopenedStreamError(thrown: unknown, place: RunPlace): unknown {
  const isAnswer = thrown instanceof ApiError || thrown instanceof InvalidAnswerError;
  if (!isAnswer && !(thrown instanceof ConnectionError) && !(thrown instanceof TimeoutError)) return thrown;
  const { request, message } = thrown;
  const outlook = 'the run may still be active';
  return new StreamError(request, { ...place, lastEvent: undefined, problem: message, outlook }, { cause: thrown });
}
