import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { config } from '../../config.ts';
import { announce } from '../parts/announcer.tsx';
import { focusComposer } from '../parts/focus.ts';
import { Icon } from '../parts/icon.tsx';
import { isBlank, Problem } from '../parts/text.tsx';
import { isBusy } from '../state/conversation.ts';
import type { Thread } from '../state/thread.ts';
import { currentDraft, draftOf, moveDraft, NEW, NEW_ADDRESS, say } from '../state/threads.ts';

/** The browser cuts longer text. */
const CHARS_MAX = 1_000_000;
const LONGEST = `A message can have at most ${CHARS_MAX.toLocaleString('en')} characters.`;

const ABSENT = {
  deleted: 'This conversation no longer exists on the server.',
  invalid: 'This conversation does not exist.',
} as const;

/** The form for the next message. Enter sends the message, Shift+Enter starts a new line. */
export function Composer({ thread }: { thread: Thread }): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  const text = currentDraft();
  const isWorking = isBusy(thread.conversation.value);
  const isAsked = thread.viewed.value === undefined && thread.conversation.value.requests.length > 0 && !isWorking;
  const obstacle = obstacleOf(thread, isWorking, isAsked);
  const isHinted = useSignal(false);
  useLayoutEffect(focusComposer, [thread]);
  useEffect(() => {
    isHinted.value = false;
  }, [obstacle]);
  const send = async (): Promise<void> => {
    const message = text.value.trim();
    if (obstacle !== undefined && (!isBlank(message) || isAsked)) {
      isHinted.value = true;
      announce(obstacle);
    }
    if (obstacle !== undefined || isBlank(message)) return;
    text.value = '';
    // If the server refuses the message, the text is put back into the form of the thread it was written in. The user
    // may have opened another thread meanwhile.
    const isSent = await say(message);
    const draft = draftOf(thread.id);
    if (!isSent) draft.value = draft.value === '' ? message : `${message}\n${draft.value}`;
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
      <Problems thread={thread} />
      <Problem text={text.value.length < CHARS_MAX ? undefined : LONGEST} />
      {isHinted.value && obstacle !== undefined && <p class="note">{obstacle}</p>}
      <div class="composer-box row">
        <label>
          <span class="unseen">Message</span>
          <textarea
            ref={area}
            dir="auto"
            rows={1}
            maxLength={CHARS_MAX}
            value={text.value}
            placeholder={isAsked ? 'The agent is waiting for your decision above' : config.placeholder}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
            }}
            onKeyDown={(event) => {
              // While a character is being composed, as in Japanese, Enter completes the character and must not send
              // the message.
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              void send();
            }}
          />
        </label>
        <SendButton
          isWorking={isWorking}
          isDisabled={isBlank(text.value) || isAsked}
          stop={() => {
            void thread.stop();
            area.current?.focus();
          }}
        />
      </div>
    </form>
  );
}

/** Returns the reason why no message can be sent now, or undefined if one can. */
function obstacleOf(thread: Thread, isWorking: boolean, isAsked: boolean): string | undefined {
  if (isWorking && thread.connection.value === 'reconnecting')
    return 'The server does not respond. Send the message later.';
  if (isWorking) return 'The agent is still answering. Wait for the answer, or press Stop.';
  return isAsked ? 'The agent is waiting for your decision above.' : undefined;
}

interface SendButtonProps {
  readonly isWorking: boolean;
  readonly isDisabled: boolean;
  readonly stop: () => void;
}

function SendButton({ isWorking, isDisabled, stop }: SendButtonProps): JSX.Element {
  return isWorking ? (
    <button type="button" class="button primary round" aria-label="Stop" title="Stop (Escape)" onClick={stop}>
      <Icon name="stop" />
    </button>
  ) : (
    <button type="submit" class="button primary round" aria-label="Send" title="Send (Enter)" disabled={isDisabled}>
      <Icon name="send" />
    </button>
  );
}

function Problems({ thread }: { thread: Thread }): JSX.Element {
  return (
    <>
      {thread.absence.value !== undefined && (
        <p class="problem" role="alert">
          {ABSENT[thread.absence.value]}{' '}
          <a href={NEW_ADDRESS} onClick={() => moveDraft(thread.id, NEW)}>
            Start a new one
          </a>
        </p>
      )}
      <Problem text={thread.problem.value} />
    </>
  );
}
