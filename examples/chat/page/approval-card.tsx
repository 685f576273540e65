import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useId } from 'preact/hooks';
import { focusComposer } from './composer-focus.ts';
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
  const answer = async (response: object): Promise<void> => {
    isSent.value = true;
    if (await respond(response)) focusComposer();
    else isSent.value = false;
  };
  return (
    <article class="approval" aria-labelledby={`${id}-question`}>
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
