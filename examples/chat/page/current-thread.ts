import { type Signal, signal } from '@preact/signals';
import { hush } from './announcer.tsx';
import { draftOf, moveDraft, NEW } from './drafts.ts';
import { Thread } from './thread.ts';
import { loadThreads, threads } from './threads.ts';
import { uuidv7 } from './uuid.ts';

/** The thread that is read; where the address names none, one that begins with its first message. */
export const currentThread: Signal<Thread> = signal(threadAt(location.hash));

/** Follows the address from now on: the back button leads back to the thread before. */
export function followAddress(): void {
  if (idOf(location.hash) !== undefined) currentThread.value.open();
  addEventListener('hashchange', () => {
    if (idOf(location.hash) === currentThread.value.id) return;
    currentThread.value.close();
    hush();
    currentThread.value = threadAt(location.hash);
    if (idOf(location.hash) !== undefined) currentThread.value.open();
  });
}

/** Another page, or another person, may have changed the threads, and deleted the one that is read. */
export async function lookAgain(): Promise<void> {
  await loadThreads();
  const thread = currentThread.value;
  if (threads.value?.some(({ id }) => id === thread.id) !== true) await thread.check();
}

export function addressOf(id: string): string {
  return `#/t/${encodeURIComponent(id)}`;
}

export const NEW_ADDRESS = '#/';

/** Says something in the thread that is read; its first message gives it its address. False where the server did not take it. */
export function say(text: string): Promise<boolean> {
  const thread = currentThread.value;
  if (isUnaddressed()) {
    location.hash = addressOf(thread.id);
    moveDraft(NEW, thread.id);
  }
  return thread.send(text);
}

/** What is written in the thread that is read; without an address it is for whichever begins. */
export function currentDraft(): Signal<string> {
  return draftOf(isUnaddressed() ? NEW : currentThread.value.id);
}

function isUnaddressed(): boolean {
  return idOf(location.hash) === undefined;
}

function threadAt(hash: string): Thread {
  const id = idOf(hash);
  return new Thread(id ?? uuidv7(), id === undefined, () => void loadThreads());
}

function idOf(hash: string): string | undefined {
  const id = /^#\/t\/(.+)$/.exec(hash)?.[1];
  try {
    return id === undefined ? undefined : decodeURIComponent(id);
  } catch {
    return undefined;
  }
}
