import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { fromHeaders, withRun } from 'runspan';
import type { StartRequest } from '../storage/schema.ts';
import { ThreadBusyError } from '../storage/store.ts';
import { PROCESS_ENDED, Run, type RunOptions, type RunRequest } from './run.ts';
import { RunEvents } from './run-events.ts';

/** How long a deletion waits for the runs of its thread to end. */
const END_MS = 15_000;
const END_CHECK_MS = 50;

export interface StartedRun {
  readonly runId: string;
  readonly traceId: string;
  /** The number of the last event before the run. */
  readonly afterSeq: number;
}

export interface StartOptions extends RunRequest, Pick<StartRequest, 'title' | 'isRenamed' | 'strategy'> {
  /** The request headers, which are read if `joinTraces` is set. */
  readonly headers: Headers;
}

export interface RunsOptions extends Pick<RunOptions, 'agent' | 'store' | 'callbacks' | 'mask' | 'log'> {
  /** Whether a run joins the trace in the headers of its request. */
  readonly joinTraces: boolean;
}

/** The runs of this instance. A thread has one run in progress, on whichever instance. */
export class Runs {
  readonly #options: RunsOptions;
  readonly #runs = new Map<string, { readonly run: Run; readonly done: Promise<void> }>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #heartbeat: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#heartbeat = setInterval(() => void this.beat(), options.store.limits.heartbeatMs).unref();
  }

  /** Resolves when the run is in progress, or waits for the runs before it. */
  async start(threadId: string, options: StartOptions): Promise<StartedRun> {
    if (this.#isClosing) throw new ThreadBusyError('The server is shutting down. Try again later.');
    const started = this.#start(threadId, options);
    this.#starting.add(started);
    return started.finally(() => this.#starting.delete(started));
  }

  /** Ends a run on any instance. Returns false if the thread has no such run. */
  cancel(threadId: string, runId: string): Promise<boolean> {
    return this.#options.store.cancel(threadId, runId);
  }

  /** Ends the runs of a thread, and waits for their ends for some seconds at most. */
  async endAll(threadId: string): Promise<void> {
    const { store } = this.#options;
    const deadline = Date.now() + END_MS;
    for (;;) {
      const runs = await store.runs(threadId);
      if (runs.length === 0 || Date.now() > deadline) return;
      for (const { id, isCancelled } of runs) if (!isCancelled) await store.cancel(threadId, id);
      await wait(END_CHECK_MS);
    }
  }

  /** Renews the leases of the runs of this instance, and ends runs whose process has ended. */
  async beat(): Promise<void> {
    const { store, agent, mask, log } = this.#options;
    try {
      const own = [...this.#runs.values()].map(({ run }) => run);
      const rows = await store.renew(own.map(({ runId }) => runId));
      for (const run of own) {
        const row = rows.get(run.runId);
        if (row === undefined) run.stop('lost');
        else if (row.isCancelled) run.stop('cancelled');
        if (run.isWaiting || row?.state === 'waiting') await this.#claim(run);
      }
      await store.endLost((runId) =>
        new RunEvents(runId, agent.name ?? 'agent', mask).lifecycle('interrupted', { error: PROCESS_ENDED }),
      );
    } catch (error) {
      log(`leases cannot be renewed: ${(error as Error).message}`);
    }
  }

  /** Ends the runs of this instance. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#isClosing = true;
    await Promise.allSettled(this.#starting);
    // The events of a run that waits follow those of the run before it.
    for (const isWaiting of [false, true]) {
      const runs = [...this.#runs.values()].filter(({ run }) => run.isWaiting === isWaiting);
      for (const { run } of runs) run.stop('closing');
      await Promise.all(runs.map(({ done }) => done));
    }
  }

  async #start(threadId: string, options: StartOptions): Promise<StartedRun> {
    const { store, agent, callbacks, mask, log, joinTraces } = this.#options;
    const { input, checkpointId, metadata, headers, title, isRenamed, strategy } = options;
    const runId = uuidv7();
    const caller = joinTraces ? fromHeaders(headers) : undefined;
    const traceId = caller?.traceId ?? runId;
    const run = new Run({
      agent,
      store,
      callbacks,
      mask,
      log,
      threadId,
      runId,
      traceId,
      input,
      checkpointId,
      metadata,
    });
    const { afterSeq, running } = await store.start({ threadId, runId, title, isRenamed, strategy });
    if (running === runId) run.begin();
    const unwatch = store.watchRuns(threadId, () => void this.#claim(run).catch(() => {}));
    const done = withRun(caller, () => run.run()).finally(() => {
      unwatch();
      this.#runs.delete(runId);
    });
    this.#runs.set(runId, { run, done });
    if (running !== runId) await this.#afterWait(run, strategy === 'interrupt' ? running : undefined);
    return { runId, traceId, afterSeq };
  }

  /** The run has been accepted. If the store fails from here on, the heartbeat tries again. */
  async #afterWait(run: Run, interrupted: string | undefined): Promise<void> {
    try {
      if (interrupted !== undefined) await this.cancel(run.threadId, interrupted);
      // The run before it may have ended already.
      await this.#claim(run);
    } catch (error) {
      this.#options.log(`run ${run.runId} waits: ${(error as Error).message}`);
    }
  }

  /** Learns what other instances did to a run, and begins it if it is its turn. */
  async #claim(run: Run): Promise<void> {
    if (this.#isClosing) return;
    const row = await this.#options.store.claim(run.threadId, run.runId);
    if (row === undefined) run.stop('lost');
    else if (row.isCancelled) run.stop('cancelled');
    if (row?.state === 'running') run.begin();
  }
}
