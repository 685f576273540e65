import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon, IconButton } from '../parts/icon.tsx';
import { Problem, visible } from '../parts/text.tsx';
import type { ThreadSummary } from '../state/client.ts';
import {
  addressOf,
  currentThread,
  deleteThread,
  hasMoreThreads,
  loadMoreThreads,
  NEW_ADDRESS,
  threads,
  threadsProblem,
} from '../state/threads.ts';

/** The list of threads, which is shown as a drawer on narrow screens. */
export function Sidebar({ isOpen, close }: { isOpen: boolean; close: () => void }): JSX.Element {
  const chosen = useSignal<ThreadSummary | undefined>(undefined);
  const start = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isOpen) start.current?.focus();
  }, [isOpen]);
  return (
    <nav id="threads" class={`panel sidebar ${isOpen ? 'opened' : ''}`} aria-label="Conversations">
      <a ref={start} class="button new" href={NEW_ADDRESS} onClick={close}>
        <Icon name="new" /> New conversation
      </a>
      <ul class="threads">
        {threads.value?.map((thread) => {
          const isCurrent = thread.id === currentThread.value.id;
          return (
            <li key={thread.id} class={`row ${isCurrent ? 'current' : ''}`}>
              <a
                class="ellipsis"
                href={addressOf(thread.id)}
                title={visible(thread.title)}
                aria-current={isCurrent ? 'page' : undefined}
                onClick={close}
              >
                <bdi>{visible(thread.title)}</bdi>
              </a>
              <IconButton
                icon="delete"
                label={`Delete ${visible(thread.title)}`}
                onClick={() => {
                  chosen.value = thread;
                }}
              />
            </li>
          );
        })}
      </ul>
      {hasMoreThreads.value && (
        <button type="button" class="link" onClick={() => void loadMoreThreads()}>
          Show more conversations
        </button>
      )}
      {threads.value?.length === 0 && <p class="note">Your conversations will appear here.</p>}
      <Problem text={threadsProblem.value} />
      {chosen.value !== undefined && (
        <DeleteDialog
          thread={chosen.value}
          close={(isDeleted) => {
            if (isDeleted && chosen.value?.id === currentThread.value.id) location.hash = NEW_ADDRESS;
            chosen.value = undefined;
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
    // The focus is on Cancel, so that pressing Enter by habit does not delete anything.
    cancel.current?.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="delete-title" onClose={() => close(false)}>
      <h2 id="delete-title">Delete this conversation?</h2>
      <p>
        <bdi>{visible(thread.title)}</bdi> and its history will be deleted.
      </p>
      <p class="actions">
        <button
          type="button"
          class="button danger"
          onClick={() =>
            void deleteThread(thread.id).then((isDeleted) => {
              // The dialog is closed before it is removed, because otherwise the focus would not return to the previous
              // element.
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
