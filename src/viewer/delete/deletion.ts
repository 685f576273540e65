import { effect } from '@preact/signals';
import type { Removal, RemovalJob } from '../../receiver/domain/removal.ts';
import { ApiError, api, mayChange, problemOf } from '../data/api.ts';
import { plural } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { endTask, showNotice, showTask } from '../top/tasks.tsx';

const POLL_MS = 1_000;

/** Shows the deletions that are already running when the page opens, or after a login. */
export function showDeletions(): void {
  effect(() => {
    if (!mayChange.value) return;
    const running = api.jobs().then(({ items }) => items.filter(({ state }) => state === 'running'));
    void running.then((jobs) => jobs.forEach((job) => void follow(job))).catch(() => {});
  });
}

/** Shows a long deletion with its counts until it ends. */
export async function follow(job: RemovalJob): Promise<void> {
  const { id, target } = job;
  const name = `the ${target.kind} ${visible(target.id)}`;
  const cancel = (): void => void api.cancelJob(id).catch((error) => showNotice(problemOf(error) ?? ''));
  while (job.state === 'running') {
    showTask(id, `Deleting ${name}: ${countsOf(job)} so far`, cancel);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    try {
      job = await api.job(id);
    } catch (error) {
      // After other errors, the receiver may be restarting. After 401, the user may log in.
      const isRefused = error instanceof ApiError && error.status < 500 && ![401, 429].includes(error.status);
      if (isRefused) return endTask(id, `The page cannot follow the deletion of ${name}: ${error.message}`);
    }
  }
  const problem = job.state === 'done' ? '' : `. The deletion of ${name} ended: ${job.error ?? 'it was cancelled'}`;
  endTask(id, `Deleted ${countsOf(job)}${problem}`);
}

/** Returns the counts of a deletion, for example `2 runs of 1 trace`. */
export function countsOf({ runs, traces }: Removal): string {
  return `${plural(runs, 'run')} of ${plural(traces, 'trace')}`;
}
