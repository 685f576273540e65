import { type Signal, signal } from '@preact/signals';
import { announce } from '../parts/announcer.tsx';
import { storedSignal } from '../parts/memory.ts';
import { type Info, loadInfo, loadThreadPage, newId, problemOf, removeThread, type ThreadSummary } from './client.ts';
import { Thread } from './thread.ts';

const PAGE_THREADS = 100;
export const NEW_ADDRESS = '#/';
/** Key of the draft for a thread that does not exist yet. */
export const NEW = '';

/** The threads on the server. The thread that changed last comes first. Undefined until the list is loaded. */
export const threads: Signal<readonly ThreadSummary[] | undefined> = signal(undefined);
export const hasMoreThreads: Signal<boolean> = signal(false);
export const threadsProblem: Signal<string | undefined> = signal(undefined);
export const info: Signal<Info | undefined> = signal(undefined);

let pages = 1;
let loads = 0;

/**
 * The thread that the page's address names, or a new thread if the address names none. The first message creates the
 * new thread on the server.
 */
export const currentThread: Signal<Thread> = signal(threadAt(location.hash));

/** Opens the thread that the address names whenever the address changes. Closes the thread while the page is hidden. */
export function followAddress(): void {
  currentThread.value.open();
  addEventListener('hashchange', () => {
    if (idOf(location.hash) === currentThread.value.id) return;
    currentThread.value.close();
    announce('');
    currentThread.value = threadAt(location.hash);
    currentThread.value.open();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) currentThread.value.close();
    else void refresh();
  });
  addEventListener('focus', () => void refresh());
  addEventListener('online', () => void refresh());
  void loadThreads();
  // The page works without this information, so an error is ignored.
  loadInfo().then(
    (loaded) => {
      info.value = loaded;
    },
    () => {},
  );
}

/** Reloads the list and the current thread, because another page may have changed or deleted threads. */
async function refresh(): Promise<void> {
  const thread = currentThread.value;
  thread.open();
  await loadThreads();
  if (threads.value?.some(({ id }) => id === thread.id) !== true) await thread.refresh();
}

export async function loadThreads(): Promise<void> {
  loads += 1;
  const load = loads;
  try {
    // A thread may move from one page of the list to another during the requests.
    const loaded = new Map<string, ThreadSummary>();
    let isFull = true;
    for (let page = 0; isFull && page < pages; page++) {
      const list = await loadThreadPage(PAGE_THREADS, page * PAGE_THREADS);
      for (const thread of list) loaded.set(thread.id, loaded.get(thread.id) ?? thread);
      isFull = list.length === PAGE_THREADS;
    }
    if (load !== loads) return;
    threadsProblem.value = undefined;
    currentThread.value.responds();
    threads.value = [...loaded.values()];
    hasMoreThreads.value = isFull;
  } catch (error) {
    if (load === loads) threadsProblem.value = problemOf(error);
  }
}

export function loadMoreThreads(): Promise<void> {
  pages += 1;
  return loadThreads();
}

export async function deleteThread(id: string): Promise<boolean> {
  try {
    await removeThread(id);
    draftOf(id).value = '';
    threads.value = threads.value?.filter((thread) => thread.id !== id);
    return true;
  } catch (error) {
    threadsProblem.value = problemOf(error);
    return false;
  }
}

export function addressOf(id: string): string {
  return `#/t/${encodeURIComponent(id)}`;
}

/** Sends a message in the current thread. When the first message is sent, the thread gets an address. */
export function say(text: string): Promise<boolean> {
  const thread = currentThread.value;
  if (idOf(location.hash) === undefined) {
    location.hash = addressOf(thread.id);
    moveDraft(NEW, thread.id);
  }
  return thread.send(text);
}

const drafts = new Map<string, Signal<string>>();

/** Returns the draft of a thread: the text that has not been sent, which survives a reload of the page. */
export function draftOf(threadId: string): Signal<string> {
  const draft = drafts.get(threadId) ?? storedSignal(`draft:${threadId}`, '', 'sessionStorage');
  drafts.set(threadId, draft);
  return draft;
}

export function currentDraft(): Signal<string> {
  return draftOf(idOf(location.hash) === undefined ? NEW : currentThread.value.id);
}

export function moveDraft(fromId: string, toId: string): void {
  const [from, to] = [draftOf(fromId), draftOf(toId)];
  if (from.value === '') return;
  to.value = from.value;
  from.value = '';
}

function threadAt(hash: string): Thread {
  const id = idOf(hash);
  return new Thread(id ?? newId(), id === undefined, () => void loadThreads());
}

function idOf(hash: string): string | undefined {
  const id = /^#\/t\/(.+)$/.exec(hash)?.[1];
  try {
    return id === undefined ? undefined : decodeURIComponent(id);
  } catch {
    return undefined;
  }
}
