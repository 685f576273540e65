import { type Signal, signal } from '@preact/signals';
import { api, problemOf } from './api.ts';
import type { ThreadSummary } from './protocol.ts';

/** The threads that the server has, the last changed first; undefined before they are known. */
export const threads: Signal<readonly ThreadSummary[] | undefined> = signal(undefined);
export const threadsProblem: Signal<string | undefined> = signal(undefined);

let asked = 0;

export async function loadThreads(): Promise<void> {
  asked += 1;
  const mine = asked;
  try {
    const list = await api.threads();
    // A later question may have been answered already.
    if (mine === asked) threads.value = list;
    threadsProblem.value = undefined;
  } catch (error) {
    if (mine === asked) threadsProblem.value = problemOf(error);
  }
}

export async function deleteThread(id: string): Promise<boolean> {
  try {
    await api.deleteThread(id);
    threads.value = threads.value?.filter((thread) => thread.id !== id);
    return true;
  } catch (error) {
    threadsProblem.value = problemOf(error);
    return false;
  }
}
