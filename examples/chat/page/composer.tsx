import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { focusComposer } from './composer-focus.ts';
import { isBusy } from './conversation.ts';
import { currentDraft, NEW_ADDRESS, say } from './current-thread.ts';
import { draftOf, moveDraft, NEW } from './drafts.ts';
import { Icon } from './icon.tsx';
import type { Thread } from './thread.ts';
import { isBlank } from './visible-text.ts';

const CHARS_MAX = 1_000_000;

/** Why nothing is sent. */
const WORKING = 'The answer is still being made. Send this when it is there, or stop it.';
const ASKED = 'The agent waits for your decision above: approve, or decline.';
const UNANSWERED = 'The server does not answer at the moment. Send this when it is back.';

const ABSENT = {
  gone: 'The server does not know this conversation any more. It was deleted elsewhere, or lost.',
  impossible: 'There is no such conversation.',
} as const;

/** Where the next message is written. Enter sends it, Shift and Enter begin a new line. */
export function Composer({ thread }: { thread: Thread }): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  const text = currentDraft();
  const conversation = thread.conversation.value;
  const isWorking = isBusy(conversation);
  const isAsked = thread.viewed.value === undefined && conversation.requests.length > 0 && !isWorking;
  const isAway = thread.connection.value === 'reconnecting';
  const obstacle = isWorking ? (isAway ? UNANSWERED : WORKING) : isAsked ? ASKED : undefined;
  const isHinted = useSignal(false);
  useLayoutEffect(focusComposer, [thread]);
  useEffect(() => {
    isHinted.value = false;
  }, [obstacle]);
  const send = async (): Promise<void> => {
    const said = text.value.trim();
    if (obstacle !== undefined && (!isBlank(said) || isAsked)) {
      isHinted.value = true;
      announce(obstacle);
    }
    if (obstacle !== undefined || isBlank(said)) return;
    text.value = '';
    // What the server does not take is not lost, wherever the reader is by then.
    const isTaken = await say(said);
    const draft = draftOf(thread.id);
    if (!isTaken) draft.value = draft.value === '' ? said : `${said}\n${draft.value}`;
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
        area.current?.focus();
      }}
    >
      {thread.absence.value !== undefined && (
        <p class="problem" role="alert">
          {ABSENT[thread.absence.value]}{' '}
          <a href={NEW_ADDRESS} onClick={() => moveDraft(thread.id, NEW)}>
            Begin a new one
          </a>
        </p>
      )}
      {thread.problem.value !== undefined && (
        <p class="problem" role="alert">
          {thread.problem.value}
        </p>
      )}
      {isHinted.value && obstacle !== undefined && <p class="note">{obstacle}</p>}
      <div class="composer-box">
        <label>
          <span class="unseen">Message</span>
          <textarea
            ref={area}
            dir="auto"
            rows={1}
            maxLength={CHARS_MAX}
            value={text.value}
            placeholder={isAsked ? 'The agent waits for your decision above' : 'Ask about the documents'}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
            }}
            onKeyDown={(event) => {
              // Enter ends the composition of a character in some scripts.
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              void send();
            }}
          />
        </label>
        {isWorking ? (
          <button
            type="button"
            class="button primary round"
            aria-label="Stop"
            title="Stop (Escape)"
            onClick={() => {
              void thread.stop();
              area.current?.focus();
            }}
          >
            <Icon name="stop" />
          </button>
        ) : (
          <button
            type="submit"
            class="button primary round"
            aria-label="Send"
            title="Send (Enter)"
            disabled={isBlank(text.value) || isAsked}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}
