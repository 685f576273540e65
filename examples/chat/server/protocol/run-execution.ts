import { setTimeout as wait } from 'node:timers/promises';
import { isGraphInterrupt } from '@langchain/langgraph';
import { EventWriter } from './event-writer.ts';
import { type LifecycleStatus, RunEvents } from './run-events.ts';
import { inputFor } from './run-input.ts';
import type { RunRequest, RunsOptions } from './runs.ts';
import { stateTail } from './state-tail.ts';
import { branchTitleOf, titleOf } from './title.ts';

/** How long a run may take. */
const RUN_MS_MAX = 15 * 60_000;
/** Why a run was interrupted that nobody has cancelled. */
export const PROCESS_ENDED = 'the process that it ran in has ended';
/** Steps of the agent, those of subagents aside. */
const STEPS_MAX = 50;

export interface RunExecutionOptions extends RunsOptions {
  readonly threadId: string;
  readonly runId: string;
  readonly traceId: string;
}

/** One run while it is under way: it drives the agent, and tells the thread what happens, the last of it being how it ended. */
export class RunExecution {
  readonly #options: RunExecutionOptions;
  readonly #events: RunEvents;
  readonly #writer: EventWriter;
  readonly #stop = new AbortController();
  /** Of the waiting for a store that is away. */
  readonly #leave = new AbortController();
  #state: 'running' | 'cancelled' | 'closing' | 'overdue' | 'broken' | 'lost' = 'running';
  #done: Promise<void> | undefined;

  constructor(options: RunExecutionOptions) {
    this.#options = options;
    this.#events = new RunEvents(options.runId, options.agent.name ?? 'agent');
    this.#writer = new EventWriter(options.storage.sessions, options.threadId);
  }

  /** Never rejects: what goes wrong is told to the thread, and to the log where that is not possible. */
  run(request: RunRequest): Promise<void> {
    this.#done ??= this.#run(request);
    return this.#done;
  }

  /** Has it end soon, or at once when it begins. */
  cancel(): void {
    this.#halt('cancelled');
  }

  /** Ends it, as its checkpoints cannot be written; gives false where it ends already. */
  breakOff(): boolean {
    return this.#halt('broken');
  }

  /** Ends it with its process, and waits until that has been told. */
  async interrupt(): Promise<void> {
    this.#halt('closing');
    this.#leave.abort();
    await this.#done;
  }

  async #run(request: RunRequest): Promise<void> {
    const { storage, threadId, runId, log } = this.#options;
    const renewal = setInterval(() => void this.#renew(), storage.sessions.renewMs);
    const deadline = setTimeout(() => this.#halt('overdue'), RUN_MS_MAX);
    const unwatch = storage.sessions.watch(threadId, (what) => {
      if (what === 'run') void this.#renew();
    });
    try {
      const [status, error] = await this.#outcome(request);
      if (this.#state === 'lost') return;
      await this.#writer.flush();
      await storage.sessions.end(threadId, runId, this.#events.lifecycle(status, error));
    } catch (error) {
      log(`run ${runId} of thread ${threadId} cannot be told of: ${(error as Error).message}`);
      await this.#endLater();
    } finally {
      clearInterval(renewal);
      clearTimeout(deadline);
      unwatch();
    }
  }

  /** The store was away, and part of the events may be missing. That is told when it is back, unless the lease has run out by then. */
  async #endLater(): Promise<void> {
    const { sessions } = this.#options.storage;
    const { threadId, runId } = this.#options;
    // An agent whose events nobody takes is to do nothing more.
    this.#stop.abort();
    while (!this.#leave.signal.aborted) {
      try {
        await wait(sessions.renewMs, undefined, { signal: this.#leave.signal });
        await sessions.end(threadId, runId, this.#events.lifecycle('failed', 'Its events could not be kept.'));
        return;
      } catch {
        // It is still away.
      }
    }
  }

  async #outcome(request: RunRequest): Promise<[LifecycleStatus, string?]> {
    try {
      this.#writer.write(this.#events.lifecycle('running'));
      // The thread may be gone for which it has waited.
      this.#stop.signal.throwIfAborted();
      await this.#touch(request);
      await this.#goOn();
      await this.#drive(request);
    } catch (error) {
      if (this.#state === 'running' && !isGraphInterrupt(error)) return ['failed', (error as Error).message];
    }
    if (this.#state === 'cancelled') return ['interrupted', 'cancelled'];
    if (this.#state === 'closing') return ['interrupted', PROCESS_ENDED];
    if (this.#state === 'overdue') return ['failed', `It took longer than ${RUN_MS_MAX / 60_000} minutes.`];
    if (this.#state === 'broken') return ['failed', 'Its checkpoints could not be kept.'];
    return [this.#events.isInputRequested ? 'interrupted' : 'completed'];
  }

  /** A run from an earlier point begins the newest branch, by whose first message the thread is called from then on. */
  async #touch({ input, checkpointId }: RunRequest): Promise<void> {
    const { agent, storage, threadId } = this.#options;
    const updatedAt = new Date().toISOString();
    if (checkpointId === undefined) {
      await storage.threads.touch({ id: threadId, title: titleOf(input), updatedAt });
      return;
    }
    const { values } = await agent.getState({ configurable: { thread_id: threadId, checkpoint_id: checkpointId } });
    await storage.threads.touch({ id: threadId, title: branchTitleOf(values, input), updatedAt }, 'renamed');
  }

  async #goOn(): Promise<void> {
    const { storage, threadId } = this.#options;
    const tail = await stateTail(storage.sessions, threadId);
    if (tail !== undefined) this.#events.goOn(tail);
  }

  async #drive(request: RunRequest): Promise<void> {
    const { agent, callbacks, threadId, runId, traceId } = this.#options;
    const { input, checkpointId } = await inputFor(agent, threadId, request);
    const stream = await agent.streamEvents(input, {
      version: 'v3',
      runId,
      runName: 'chat turn',
      configurable: {
        thread_id: threadId,
        run_id: runId,
        trace_id: traceId,
        ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
      },
      metadata: { ...request.metadata, thread_id: threadId },
      callbacks: [...callbacks],
      recursionLimit: STEPS_MAX,
      signal: this.#stop.signal,
    });
    for await (const event of stream) {
      this.#writer.write(...this.#events.of(event));
      await this.#writer.room();
    }
  }

  async #renew(): Promise<void> {
    const { storage, threadId, runId, log } = this.#options;
    try {
      const lease = await storage.sessions.renew(threadId, runId);
      if (lease === 'cancelled' || lease === 'lost') this.#halt(lease);
    } catch (error) {
      log(`the lease of run ${runId} cannot be renewed: ${(error as Error).message}`);
    }
  }

  #halt(state: 'cancelled' | 'closing' | 'overdue' | 'broken' | 'lost'): boolean {
    if (this.#state !== 'running') return false;
    this.#state = state;
    this.#stop.abort();
    return true;
  }
}
