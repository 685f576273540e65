import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { focusComposer } from './composer-focus.ts';
import { isBusy } from './conversation.ts';
import { Icon } from './icon.tsx';
import { info } from './info.ts';
import { isDrawerOpen, isHistoryOpen } from './layout.ts';
import type { ThreadSummary } from './protocol.ts';
import { nextTheme, theme } from './theme.ts';
import type { Thread } from './thread.ts';
import { threads } from './threads.ts';
import { visible } from './visible-text.ts';

export function TopBar({ thread }: { thread: Thread }): JSX.Element {
  const listed = threads.value?.find(({ id }) => id === thread.id);
  // One that was deleted elsewhere is still read.
  const known = useRef<ThreadSummary | undefined>(undefined);
  if (listed !== undefined || known.current?.id !== thread.id) known.current = listed;
  const title = known.current?.title ?? 'New conversation';
  useEffect(() => {
    document.title = visible(title);
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
        <bdi>{visible(title)}</bdi>
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
        aria-label={`Colours: ${theme.value}`}
        title={`Colours: ${theme.value}`}
        onClick={nextTheme}
      >
        <Icon name="theme" />
      </button>
    </header>
  );
}

/** Says of an agent without a model what it is. */
export function ModelNote(): JSX.Element | null {
  if (info.value?.model.is_local !== true) return null;
  return <p class="model-note">No model is configured: the answers are made by a few rules, on this machine.</p>;
}

/** Says that this is the past, and leads back. */
export function ViewedNote({ thread }: { thread: Thread }): JSX.Element | null {
  const viewed = thread.viewed.value;
  if (viewed === undefined) return null;
  const time = new Date(viewed.created_at ?? '');
  const newest = thread.conversation.value;
  const isAsked = newest.requests.length > 0 && !isBusy(newest);
  return (
    <div class="viewed-note" role="group" aria-label="An earlier point">
      <p>
        The conversation as it was{Number.isNaN(time.getTime()) ? '' : ` at ${time.toLocaleTimeString()}`}. What you
        send now begins a branch here.
        {isAsked &&
          ' The agent waits for your decision in the newest state; a branch goes on without it, and leaves that undone.'}
      </p>
      <button
        type="button"
        class="button"
        onClick={() => {
          thread.view(undefined);
          focusComposer();
        }}
      >
        Back to the newest
      </button>
    </div>
  );
}
