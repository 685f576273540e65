import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf, visible } from '../../base/text.ts';
import { delay } from '../../platform/timers.ts';
import type { Scope } from '../domain/query.ts';
import type { Removal, RemovalJob, RemovalTarget } from '../domain/removal.ts';
import type { Store } from '../store/store.ts';

/** Time after which the response to a deletion is a job, in milliseconds. */
const RESPONSE_MS = 1_000;
/** Interval at which the counts of a running job are stored, in milliseconds. */
const UPDATE_MS = 1_000;
/** Age of the last update above which a receiver continues a job, in milliseconds. */
const LEASE_MS = 60_000;
/**
 * Age of the last update above which a job fails instead, in milliseconds. Otherwise a backup that is restored after days
 * would continue a deletion that nobody expects any more.
 */
const CONTINUED_MS_MAX = 24 * 3_600_000;
/** Interval at which the receiver looks for jobs to continue, in milliseconds. */
const CHECK_MS = 30_000;

export interface RemovalTimes {
  readonly responseMs?: number;
  readonly updateMs?: number;
}

/** A deletion that runs in this process. */
interface Work {
  job: RemovalJob;
  readonly stop: AbortController;
  /** Stores the job once a second. */
  timer?: NodeJS.Timeout;
}

/**
 * Deletes runs. A deletion that takes longer than a second becomes a job in the store. If its receiver ends, the same or
 * another receiver continues the job. Two receivers that run the same job do no harm, because a deletion is idempotent.
 */
export class RemovalJobs {
  readonly #store: Store;
  /** The deletions until their end is stored, so that none starts twice or is forgotten. */
  readonly #running = new Map<string, Work>();
  readonly #responseMs: number;
  readonly #updateMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(store: Store, { responseMs = RESPONSE_MS, updateMs = UPDATE_MS }: RemovalTimes = {}) {
    this.#store = store;
    this.#responseMs = responseMs;
    this.#updateMs = updateMs;
  }

  /** Continues the jobs whose receiver has ended, now and later. */
  start(): void {
    this.#timer = setInterval(() => void this.#continueJobs(), CHECK_MS).unref();
    void this.#continueJobs();
  }

  /** Deletes runs for a second. Returns a job that is done, or one that continues. */
  async remove({ tenant, project }: Scope, target: RemovalTarget): Promise<RemovalJob> {
    const scope = { tenant, ...(project !== undefined && { project }) };
    const times = { start_time: timeAt(Date.now()), update_time: timeAt(Date.now()) };
    const work = newWork({ ...scope, id: randomUUID(), target, state: 'running', runs: 0, traces: 0, ...times });
    this.#running.set(work.job.id, work);
    const done = this.#remove(work);
    try {
      await Promise.race([done, delay(this.#responseMs, undefined)]);
    } catch (error) {
      this.#running.delete(work.job.id);
      throw error;
    }
    if (work.job.state !== 'running') this.#running.delete(work.job.id);
    else if (!this.#isClosed) await this.#follow(work, done).catch((error: unknown) => this.#fail(work, error));
    return work.job;
  }

  /** Returns the jobs that a scope may see, latest first. */
  async jobs({ tenant, project }: Scope): Promise<RemovalJob[]> {
    const jobs = await this.#store.jobs();
    const own = jobs.filter((job) => job.tenant === tenant && (project === undefined || job.project === project));
    return own.sort((a, b) => (a.start_time < b.start_time ? 1 : -1));
  }

  async job(scope: Scope, id: string): Promise<RemovalJob | undefined> {
    return (await this.jobs(scope)).find((job) => job.id === id);
  }

  /** Ends a job after its current step, and returns it. A receiver that runs the job elsewhere ends it a second later. */
  async cancel(scope: Scope, id: string): Promise<RemovalJob | undefined> {
    const job = await this.job(scope, id);
    if (job?.state !== 'running') return job;
    const work = this.#running.get(id) ?? newWork(job);
    this.#end(work, 'cancelled');
    await this.#store.putJob(work.job);
    return work.job;
  }

  /** Stops after the current steps. This or another receiver continues the running jobs at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const released = [...this.#running.values()].map((work) => {
      work.stop.abort();
      clearInterval(work.timer);
      if (work.job.state === 'running') work.job = { ...work.job, released: true };
      return this.#store.putJob(work.job);
    });
    await Promise.allSettled(released);
  }

  async #remove(work: Work): Promise<void> {
    const { tenant, project, target, ...before } = work.job;
    const onProgress = ({ runs, traces }: Removal): void => {
      work.job = { ...work.job, runs: before.runs + runs, traces: before.traces + traces };
    };
    const scope = { tenant, ...(project !== undefined && { project }) };
    onProgress(await this.#store.remove(scope, target, { signal: work.stop.signal, onProgress }));
    if (!work.stop.signal.aborted) this.#end(work, 'done');
  }

  /** Stores the job now and once a second until its end is stored. */
  async #follow(work: Work, done: Promise<void>): Promise<void> {
    const ended = done.catch((error: unknown) => this.#isClosed || this.#end(work, 'failed', messageOf(error)));
    work.timer = setInterval(() => void this.#update(work).catch(() => {}), this.#updateMs).unref();
    void ended.then(() => this.#update(work)).catch(() => {});
    await this.#update(work);
  }

  /** Ends a deletion whose job cannot be stored: its client gets an error, and nobody could cancel it. */
  #fail(work: Work, error: unknown): never {
    this.#end(work, 'failed', messageOf(error));
    throw error;
  }

  /** Stores a job. Ends the job if it was cancelled at another receiver. */
  async #update(work: Work): Promise<void> {
    const isRunning = work.job.state === 'running';
    if (isRunning && !this.#isClosed) work.job = { ...work.job, update_time: timeAt(Date.now()) };
    await this.#store.putJob(work.job);
    if (!isRunning) {
      clearInterval(work.timer);
      this.#running.delete(work.job.id);
      return;
    }
    const stored = (await this.#store.jobs()).find(({ id }) => id === work.job.id);
    if (stored !== undefined && stored.state !== 'running') this.#end(work, stored.state);
  }

  async #continueJobs(): Promise<void> {
    // Readiness and queries report that the store fails.
    const jobs = await this.#store.jobs().catch(() => []);
    for (const job of jobs) {
      const ageMs = Date.now() - Date.parse(job.update_time);
      if (this.#isClosed || job.state !== 'running' || this.#running.has(job.id)) continue;
      if (ageMs < LEASE_MS && !job.released) continue;
      const work = newWork(job);
      this.#running.set(job.id, work);
      if (ageMs > CONTINUED_MS_MAX) this.#end(work, 'failed', 'no receiver continued it within a day');
      await this.#follow(work, ageMs > CONTINUED_MS_MAX ? Promise.resolve() : this.#remove(work)).catch(() => {});
    }
  }

  /** Sets the state of a job, unless the job has ended already. */
  #end(work: Work, state: RemovalJob['state'], error?: string): void {
    work.stop.abort();
    if (work.job.state !== 'running') return;
    work.job = { ...work.job, state, end_time: timeAt(Date.now()), ...(error !== undefined && { error }) };
    const { tenant, target, ...removal } = work.job;
    const data = `the ${target.kind} ${visible(target.id)} of the tenant ${tenant}`;
    const counts = countsOf(removal);
    if (state !== 'done') {
      diagnostics.warn(`the deletion of ${data} ended after ${counts}: ${error ?? 'it was cancelled'}`);
    } else if (removal.runs > 0) diagnostics.warn(`the receiver deleted ${data}: ${counts}`);
  }
}

function newWork({ released: _, ...job }: RemovalJob): Work {
  return { job, stop: new AbortController() };
}

function timeAt(ms: number): string {
  return new Date(ms).toISOString();
}

export function countsOf({ runs, traces }: Removal): string {
  return `${runs} run${runs === 1 ? '' : 's'} of ${traces} trace${traces === 1 ? '' : 's'}`;
}
