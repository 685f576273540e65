import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { config } from '../../config.ts';
import { focusComposer } from '../parts/focus.ts';
import { IconButton } from '../parts/icon.tsx';
import { storedSignal } from '../parts/memory.ts';
import { visible } from '../parts/text.tsx';
import type { ThreadSummary } from '../state/client.ts';
import { isBusy } from '../state/conversation.ts';
import type { Thread } from '../state/thread.ts';
import { threads } from '../state/threads.ts';

const THEMES = ['system', 'dark', 'light'];
const theme: Signal<string> = storedSignal('theme', 'system');

theme.subscribe((value) => {
  document.documentElement.style.colorScheme = value === 'system' ? '' : value;
});

export interface TopBarProps {
  readonly thread: Thread;
  readonly isDrawerOpen: Signal<boolean>;
  readonly isHistoryOpen: Signal<boolean>;
}

export function TopBar({ thread, isDrawerOpen, isHistoryOpen }: TopBarProps): JSX.Element {
  const listed = threads.value?.find(({ id }) => id === thread.id);
  // If the shown thread is deleted on another page, its title is kept.
  const known = useRef<ThreadSummary | undefined>(undefined);
  if (listed !== undefined || known.current?.id !== thread.id) known.current = listed;
  const title = known.current?.title;
  useEffect(() => {
    document.title = visible(title ?? config.title);
  }, [title]);
  return (
    <header class="top row">
      <IconButton
        icon="menu"
        label="Conversations"
        class="narrow-only"
        aria-expanded={isDrawerOpen.value}
        aria-controls="threads"
        onClick={() => {
          isDrawerOpen.value = !isDrawerOpen.value;
        }}
      />
      <h1 class="ellipsis">
        <bdi>{visible(title ?? 'New conversation')}</bdi>
      </h1>
      <span class="connection" role="status">
        {thread.connection.value === 'reconnecting' ? 'Reconnecting' : ''}
      </span>
      <IconButton
        icon="history"
        label="History"
        aria-expanded={isHistoryOpen.value}
        aria-controls="history"
        onClick={() => {
          isHistoryOpen.value = !isHistoryOpen.value;
        }}
      />
      <IconButton
        icon="theme"
        label={`Theme: ${theme.value}`}
        onClick={() => {
          theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
        }}
      />
    </header>
  );
}

/** A note that an earlier state is shown, with a button to return to the newest one. */
export function ViewedNote({ thread }: { thread: Thread }): JSX.Element | null {
  const viewed = thread.viewed.value;
  if (viewed === undefined) return null;
  const time = new Date(viewed.created_at ?? '');
  const newest = thread.conversation.value;
  const isAsked = newest.requests.length > 0 && !isBusy(newest);
  return (
    <div class="viewed-note row spread" role="group" aria-label="Earlier point">
      <p>
        The conversation{Number.isNaN(time.getTime()) ? '' : ` at ${time.toLocaleTimeString()}`}. A new message starts a
        branch here.
        {isAsked && ' The agent waits for your decision in the latest state. A branch leaves this decision open.'}
      </p>
      <button
        type="button"
        class="button"
        onClick={() => {
          thread.view(undefined);
          focusComposer();
        }}
      >
        Back to latest
      </button>
    </div>
  );
}
