import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { focusComposer, isComposerIdle } from './composer-focus.ts';
import type { InputRequest } from './conversation.ts';
import { fieldsOf, stringOf } from './protocol.ts';
import { LongText, Text } from './text.tsx';

/** What the agent asks before it does something: to be approved, with another text if need be, or declined. */
export function ApprovalCard({
  request,
  respond,
}: {
  request: InputRequest;
  respond: (response: object) => Promise<boolean>;
}): JSX.Element {
  const { question, text } = fieldsOf(request.payload);
  const asked = stringOf(question) ?? 'The agent asks for your approval.';
  const given = stringOf(text);
  const draft = useSignal(given ?? '');
  const isSent = useSignal(false);
  const id = useId();
  const card = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    // To the card, and to none of its controls: who presses a key by habit neither changes the text nor approves of it.
    if (isComposerIdle()) element?.focus();
    return () => {
      if (element?.contains(document.activeElement)) focusComposer();
    };
  }, []);
  const answer = async (response: object): Promise<void> => {
    isSent.value = true;
    if (await respond(response)) focusComposer();
    else isSent.value = false;
  };
  return (
    <article ref={card} class="approval" tabIndex={-1} aria-labelledby={`${id}-question`}>
      <h2 id={`${id}-question`}>
        <Text value={asked} />
      </h2>
      {given === undefined ? (
        <p class="plain">
          <LongText value={JSON.stringify(request.payload, null, 2) ?? ''} />
        </p>
      ) : (
        <label>
          <span class="label">Text, which you can change</span>
          <textarea
            dir="auto"
            rows={3}
            value={draft.value}
            onInput={({ currentTarget }) => {
              draft.value = currentTarget.value;
            }}
          />
        </label>
      )}
      <p class="actions">
        <button
          type="button"
          class="button primary"
          disabled={isSent.value}
          onClick={() =>
            void answer({
              decision: 'approve',
              ...(given !== undefined && draft.value !== given ? { text: draft.value } : {}),
            })
          }
        >
          Approve
        </button>
        <button
          type="button"
          class="button"
          disabled={isSent.value}
          onClick={() => void answer({ decision: 'decline' })}
        >
          Decline
        </button>
      </p>
    </article>
  );
}
