import { inspect } from 'node:util';
import { clock } from '../base/clock.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { type Checks, checkedOptions, wholeFrom } from '../base/options.ts';
import { newRunId } from '../run/ids.ts';
import type { AgentServerOptions } from './agent-server.ts';
import { AgentService } from './agent-service.ts';
import type { Api } from './api.ts';
import { checkedBody, OBJECT, TRUTH } from './body-rules.ts';
import { type CallOptions, clientChecks } from './client-options.ts';
import type { PageList } from './page.ts';
import { PAGE_RULES, type PageRequest } from './page-request.ts';
import { serviceApi } from './service-api.ts';
import { toldUnopened } from './stream-break.ts';
import { type StreamTrace, tracedStream } from './stream-trace.ts';
import type { Checkpoint, ThreadHistory, ThreadState, ThreadStateUpdate } from './thread.ts';
import {
  type CommandedRun,
  respondParams,
  type StartedRun,
  sendCommand,
  startParams,
  type ThreadResponse,
  type ThreadRunRequest,
} from './thread-command.ts';
import { eventsOptions, openThreadEvents, type ThreadEvents, type ThreadEventsOptions } from './thread-events.ts';
import { type AllPaths, allPaths, type ThreadPaths, threadPath } from './thread-paths.ts';
import { type BootstrapOptions, latestState, statePages } from './thread-states.ts';
import { STATE_RULES } from './threads.ts';

export interface AgentThreadsOptions extends AgentServerOptions {
  /** Where the calls are, if not where the reference chat application has them; `agentServerPaths` for an agent server. */
  paths?: ThreadPaths | undefined;
}

/** A thread, as a list shows it. */
export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601. */
  readonly updatedAt: string | null;
  readonly [field: string]: unknown;
}

/** Options of the events of a run that is made for them. */
export type RunEventsOptions = Omit<ThreadEventsOptions, 'run' | 'lastEventId'>;

/** A command and its name, as it is sent and as its run is called. */
interface NamedCommand {
  readonly name: string;
  readonly method: 'run.start' | 'input.respond';
  readonly params: Record<string, unknown>;
}

/**
 * A client of the agent streaming protocol, by which a chat talks with its agent: of the reference chat application, and by
 * `agentServerPaths` of an agent server. Calls that make runs are sent once, and are runs themselves where they are made within one.
 */
export class AgentThreads {
  readonly #api: Api;
  readonly #service: AgentService;
  readonly #paths: AllPaths;
  #commands = 0;

  constructor(options: AgentThreadsOptions) {
    const checked = checkedOptions<AgentThreadsOptions>('the options of AgentThreads', options, checks);
    const { url, paths = {}, idleTimeoutMs = 300_000, propagate = true, ...client } = checked;
    this.#api = serviceApi({ option: 'url', url, credentials: { 'x-api-key': client.apiKey } }, client);
    const { timeoutMs, headers = {} } = client;
    this.#service = new AgentService({ api: this.#api, idleTimeoutMs, timeoutMs, propagate, headers });
    this.#paths = allPaths(paths);
  }

  /** The address of the service. */
  get url(): string {
    return this.#api.urlOf('');
  }

  /** An id for a new thread, a UUIDv7; the thread is there with its first state or run. */
  newThreadId(): string {
    return newRunId(clock.nowUs());
  }

  /**
   * The latest threads first: as many as the application gives unless it is told, which of the reference one are 100, its most.
   * `offset` goes on from there. An agent server has `threads.search` of `AgentServer` for it.
   */
  async list(page: PageRequest = {}, options?: CallOptions): Promise<readonly ThreadSummary[]> {
    const name = 'threads.list';
    const query = checkedBody(name, page, PAGE_RULES) as PageRequest & Record<string, undefined>;
    return this.#service.json(
      { name, method: 'GET', path: threadPath(name, this.#paths.list), query, options },
      'list',
    );
  }

  /** The latest state of a thread, which is made where it has none. */
  async state<Values = Record<string, unknown>>(
    threadId: string,
    options?: BootstrapOptions,
  ): Promise<ThreadState<Values>> {
    return latestState<Values>(this.#service, this.#paths, threadId, options);
  }

  /** Changes the state, as if a node had. Some servers answer with the new one, others with its checkpoint alone. */
  async updateState<Values = Record<string, unknown>>(
    threadId: string,
    update: ThreadStateUpdate,
    options?: CallOptions,
  ): Promise<Partial<ThreadState<Values>> & { readonly checkpoint: Checkpoint | null }> {
    const name = 'threads.updateState';
    const body = checkedBody(name, update, STATE_RULES);
    const path = threadPath(name, this.#paths.state, { thread_id: threadId });
    return this.#service.json({ name, method: 'POST', path, body, options });
  }

  /** The states, the latest first, each page those before the last of the one ahead. */
  history<Values = Record<string, unknown>>(
    threadId: string,
    filter: ThreadHistory = {},
    options?: CallOptions,
  ): PageList<ThreadState<Values>> {
    return statePages<Values>(this.#service, this.#paths.history, threadId, filter, options);
  }

  /** Deletes a thread with its states. */
  async delete(threadId: string, options?: CallOptions): Promise<void> {
    const name = 'threads.delete';
    const path = threadPath(name, this.#paths.delete, { thread_id: threadId });
    return this.#service.none({ name, method: 'DELETE', path, options });
  }

  /** Starts a run, and resolves when the server has taken it. Rejects with a CommandError where it does not. */
  async start(threadId: string, run: ThreadRunRequest, options?: CallOptions): Promise<StartedRun> {
    const name = 'threads.start';
    const command = { name, method: 'run.start', params: startParams(name, run) } as const;
    return this.#traced(threadId, command, options) as Promise<StartedRun>;
  }

  /** Answers what the agent has asked by an interrupt, with which it goes on. */
  async respond(threadId: string, response: ThreadResponse, options?: CallOptions): Promise<CommandedRun> {
    const name = 'threads.respond';
    return this.#traced(threadId, { name, method: 'input.respond', params: respondParams(name, response) }, options);
  }

  /** Ends a run. */
  async cancel(threadId: string, runId: string, options?: CallOptions): Promise<void> {
    const name = 'threads.cancel';
    const path = threadPath(name, this.#paths.cancel, { thread_id: threadId, run_id: runId });
    return this.#service.none({ name, method: 'POST', path, isIdempotent: true, options });
  }

  /**
   * What happens in a thread: all that the server has kept, and then what comes. It is open when this resolves; as what is kept
   * comes first, a run that was started before misses nothing.
   */
  async events<Values = Record<string, unknown>>(
    threadId: string,
    options?: ThreadEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    return this.#open(threadId, 'threads.events', options, undefined);
  }

  /**
   * Starts a run and gives its events, which end with it. They have to be read or closed, as their connection keeps the process
   * alive; `start` is for a run whose events nobody reads.
   */
  async run<Values = Record<string, unknown>>(
    threadId: string,
    run: ThreadRunRequest,
    options?: RunEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    const name = 'threads.run';
    return this.#runEvents(threadId, { name, method: 'run.start', params: startParams(name, run) }, options);
  }

  /** Answers an interrupt and gives the events of what the agent goes on with, which end with it; `respond` gives none. */
  async resume<Values = Record<string, unknown>>(
    threadId: string,
    response: ThreadResponse,
    options?: RunEventsOptions,
  ): Promise<ThreadEvents<Values>> {
    const name = 'threads.resume';
    return this.#runEvents(threadId, { name, method: 'input.respond', params: respondParams(name, response) }, options);
  }

  /** Ends what is under way, and closes the connections. */
  async close(): Promise<void> {
    await this.#api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  [inspect.custom](): string {
    return `AgentThreads { url: '${this.url}' }`;
  }

  #traced(threadId: string, command: NamedCommand, options: CallOptions | undefined): Promise<CommandedRun> {
    const inputs = { thread_id: threadId, ...command.params };
    return this.#service.traced(command.name, inputs, (headers) => this.#send(threadId, command, headers, options));
  }

  #send(
    threadId: string,
    { name, method, params }: NamedCommand,
    headers: Record<string, string>,
    options: CallOptions | undefined,
  ): Promise<CommandedRun> {
    const path = threadPath(name, this.#paths.commands, { thread_id: threadId });
    return sendCommand(this.#service, { name, path, headers, options }, { id: ++this.#commands, method, params });
  }

  async #runEvents<Values>(
    threadId: string,
    command: NamedCommand,
    given: RunEventsOptions | undefined,
  ): Promise<ThreadEvents<Values>> {
    const { name, params } = command;
    const wanted = { ...given, run: {} };
    // What is wrong with them must not be found when the run is under way.
    const { options } = eventsOptions(name, wanted);
    return tracedStream(name, { thread_id: threadId, ...params }, async (trace) => {
      const run = await this.#send(threadId, command, this.#service.traceHeaders(), options);
      // What the thread has had before is not of it, even where it goes on under the id by which it was interrupted.
      const since = wanted.since ?? run.applied_through_seq;
      return this.#open<Values>(threadId, name, { ...wanted, since, run }, trace).catch((thrown: unknown) => {
        throw toldUnopened(thrown, { runId: run.run_id, threadId });
      });
    });
  }

  #open<Values>(
    threadId: string,
    name: string,
    given: ThreadEventsOptions | undefined,
    trace: StreamTrace | undefined,
  ): Promise<ThreadEvents<Values>> {
    const { own, options, body } = eventsOptions(name, given);
    const path = threadPath(name, this.#paths.stream, { thread_id: threadId });
    const call = { name, method: 'POST', path, body, options } as const;
    return openThreadEvents(this.#service, { call, threadId, run: own.run, trace }, own);
  }
}

const checks: Checks<AgentThreadsOptions> = {
  ...clientChecks,
  url: ['an address', (value) => typeof value === 'string' || value instanceof URL],
  paths: OBJECT,
  idleTimeoutMs: wholeFrom(1, DELAY_MAX_MS),
  propagate: TRUTH,
};
