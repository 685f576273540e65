import { type Signal, signal } from '@preact/signals';
import { api, problemOf } from './api.ts';
import { draftOf } from './drafts.ts';
import type { ThreadSummary } from './protocol.ts';

/** Threads that are asked for at once. */
const PAGE_THREADS = 100;

/** The threads that the server has, the last changed first, as many as were asked for; undefined before they are known. */
export const threads: Signal<readonly ThreadSummary[] | undefined> = signal(undefined);
/** Whether the server has further ones. */
export const hasMoreThreads: Signal<boolean> = signal(false);
export const threadsProblem: Signal<string | undefined> = signal(undefined);

let asked = 0;
let pages = 1;

export async function loadThreads(): Promise<void> {
  asked += 1;
  const mine = asked;
  try {
    // Between two pages one may have come to the front, and others a place further.
    const known = new Map<string, ThreadSummary>();
    let isMore = true;
    for (let page = 0; isMore && page < pages; page++) {
      const list = await api.threads(PAGE_THREADS, page * PAGE_THREADS);
      for (const thread of list) known.set(thread.id, known.get(thread.id) ?? thread);
      isMore = list.length === PAGE_THREADS;
    }
    threadsProblem.value = undefined;
    // A later question may have been answered already.
    if (mine !== asked) return;
    threads.value = [...known.values()];
    hasMoreThreads.value = isMore;
  } catch (error) {
    if (mine === asked) threadsProblem.value = problemOf(error);
  }
}

export function loadMoreThreads(): Promise<void> {
  pages += 1;
  return loadThreads();
}

export async function deleteThread(id: string): Promise<boolean> {
  try {
    await api.deleteThread(id);
    draftOf(id).value = '';
    threads.value = threads.value?.filter((thread) => thread.id !== id);
    return true;
  } catch (error) {
    threadsProblem.value = problemOf(error);
    return false;
  }
}
