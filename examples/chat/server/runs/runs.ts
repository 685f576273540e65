import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { fromHeaders, withRun } from 'runspan';
import { RequestError } from '../errors.ts';
import type { StartRequest } from '../storage/schema.ts';
import { PROCESS_ENDED, Run, type RunOptions } from './run.ts';
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

export type RunRequest = Omit<StartRequest, 'runId'> & Pick<RunOptions, 'input' | 'checkpointId' | 'metadata'>;

export interface RunsOptions extends Pick<RunOptions, 'agent' | 'store' | 'callbacks' | 'log'> {
  /** Whether a run joins the trace in the headers of its request. */
  readonly joinTraces: boolean;
}

/** The runs of this instance. Of all runs of a thread, on all instances, one is in progress. */
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
  async start(request: RunRequest, headers: Headers): Promise<StartedRun> {
    if (this.#isClosing) throw new RequestError('unavailable', 'The server is shutting down. Try again later.', 503);
    const started = this.#start(request, headers);
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
    const { store, agent, log } = this.#options;
    try {
      const runs = [...this.#runs.values()].map(({ run }) => run);
      const rows = await store.renew(runs.map(({ runId }) => runId));
      for (const run of runs) {
        if (run.isWaiting) await this.#claim(run);
        else this.#update(run, rows.get(run.runId));
      }
      await store.endLost((runId) =>
        new RunEvents(runId, agent.name ?? 'agent').lifecycle('interrupted', { error: PROCESS_ENDED }),
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
    // The events of a run that waits follow the events of the run before it.
    for (const isWaiting of [false, true]) {
      const runs = [...this.#runs.values()].filter(({ run }) => run.isWaiting === isWaiting);
      for (const { run } of runs) run.stop('closing');
      await Promise.all(runs.map(({ done }) => done));
    }
  }

  async #start(request: RunRequest, headers: Headers): Promise<StartedRun> {
    const { store, joinTraces, ...parts } = this.#options;
    const { threadId, strategy } = request;
    const runId = uuidv7();
    const caller = joinTraces ? fromHeaders(headers) : undefined;
    const traceId = caller?.traceId ?? runId;
    const run = new Run({ ...parts, ...request, store, runId, traceId });
    const { afterSeq, running } = await store.start({ ...request, runId });
    if (running === runId) run.begin();
    const unwatch = store.watch('runs', threadId, () => void this.#claim(run).catch(() => {}));
    const done = withRun(caller, () => run.run()).finally(() => {
      unwatch();
      this.#runs.delete(runId);
    });
    this.#runs.set(runId, { run, done });
    if (running !== runId) await this.#waitAfter(run, strategy === 'interrupt' ? running : undefined);
    return { runId, traceId, afterSeq };
  }

  /** The run has been accepted. If the store fails from here on, the heartbeat tries again. */
  async #waitAfter(run: Run, interrupted: string | undefined): Promise<void> {
    try {
      if (interrupted !== undefined) await this.cancel(run.threadId, interrupted);
      // The run before it may have ended already.
      await this.#claim(run);
    } catch (error) {
      this.#options.log(`run ${run.runId} waits: ${(error as Error).message}`);
    }
  }

  /** Applies what other instances did to a run, and begins the run if it is its turn. */
  async #claim(run: Run): Promise<void> {
    if (this.#isClosing) return;
    const row = await this.#options.store.claim(run.threadId, run.runId);
    this.#update(run, row);
    if (row?.state === 'running') run.begin();
  }

  #update(run: Run, row: { readonly isCancelled: boolean } | undefined): void {
    if (row === undefined) run.stop('lost');
    else if (row.isCancelled) run.stop('cancelled');
  }
}
