import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { Command, isGraphInterrupt } from '@langchain/langgraph';
import type { NewEvent } from '../storage/schema.ts';
import { RunLostError, type Store } from '../storage/store.ts';
import type { Agent, Handlers } from './agent.ts';
import { answerByMessage } from './approval.ts';
import { type Fields, fieldsOf } from './messages.ts';
import { type LifecycleStatus, RunEvents } from './run-events.ts';

export interface RunRequest {
  readonly input: unknown;
  /** The checkpoint that the run begins with. @default the newest */
  readonly checkpointId?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface RunOptions extends RunRequest {
  readonly agent: Agent;
  readonly store: Store;
  readonly callbacks: Handlers;
  /** Replaces secrets in texts that clients can read. */
  readonly mask: (text: string) => string;
  readonly log: (line: string) => void;
  readonly threadId: string;
  readonly runId: string;
  readonly traceId: string;
}

/** Why a run ended whose process no longer renews its lease. */
export const PROCESS_ENDED = 'the process that ran it has ended';

const RUN_MINUTES_MAX = 15;
/** Steps of the agent, without the steps of its subagents. */
const STEPS_MAX = 50;
const PENDING_EVENTS_MAX = 1_000;
const BATCH_EVENTS_MAX = 500;

/** One run on this instance: waits for its turn, drives the agent, and writes its events to the log of the thread. */
export class Run {
  readonly #options: RunOptions;
  readonly #events: RunEvents;
  readonly #stop = new AbortController();
  #startTurn: () => void = () => {};
  readonly #turn = new Promise<void>((resolve) => {
    this.#startTurn = resolve;
  });
  readonly #log: EventWriter;
  #state: 'waiting' | 'running' | 'cancelled' | 'closing' | 'overdue' | 'lost' | 'broken' = 'waiting';

  constructor(options: RunOptions) {
    this.#options = options;
    this.#events = new RunEvents(options.runId, options.agent.name ?? 'agent', options.mask);
    this.#log = new EventWriter(options.store, options.threadId, options.runId);
  }

  get threadId(): string {
    return this.#options.threadId;
  }

  get runId(): string {
    return this.#options.runId;
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Runs to the end, which is written to the log of the thread. Never rejects. */
  async run(): Promise<void> {
    const { store, threadId, runId, log } = this.#options;
    await this.#turn;
    const deadline = setTimeout(() => this.stop('overdue'), RUN_MINUTES_MAX * 60_000);
    try {
      const [status, fields] = await this.#outcome();
      await this.#log.flush();
      await store.end(threadId, runId, this.#events.lifecycle(status, fields));
    } catch (error) {
      // The lease expires, and then an instance that reaches the store ends the run.
      if (!(error instanceof RunLostError))
        log(`run ${runId} of thread ${threadId} cannot be ended: ${(error as Error).message}`);
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Starts a run that waits. */
  begin(): void {
    if (this.#state === 'waiting') this.#state = 'running';
    this.#startTurn();
  }

  /** Ends the run soon, or as soon as it begins. */
  stop(reason: 'cancelled' | 'closing' | 'overdue' | 'lost' | 'broken'): void {
    if (this.#state !== 'running' && this.#state !== 'waiting') return;
    const wasWaiting = this.#state === 'waiting';
    this.#state = reason;
    this.#stop.abort();
    if (wasWaiting && reason !== 'cancelled') this.#startTurn();
  }

  async #outcome(): Promise<[LifecycleStatus, Fields?]> {
    try {
      if (this.#state === 'running') await this.#drive();
    } catch (error) {
      if (this.#state === 'running' && !isGraphInterrupt(error)) return ['failed', { error: reasonOf(error as Error) }];
    }
    if (this.#state !== 'running') this.#endTrace();
    if (this.#state === 'lost') throw new RunLostError();
    if (this.#state === 'cancelled') return ['interrupted', { error: 'cancelled' }];
    if (this.#state === 'closing') return ['interrupted', { error: PROCESS_ENDED }];
    if (this.#state === 'broken') return ['failed', { error: 'The state of the thread cannot be stored.' }];
    if (this.#state === 'overdue') return ['failed', { error: `The run took longer than ${RUN_MINUTES_MAX} minutes.` }];
    return [this.#events.isInputRequested ? 'interrupted' : 'completed'];
  }

  async #drive(): Promise<void> {
    const { agent, callbacks, threadId, runId, traceId, checkpointId, metadata, log } = this.#options;
    const { input, questionId } = await this.#input();
    this.#log.write(this.#events.lifecycle('running', { question_id: questionId }));
    const stream = await agent.streamEvents(input, {
      version: 'v3',
      runId,
      runName: 'chat turn',
      configurable: {
        thread_id: threadId,
        run_id: runId,
        trace_id: traceId,
        on_store_failure: (error: Error) => {
          if (this.#state === 'running') log(`the checkpoints of run ${runId} cannot be stored: ${error.message}`);
          this.stop('broken');
        },
        ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
      },
      metadata: { ...metadata, thread_id: threadId },
      callbacks: [...callbacks],
      recursionLimit: STEPS_MAX,
      signal: this.#stop.signal,
    });
    const { toolCalls, subagents } = fieldsOf(stream);
    ignoreRejections({ toolCalls, subagents });
    for await (const event of stream) {
      this.#log.write(...this.#events.convert(event));
      await this.#log.room();
    }
  }

  /** A graph that is stopped does not report its own end. */
  #endTrace(): void {
    const { callbacks, runId } = this.#options;
    const isStopped = this.#state === 'cancelled' || this.#state === 'closing';
    const error = isStopped ? new DOMException('The run was stopped.', 'AbortError') : new Error('The run was ended.');
    for (const callback of callbacks)
      if ('handleChainError' in callback) void callback.handleChainError?.(error, runId);
  }

  /** The input of the agent, and the message that the run answers. A thread that waits for an answer receives the input as that answer. */
  async #input(): Promise<{ readonly input: unknown; readonly questionId: unknown }> {
    const { agent, threadId, checkpointId } = this.#options;
    let input = withIds(this.#options.input);
    const place = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    const { tasks, values } = await agent.getState({ configurable: { thread_id: threadId, ...place } });
    const [interrupt] = tasks.flatMap(({ interrupts }) => interrupts);
    const isAnswer = interrupt !== undefined && checkpointId === undefined && input !== null;
    const questionId = lastQuestionId(isAnswer ? undefined : input) ?? lastQuestionId(values);
    if (isAnswer && !(input instanceof Command))
      input = new Command({ resume: answerByMessage(interrupt.value, input) });
    return { input, questionId };
  }
}

/**
 * LangChain offers the tool calls and subagents of a run as streams of promises, and rejects the promises if the run is
 * stopped. A rejection that nobody handles would end the process.
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

/** Gives each message of an input an id, so that events can name the message that a run answers. */
function withIds(input: unknown): unknown {
  const { messages } = fieldsOf(input);
  if (messages === undefined || input instanceof Command) return input;
  const list: unknown[] = Array.isArray(messages) ? messages : [messages];
  const named = list.map((message) => {
    if (typeof message === 'string') return { type: 'human', content: message, id: uuidv7() };
    const { id, lc } = fieldsOf(message);
    return id === undefined && lc === undefined ? { ...fieldsOf(message), id: uuidv7() } : message;
  });
  return { ...fieldsOf(input), messages: named };
}

function lastQuestionId(values: unknown): unknown {
  const { messages } = fieldsOf(values);
  const list: unknown[] = Array.isArray(messages) ? messages : [];
  return list.map(fieldsOf).findLast(({ type, role }) => type === 'human' || role === 'human' || role === 'user')?.id;
}

/** LangChain appends an address for developers to its messages. */
export function reasonOf({ message }: Error): string {
  return message.split('\n\nTroubleshooting URL: ')[0] ?? message;
}

/** Writes the events of one run in order. Events that arrive while the store is busy are written together. */
class EventWriter {
  readonly #store: Store;
  readonly #threadId: string;
  readonly #runId: string;
  #pending: NewEvent[] = [];
  #draining: Promise<void> | undefined;
  #failure: Error | undefined;

  constructor(store: Store, threadId: string, runId: string) {
    this.#store = store;
    this.#threadId = threadId;
    this.#runId = runId;
  }

  /** Throws the error of an earlier write. A failed write is final, because the events may have been stored. */
  write(...events: readonly NewEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (events.length === 0) return;
    this.#pending.push(...events);
    this.#draining ??= this.#drain();
  }

  /** Waits while too many events are pending. */
  async room(): Promise<void> {
    while (this.#pending.length > PENDING_EVENTS_MAX) await this.#draining;
  }

  async flush(): Promise<void> {
    await this.#draining;
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #drain(): Promise<void> {
    try {
      while (this.#pending.length > 0)
        await this.#store.append(this.#threadId, this.#runId, this.#pending.splice(0, BATCH_EVENTS_MAX));
    } catch (error) {
      this.#failure = error as Error;
      this.#pending = [];
    } finally {
      this.#draining = undefined;
    }
  }
}
