import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { config } from '../config.ts';
import type { ThreadSummary } from './client.ts';
import { isBusy } from './conversation.ts';
import { focusComposer } from './focus.ts';
import { Icon } from './icon.tsx';
import { recall, remember } from './memory.ts';
import { visible } from './text.tsx';
import type { Thread } from './thread.ts';
import { threads } from './threads.ts';

const THEME = 'chat.theme';
const THEMES = ['system', 'dark', 'light'];
const theme: Signal<string> = signal(recall(THEME) ?? 'system');

theme.subscribe((value) => {
  if (value === 'dark' || value === 'light') document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  remember(THEME, value);
});

export interface TopBarProps {
  readonly thread: Thread;
  readonly isDrawerOpen: Signal<boolean>;
  readonly isHistoryOpen: Signal<boolean>;
}

export function TopBar({ thread, isDrawerOpen, isHistoryOpen }: TopBarProps): JSX.Element {
  const listed = threads.value?.find(({ id }) => id === thread.id);
  // A thread that was deleted elsewhere keeps its title while it is shown.
  const known = useRef<ThreadSummary | undefined>(undefined);
  if (listed !== undefined || known.current?.id !== thread.id) known.current = listed;
  const title = known.current?.title;
  useEffect(() => {
    document.title = visible(title ?? config.title);
  }, [title]);
  return (
    <header class="top">
      <button
        type="button"
        class="button quiet narrow-only"
        aria-label="Conversations"
        aria-expanded={isDrawerOpen.value}
        aria-controls="threads"
        onClick={() => {
          isDrawerOpen.value = !isDrawerOpen.value;
        }}
      >
        <Icon name="menu" />
      </button>
      <h1>
        <bdi>{visible(title ?? 'New conversation')}</bdi>
      </h1>
      <span class="connection" role="status">
        {thread.connection.value === 'reconnecting' ? 'Reconnecting' : ''}
      </span>
      <button
        type="button"
        class="button quiet"
        aria-label="History"
        title="History of this conversation"
        aria-expanded={isHistoryOpen.value}
        aria-controls="history"
        onClick={() => {
          isHistoryOpen.value = !isHistoryOpen.value;
        }}
      >
        <Icon name="history" />
      </button>
      <button
        type="button"
        class="button quiet"
        aria-label={`Theme: ${theme.value}`}
        title={`Theme: ${theme.value}`}
        onClick={() => {
          theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
        }}
      >
        <Icon name="theme" />
      </button>
    </header>
  );
}

/** A note that an earlier state is shown, and a way back. */
export function ViewedNote({ thread }: { thread: Thread }): JSX.Element | null {
  const viewed = thread.viewed.value;
  if (viewed === undefined) return null;
  const time = new Date(viewed.created_at ?? '');
  const newest = thread.conversation.value;
  const isAsked = newest.requests.length > 0 && !isBusy(newest);
  return (
    <div class="viewed-note" role="group" aria-label="Earlier point">
      <p>
        The conversation{Number.isNaN(time.getTime()) ? '' : ` at ${time.toLocaleTimeString()}`}. Sending a message
        starts a branch here.
        {isAsked && ' The agent waits for your decision in the latest state. A branch leaves it undecided.'}
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
