import { type Signal, signal } from '@preact/signals';
import { type JSX, render } from 'preact';
import { Announcer } from './parts/announcer.tsx';
import { currentThread, followAddress, info } from './state/threads.ts';
import { Composer } from './views/composer.tsx';
import { ConversationView } from './views/conversation-view.tsx';
import { HistoryPanel } from './views/history-panel.tsx';
import { Sidebar } from './views/sidebar.tsx';
import { TopBar, ViewedNote } from './views/top-bar.tsx';

/** Whether the list of threads is open on a narrow screen. */
const isDrawerOpen: Signal<boolean> = signal(false);
const isHistoryOpen: Signal<boolean> = signal(false);

function App(): JSX.Element {
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
          <p class="model-note">No model is configured: answers come from built-in rules.</p>
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

/** Escape closes the drawer or the history, and otherwise stops the agent. A dialog handles the key itself. */
function listenToKeys(): void {
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

followAddress();
listenToKeys();
render(<App />, document.body);
