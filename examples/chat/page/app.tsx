import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Announcer } from './announcer.tsx';
import { Composer } from './composer.tsx';
import { ConversationView } from './conversation-view.tsx';
import { HistoryPanel } from './history-panel.tsx';
import { Sidebar } from './sidebar.tsx';
import { currentThread, info } from './threads.ts';
import { TopBar, ViewedNote } from './top-bar.tsx';

/** Whether the list of threads is open on a narrow screen. */
export const isDrawerOpen: Signal<boolean> = signal(false);
export const isHistoryOpen: Signal<boolean> = signal(false);

export function App(): JSX.Element {
  const thread = currentThread.value;
  const close = (): void => {
    isDrawerOpen.value = false;
  };
  return (
    <div class="app">
      <Sidebar isOpen={isDrawerOpen.value} close={close} />
      {isDrawerOpen.value && (
        <button type="button" class="backdrop" aria-label="Close the conversations" onClick={close} />
      )}
      <main>
        <TopBar thread={thread} isDrawerOpen={isDrawerOpen} isHistoryOpen={isHistoryOpen} />
        {info.value?.model.is_local === true && (
          <p class="model-note">No model configured: built-in rules on this machine answer.</p>
        )}
        <ViewedNote thread={thread} />
        <ConversationView key={thread.id} thread={thread} />
        <Composer key={thread.id} thread={thread} />
      </main>
      {isHistoryOpen.value && <HistoryPanel key={thread.id} thread={thread} close={closeHistory} />}
      <Announcer />
    </div>
  );
}

/**
 * Handles Escape: it closes the drawer or the history if one is open, and otherwise stops the agent. An open dialog
 * handles the key itself.
 */
export function listenToKeys(): void {
  addEventListener('keydown', ({ key, isComposing }) => {
    if (key !== 'Escape' || isComposing || document.querySelector('dialog[open]') !== null) return;
    if (isDrawerOpen.value) {
      isDrawerOpen.value = false;
      document.querySelector<HTMLElement>('[aria-controls=threads]')?.focus();
    } else if (isHistoryOpen.value && document.activeElement?.closest('#history')) closeHistory();
    else void currentThread.value.stop();
  });
}

function closeHistory(): void {
  isHistoryOpen.value = false;
  document.querySelector<HTMLElement>('[aria-controls=history]')?.focus();
}
