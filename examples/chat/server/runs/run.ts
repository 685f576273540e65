import type { Callbacks } from '@langchain/core/callbacks/manager';
import { HumanMessage } from '@langchain/core/messages';
import type { RunnableConfig } from '@langchain/core/runnables';
import { Command, isGraphInterrupt, type StateSnapshot } from '@langchain/langgraph';
import type { ProtocolEvent } from '@langchain/langgraph/stream';
import { withoutKeys } from '../errors.ts';
import type { NewEvent } from '../storage/schema.ts';
import { RunLostError, type ThreadStore } from '../storage/store.ts';
import { answerByMessage } from './approval.ts';
import { fieldsOf, messagesOf } from './messages.ts';
import { type LifecycleStatus, RunEvents } from './run-events.ts';

/** The methods of an agent that the chat calls. Any compiled graph that has a checkpointer implements these methods. */
export interface Agent {
  readonly name?: string | undefined;
  readonly checkpointer?: unknown;
  readonly channels?: object;
  // biome-ignore lint/suspicious/noExplicitAny: The types of graphs are generic over their state, which is unknown here.
  streamEvents(input: any, options: any): Promise<AsyncIterable<ProtocolEvent>> | AsyncIterable<ProtocolEvent>;
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(
    config: RunnableConfig,
    options?: { limit?: number; before?: RunnableConfig; filter?: Record<string, unknown> },
  ): AsyncIterableIterator<StateSnapshot>;
  // biome-ignore lint/suspicious/noExplicitAny: As above.
  updateState(config: any, values: any, asNode?: string): Promise<RunnableConfig>;
}

export type Handlers = Extract<Callbacks, readonly unknown[]>;

export interface RunOptions {
  readonly agent: Agent;
  readonly store: ThreadStore;
  readonly callbacks: Handlers;
  readonly log: (line: string) => void;
  readonly threadId: string;
  readonly runId: string;
  readonly traceId: string;
  /** Input of the agent: a command, or a state whose messages are LangChain's objects with ids. */
  readonly input: unknown;
  /** Id of the checkpoint from which the run starts. @default the newest checkpoint */
  readonly checkpointId?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Error message of a run whose process no longer renews the run's lease. */
export const PROCESS_ENDED = 'the process of the run has ended';

const RUN_MINUTES_MAX = 15;
/** Maximum number of steps of the agent. Steps of subagents do not count. */
const STEPS_MAX = 50;
const PENDING_EVENTS_MAX = 1_000;
const BATCH_EVENTS_MAX = 500;

/** How a run ends, by the reason why it was stopped. If a run is `lost`, another process has ended it. */
const ENDS = {
  cancelled: ['interrupted', 'cancelled'],
  closing: ['interrupted', PROCESS_ENDED],
  overdue: ['failed', `The run took longer than ${RUN_MINUTES_MAX} minutes.`],
  broken: ['failed', 'The state of the thread cannot be stored.'],
  lost: ['failed', ''],
} as const satisfies Record<string, readonly [LifecycleStatus, string]>;

/** A run on this instance. It waits for its turn, runs the agent, and writes the agent's events to the thread's log. */
export class Run {
  readonly #options: RunOptions;
  readonly #events: RunEvents;
  readonly #abort = new AbortController();
  #stopReason: keyof typeof ENDS | undefined;
  #isWaiting = true;
  #startTurn: () => void = () => {};
  readonly #turn = new Promise<void>((resolve) => {
    this.#startTurn = resolve;
  });
  #pending: NewEvent[] = [];
  #writing: Promise<void> | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#events = new RunEvents(options.runId, options.agent.name ?? 'agent');
  }

  get threadId(): string {
    return this.#options.threadId;
  }

  get runId(): string {
    return this.#options.runId;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Starts the run when its turn has come. */
  begin(): void {
    this.#isWaiting = false;
    this.#startTurn();
  }

  /**
   * Makes the run end soon. A waiting run that is cancelled ends when its turn comes. If `stop` is called several
   * times, the first reason counts.
   */
  stop(reason: keyof typeof ENDS): void {
    this.#stopReason ??= reason;
    this.#abort.abort(this.#stopError);
    if (reason !== 'cancelled') this.#startTurn();
  }

  /** Executes the run and writes its end to the thread's log. Never rejects. */
  async run(): Promise<void> {
    const { store, threadId, runId, log } = this.#options;
    await this.#turn;
    const deadline = setTimeout(() => this.stop('overdue'), RUN_MINUTES_MAX * 60_000);
    let failure: Error | undefined;
    try {
      if (this.#stopReason === undefined) await this.#drive();
    } catch (error) {
      if (!isGraphInterrupt(error)) failure = error as Error;
    }
    clearTimeout(deadline);
    if (this.#stopReason !== undefined) this.#endTrace();
    if (this.#stopReason === 'lost') return;
    const [status, error] = this.#endOf(failure);
    try {
      await this.#writing;
      await store.end(threadId, runId, this.#events.lifecycle(status, { error }));
    } catch (cause) {
      // The run's lease will expire. An instance that can reach the store then ends the run.
      if (!(cause instanceof RunLostError))
        log(`run ${runId} of thread ${threadId} cannot be ended: ${(cause as Error).message}`);
    }
  }

  #endOf(failure: Error | undefined): readonly [LifecycleStatus, string?] {
    if (this.#stopReason !== undefined) return ENDS[this.#stopReason];
    if (failure !== undefined) return ['failed', failureText(failure)];
    return [this.#events.isInputRequested ? 'interrupted' : 'completed'];
  }

  async #drive(): Promise<void> {
    const { agent, callbacks, threadId, runId, traceId, checkpointId, metadata, log } = this.#options;
    const { input, questionId } = await this.#input();
    await this.#write(this.#events.lifecycle('running', { question_id: questionId }));
    const stream = await agent.streamEvents(input, {
      version: 'v3',
      runId,
      runName: 'chat turn',
      configurable: {
        thread_id: threadId,
        run_id: runId,
        trace_id: traceId,
        on_store_failure: (error: Error) => {
          if (this.#stopReason === undefined) log(`the checkpoints of run ${runId} cannot be stored: ${error.message}`);
          this.stop('broken');
        },
        ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
      },
      metadata: { ...metadata, thread_id: threadId },
      callbacks: [...callbacks],
      recursionLimit: STEPS_MAX,
      signal: this.#abort.signal,
    });
    const { toolCalls, subagents } = fieldsOf(stream);
    ignoreRejections({ toolCalls, subagents });
    for await (const event of stream) await this.#write(...this.#events.convert(event));
  }

  /**
   * Adds events to the log. If the store is busy, events are collected and written together. Waits only if too many
   * events are pending.
   */
  async #write(...events: readonly NewEvent[]): Promise<void> {
    this.#pending.push(...events);
    if (this.#writing === undefined && events.length > 0) {
      this.#writing = this.#writePending();
      // The run awaits this promise later, so a rejection is not unhandled.
      this.#writing.catch(() => {});
    }
    if (this.#pending.length > PENDING_EVENTS_MAX) await this.#writing;
  }

  async #writePending(): Promise<void> {
    const { store, threadId, runId } = this.#options;
    try {
      while (this.#pending.length > 0) await store.append(threadId, runId, this.#pending.splice(0, BATCH_EVENTS_MAX));
      this.#writing = undefined;
    } catch (error) {
      // `#writing` stays rejected, so nothing more is written. Writing again could duplicate events, because the failed
      // write may have stored some.
      this.stop(error instanceof RunLostError ? 'lost' : 'broken');
      throw error;
    }
  }

  /** Ends the trace of a stopped run, because a stopped graph does not report its own end. */
  #endTrace(): void {
    const { callbacks, runId } = this.#options;
    for (const callback of callbacks)
      if ('handleChainError' in callback) void callback.handleChainError?.(this.#stopError, runId);
  }

  /** The error of a stopped run in its trace. Only an `AbortError` is recorded as cancelled. */
  get #stopError(): Error {
    const isStopped = this.#stopReason === 'cancelled' || this.#stopReason === 'closing';
    return isStopped ? new DOMException('The run was stopped.', 'AbortError') : new Error('The run was ended.');
  }

  /**
   * Returns the agent's input and the id of the message that the run answers. If the thread is waiting for an answer, a
   * message counts as that answer.
   */
  async #input(): Promise<{ readonly input: unknown; readonly questionId: unknown }> {
    const { agent, threadId, checkpointId, input } = this.#options;
    const place = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    const { tasks, values } = await agent.getState({ configurable: { thread_id: threadId, ...place } });
    const [interrupt] = tasks.flatMap(({ interrupts }) => interrupts);
    const isAnswer = interrupt !== undefined && checkpointId === undefined && input !== null;
    if (!isAnswer) return { input, questionId: lastQuestionId(input) ?? lastQuestionId(values) };
    const answer = input instanceof Command ? input : new Command({ resume: answerByMessage(interrupt.value, input) });
    return { input: answer, questionId: lastQuestionId(values) };
  }
}

/**
 * Handles the rejections of promises that the chat does not use. LangChain exposes a run's tool calls and subagents as
 * promises and rejects them if the run is stopped. Unhandled, a rejection would end the process.
 */
function ignoreRejections(part: unknown): void {
  const { toolCalls, subagents, ...others } = fieldsOf(part);
  for (const value of Object.values(others)) if (value instanceof Promise) value.catch(() => {});
  const ignoreAll = async (parts: AsyncIterable<unknown>): Promise<void> => {
    for await (const inner of parts) ignoreRejections(inner);
  };
  for (const parts of [toolCalls, subagents]) {
    if (fieldsOf(parts)[Symbol.asyncIterator as never] !== undefined)
      void ignoreAll(parts as AsyncIterable<unknown>).catch(() => {});
  }
}

function lastQuestionId(values: unknown): string | undefined {
  return messagesOf(values).findLast((message) => HumanMessage.isInstance(message))?.id;
}

/** Returns a LangChain error's message, without keys and without the developer URL that LangChain appends. */
export function failureText({ message }: Error): string {
  return withoutKeys(message.split('\n\nTroubleshooting URL: ')[0] ?? message);
}
