import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { fromHeaders, withRun } from 'runspan';
import { closingError } from '../errors.ts';
import type { StartRequest } from '../storage/schema.ts';
import { PROCESS_ENDED, Run, type RunOptions } from './run.ts';
import { RunEvents } from './run-events.ts';

/** Maximum time for which the deletion of a thread waits until the thread's runs have ended. */
const END_MS = 15_000;
const END_CHECK_MS = 50;

export interface StartedRun {
  readonly runId: string;
  readonly traceId: string;
  /** Number of the last event before the run. */
  readonly afterSeq: number;
}

export type RunRequest = Omit<StartRequest, 'runId'> & Pick<RunOptions, 'input' | 'checkpointId' | 'metadata'>;

export interface RunsOptions extends Pick<RunOptions, 'agent' | 'store' | 'callbacks' | 'log'> {
  /** Whether a run joins the trace that its request's headers name. */
  readonly joinTraces: boolean;
}

/** The runs on this instance. At most one run of a thread is in progress at a time, over all instances. */
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

  /** Starts a run. Resolves when the run is in progress, or has been queued behind earlier runs. */
  async start(request: RunRequest, headers: Headers): Promise<StartedRun> {
    if (this.#isClosing) throw closingError();
    const started = this.#start(request, headers);
    this.#starting.add(started);
    return started.finally(() => this.#starting.delete(started));
  }

  /** Cancels a run on any instance. Returns false if the thread has no such run. */
  cancel(threadId: string, runId: string): Promise<boolean> {
    return this.#options.store.cancel(threadId, runId);
  }

  /** Cancels all runs of a thread, and waits up to `END_MS` until they have ended. */
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

  /** Renews the leases of this instance's runs, and ends runs whose process has died. */
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

  /** Ends all runs on this instance. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#isClosing = true;
    await Promise.allSettled(this.#starting);
    // Running runs are ended before waiting ones, because a waiting run's events must follow those of the run before
    // it.
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

  /** Queues an accepted run. If the store fails from here on, the heartbeat tries again. */
  async #waitAfter(run: Run, interrupted: string | undefined): Promise<void> {
    try {
      if (interrupted !== undefined) await this.cancel(run.threadId, interrupted);
      // The previous run may already have ended.
      await this.#claim(run);
    } catch (error) {
      this.#options.log(`run ${run.runId} waits: ${(error as Error).message}`);
    }
  }

  /** Applies changes to a run that other instances made, and starts the run if it is its turn. */
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
