import { setImmediate as nextTurn } from 'node:timers/promises';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { fromHeaders, type RemoteRun, withRun } from 'runspan';
import { type NewEvent, type Place, WAITING_MAX } from '../storage/session-store.ts';
import type { Storage } from '../storage/storage.ts';
import type { Agent, Handlers } from './agent.ts';
import { Bell } from './bell.ts';
import { CommandError } from './command-error.ts';
import { RunEvents } from './run-events.ts';
import { PROCESS_ENDED, RunExecution } from './run-execution.ts';
import { WaitingRuns } from './waiting-runs.ts';

/** How long the end of a thread's run is waited for before the thread is deleted all the same. */
const END_MS = 15_000;

/** What becomes of a run that is asked for while another has its thread. */
export type MultitaskStrategy = 'reject' | 'interrupt' | 'enqueue';

const PLACES: Readonly<Record<MultitaskStrategy, Place | undefined>> = {
  reject: undefined,
  interrupt: 'next',
  enqueue: 'last',
};

/** What a run begins with. */
export interface RunRequest {
  readonly input: unknown;
  /** Where it begins, instead of at the thread's end. */
  readonly checkpointId?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly multitaskStrategy?: MultitaskStrategy | undefined;
  /** The request headers, read if `joinTraces` is set. */
  readonly headers: Headers;
}

/** A run that was asked for. */
export interface StartedRun {
  readonly runId: string;
  /** The trace that it is part of. */
  readonly traceId: string;
  /** The number of the last event before it. */
  readonly afterSeq: number;
}

export interface RunsOptions {
  readonly agent: Agent;
  readonly storage: Storage;
  /** Told of everything that the agent does. */
  readonly callbacks: Handlers;
  /** Whether a run joins the trace named in the headers of its request. @default false */
  readonly joinTraces?: boolean;
  /** Logs one line for each error that belongs to no request. */
  readonly log: (line: string) => void;
}

/** The runs of this instance. A thread has one at a time, whichever instance it is on. */
export class Runs {
  readonly #options: RunsOptions;
  readonly #waiting: WaitingRuns;
  readonly #executions = new Map<string, RunExecution>();
  readonly #starting = new Set<Promise<StartedRun>>();
  #isClosing = false;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#waiting = new WaitingRuns(options.storage.sessions, options.log);
    this.#sweep = setInterval(() => void this.tellCutRuns(), options.storage.sessions.renewMs).unref();
  }

  /** Resolves when the run is under way, or waits for the one before it. */
  async start(threadId: string, request: RunRequest): Promise<StartedRun> {
    if (this.#isClosing)
      throw new CommandError('unknown_error', 'The server is about to end, and begins no more runs; try again.');
    const started = this.#start(threadId, request);
    this.#starting.add(started);
    return started.finally(() => this.#starting.delete(started));
  }

  /** Ends a run, wherever it is, or has it end when its turn comes; false where the thread has no such run. */
  async cancel(threadId: string, runId: string): Promise<boolean> {
    return this.#options.storage.sessions.cancel(threadId, runId);
  }

  /** Ends a run of this instance whose checkpoints cannot be written. */
  breakOff(runId: string, error: Error): void {
    const isFirst = this.#executions.get(runId)?.breakOff() === true;
    if (isFirst) this.#options.log(`the checkpoints of run ${runId} cannot be written: ${error.message}`);
  }

  /** Ends what a thread has under way, and waits until it has ended, some seconds at most. */
  async endAll(threadId: string): Promise<void> {
    const { sessions } = this.#options.storage;
    this.#waiting.cancelAll(threadId);
    const deadline = AbortSignal.timeout(END_MS);
    const bell = new Bell();
    const unwatch = sessions.watch(threadId, () => bell.ring());
    try {
      for (
        let runId = await sessions.activeRun(threadId);
        runId !== undefined && !deadline.aborted;
        runId = await sessions.activeRun(threadId)
      ) {
        await sessions.cancel(threadId, runId);
        await bell.rung(sessions.renewMs);
        // What rings most is the cancellation itself; the run needs its turn to end.
        await nextTurn();
      }
    } finally {
      unwatch();
    }
  }

  /** Tells the threads whose runs were cut by the end of their process. Done by itself every few seconds. */
  async tellCutRuns(): Promise<void> {
    const { sessions } = this.#options.storage;
    await this.#logging(async () => {
      // The end of one may bring its thread to the next that has waited in the same process.
      for (let cut = await sessions.takeCutRuns(); cut.length > 0; cut = await sessions.takeCutRuns()) {
        for (const { threadId, runId } of cut) await sessions.end(threadId, runId, this.#cut(runId));
      }
    });
  }

  /** Ends the runs of this instance, those that wait as well, which are told as interrupted. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    this.#isClosing = true;
    await Promise.allSettled(this.#starting);
    const waiting = await this.#waiting.clear();
    await Promise.all([...this.#executions.values()].map((execution) => execution.interrupt()));
    await this.#logging(async () => {
      const { sessions } = this.#options.storage;
      for (const { threadId, runId } of waiting) await sessions.end(threadId, runId, this.#cut(runId));
    });
  }

  async #start(threadId: string, request: RunRequest): Promise<StartedRun> {
    const { sessions } = this.#options.storage;
    const place = PLACES[request.multitaskStrategy ?? 'enqueue'];
    const runId = uuidv7();
    const caller = this.#options.joinTraces === true ? fromHeaders(request.headers) : undefined;
    const traceId = caller?.traceId ?? runId;
    const started = { runId, traceId, afterSeq: await sessions.lastSeq(threadId) };
    const holder = await sessions.claim(threadId, runId, place);
    if (holder === undefined)
      throw new CommandError('invalid_argument', `${WAITING_MAX} runs wait in thread ${threadId} already.`);
    const execution = new RunExecution({ ...this.#options, threadId, runId, traceId });
    const begin = (): void => this.#begin(runId, execution, request, caller);
    if (holder === runId) begin();
    else if (place === undefined) {
      throw new CommandError(
        'invalid_argument',
        `Thread ${threadId} has the run ${holder} under way; wait for its end, or cancel it.`,
      );
    } else {
      this.#waiting.add({ threadId, runId, begin, cancel: () => execution.cancel() });
      if (place === 'next') await this.#interrupt(threadId, holder);
    }
    return started;
  }

  /** The run that asks for it is taken already: where the store is away now, it waits for the end of this one. */
  async #interrupt(threadId: string, runId: string): Promise<void> {
    const { storage, log } = this.#options;
    try {
      await storage.sessions.cancel(threadId, runId);
    } catch (error) {
      log(`run ${runId} cannot be cancelled: ${(error as Error).message}`);
    }
  }

  #begin(runId: string, execution: RunExecution, request: RunRequest, caller: RemoteRun | undefined): void {
    const done = withRun(caller, () => execution.run(request));
    this.#executions.set(runId, execution);
    void done.finally(() => this.#executions.delete(runId));
  }

  async #logging(tell: () => Promise<void>): Promise<void> {
    try {
      await tell();
    } catch (error) {
      this.#options.log(`runs that were cut cannot be told of: ${(error as Error).message}`);
    }
  }

  #cut(runId: string): NewEvent {
    const events = new RunEvents(runId, this.#options.agent.name ?? 'agent');
    return events.lifecycle('interrupted', PROCESS_ENDED);
  }
}
