import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { addressOf, currentThread, NEW_ADDRESS } from './current-thread.ts';
import { Icon } from './icon.tsx';
import { isDrawerOpen } from './layout.ts';
import type { ThreadSummary } from './protocol.ts';
import { deleteThread, hasMoreThreads, loadMoreThreads, threads, threadsProblem } from './threads.ts';
import { visible } from './visible-text.ts';

/** The threads that there are, and a way to a new one. On narrow screens a drawer. */
export function Sidebar(): JSX.Element {
  const doomed = useSignal<ThreadSummary | undefined>(undefined);
  const start = useRef<HTMLAnchorElement>(null);
  const close = (): void => {
    isDrawerOpen.value = false;
  };
  // What is asked for comes before the button that asked for it.
  useEffect(() => {
    if (isDrawerOpen.value) start.current?.focus();
  }, [isDrawerOpen.value]);
  return (
    <nav id="threads" class={`sidebar ${isDrawerOpen.value ? 'opened' : ''}`} aria-label="Conversations">
      <a ref={start} class="button new" href={NEW_ADDRESS} onClick={close}>
        <Icon name="new" /> New conversation
      </a>
      <ul class="threads">
        {threads.value?.map((thread) => (
          <li key={thread.id} class={thread.id === currentThread.value.id ? 'current' : ''}>
            <a
              href={addressOf(thread.id)}
              title={visible(thread.title)}
              aria-current={thread.id === currentThread.value.id ? 'page' : undefined}
              onClick={close}
            >
              <bdi>{visible(thread.title)}</bdi>
            </a>
            <button
              type="button"
              class="button quiet"
              aria-label={`Delete ${visible(thread.title)}`}
              onClick={() => {
                doomed.value = thread;
              }}
            >
              <Icon name="delete" />
            </button>
          </li>
        ))}
      </ul>
      {hasMoreThreads.value && (
        <button type="button" class="link" onClick={() => void loadMoreThreads()}>
          Show more conversations
        </button>
      )}
      {threads.value?.length === 0 && <p class="note">Your conversations will be here.</p>}
      {threadsProblem.value !== undefined && (
        <p class="problem" role="alert">
          {threadsProblem.value}
        </p>
      )}
      {doomed.value !== undefined && (
        <DeleteDialog
          thread={doomed.value}
          close={(isDeleted) => {
            if (isDeleted && doomed.value?.id === currentThread.value.id) location.hash = NEW_ADDRESS;
            doomed.value = undefined;
            if (isDeleted) start.current?.focus();
          }}
        />
      )}
    </nav>
  );
}

function DeleteDialog({ thread, close }: { thread: ThreadSummary; close: (isDeleted: boolean) => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // Whoever presses Enter unawares loses nothing.
    cancel.current?.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="delete-title" onClose={() => close(false)}>
      <h2 id="delete-title">Delete this conversation?</h2>
      <p>
        <bdi>{visible(thread.title)}</bdi> and its history will be gone.
      </p>
      <p class="actions">
        <button
          type="button"
          class="button danger"
          onClick={() =>
            void deleteThread(thread.id).then((isDeleted) => {
              // Focus goes back to where it was only when the dialog is closed, not when it is taken away.
              dialog.current?.close();
              if (isDeleted) close(true);
            })
          }
        >
          Delete
        </button>
        <button ref={cancel} type="button" class="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
      </p>
    </dialog>
  );
}
