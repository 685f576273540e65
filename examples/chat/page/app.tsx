import type { JSX } from 'preact';
import { Announcer } from './announcer.tsx';
import { Composer } from './composer.tsx';
import { ConversationView } from './conversation-view.tsx';
import { currentThread } from './current-thread.ts';
import { HistoryPanel } from './history-panel.tsx';
import { isDrawerOpen, isHistoryOpen } from './layout.ts';
import { Sidebar } from './sidebar.tsx';
import { ModelNote, TopBar, ViewedNote } from './top-bar.tsx';

export function App(): JSX.Element {
  const thread = currentThread.value;
  return (
    <div class="app">
      <Sidebar />
      {isDrawerOpen.value && (
        <button
          type="button"
          class="backdrop"
          aria-label="Close the conversations"
          onClick={() => {
            isDrawerOpen.value = false;
          }}
        />
      )}
      <main>
        <TopBar thread={thread} />
        <ModelNote />
        <ViewedNote thread={thread} />
        <ConversationView key={thread.id} thread={thread} />
        <Composer key={thread.id} thread={thread} />
      </main>
      {isHistoryOpen.value && <HistoryPanel key={thread.id} thread={thread} />}
      <Announcer />
    </div>
  );
}
