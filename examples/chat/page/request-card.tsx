import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { type Fields, fieldsOf, stringOf } from './client.ts';
import type { InputRequest } from './conversation.ts';
import { focusComposer, isComposerIdle } from './focus.ts';
import { LongText, Text, visible } from './text.tsx';

export interface RequestCardProps {
  readonly request: InputRequest;
  readonly respond: (response: unknown) => Promise<boolean>;
}

/**
 * A request of the agent. The standard form of LangChain's `humanInTheLoopMiddleware` gets a decision for each action.
 * Any other request gets an answer as text or JSON.
 */
export function RequestCard({ request, respond }: RequestCardProps): JSX.Element {
  const { actionRequests, reviewConfigs } = fieldsOf(request.payload);
  const actions = (Array.isArray(actionRequests) ? actionRequests : []).map(fieldsOf);
  const configs = (Array.isArray(reviewConfigs) ? reviewConfigs : []).map(fieldsOf);
  const isSent = useSignal(false);
  const decisions = useRef<(object | undefined)[]>([]);
  const decided = useSignal(0);
  const card = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    // The focus moves to the card, not to a button: a key that is pressed by habit must not approve anything.
    if (isComposerIdle()) element?.focus();
    return () => {
      if (element?.contains(document.activeElement)) focusComposer();
    };
  }, []);
  const answer = async (response: unknown): Promise<void> => {
    isSent.value = true;
    if (await respond(response)) focusComposer();
    else {
      isSent.value = false;
      decisions.current = [];
      decided.value = 0;
    }
  };
  const decide = (index: number, decision: object): void => {
    decisions.current[index] = decision;
    decided.value = decisions.current.filter((one) => one !== undefined).length;
    if (decided.value === actions.length) void answer({ decisions: decisions.current });
  };
  return (
    <article ref={card} class="approval" tabIndex={-1} aria-label="Request of the agent">
      {actions.length === 0 && <FreeAnswer payload={request.payload} isSent={isSent.value} answer={answer} />}
      {actions.map((action, index) => (
        <Action
          key={index}
          action={action}
          allowed={allowedIn(configs, action)}
          isDecided={isSent.value || (decided.value > 0 && decisions.current[index] !== undefined)}
          decide={(decision) => decide(index, decision)}
        />
      ))}
    </article>
  );
}

interface ActionProps {
  readonly action: Fields;
  readonly allowed: readonly unknown[];
  readonly isDecided: boolean;
  readonly decide: (decision: object) => void;
}

function Action({ action, allowed, isDecided, decide }: ActionProps): JSX.Element {
  const name = stringOf(action.name) ?? 'tool';
  const args = fieldsOf(action.args);
  const [[onlyName, onlyValue] = [], ...others] = Object.entries(args);
  // A single text is edited as text, everything else as JSON.
  const isText = others.length === 0 && typeof onlyValue === 'string';
  const given = isText ? onlyValue : JSON.stringify(args, null, 2);
  const draft = useSignal(given);
  const problem = useSignal('');
  const id = useId();
  const isEditable = allowed.includes('edit');
  const approve = (): void => {
    const edited = isText ? { [onlyName ?? '']: draft.value } : parsed(draft.value);
    if (draft.value === given) decide({ type: 'approve' });
    else if (typeof edited !== 'object' || edited === null) problem.value = 'The input is not a JSON object.';
    else decide({ type: 'edit', editedAction: { name, args: edited } });
  };
  return (
    <section aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>
        <Text value={stringOf(action.description)?.split('\n')[0] ?? `Call ${name}?`} />
      </h2>
      <label>
        <span class="label">
          {visible(name)}
          {isText ? `: ${visible(onlyName ?? '')}` : ''} {isEditable ? '(editable)' : ''}
        </span>
        <textarea
          dir="auto"
          rows={3}
          value={draft.value}
          readOnly={!isEditable || isDecided}
          onInput={({ currentTarget }) => {
            draft.value = currentTarget.value;
            problem.value = '';
          }}
        />
      </label>
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <p class="actions">
        {(allowed.includes('approve') || isEditable) && (
          <button
            type="button"
            class="button primary"
            disabled={isDecided || (draft.value === given && !allowed.includes('approve'))}
            onClick={approve}
          >
            {draft.value === given ? 'Approve' : 'Approve with changes'}
          </button>
        )}
        {allowed.includes('reject') && <RejectButton isDecided={isDecided} decide={decide} />}
      </p>
    </section>
  );
}

function RejectButton({ isDecided, decide }: Pick<ActionProps, 'isDecided' | 'decide'>): JSX.Element {
  const reason = useSignal('');
  const reject = (): void => {
    const text = reason.value.trim();
    decide({ type: 'reject', message: `The user declined${text === '' ? '.' : `: ${text}`}` });
  };
  return (
    <>
      <button type="button" class="button" disabled={isDecided} onClick={reject}>
        Reject
      </button>
      <input
        aria-label="Reason for the rejection"
        placeholder="Reason (optional)"
        value={reason.value}
        disabled={isDecided}
        onInput={({ currentTarget }) => {
          reason.value = currentTarget.value;
        }}
      />
    </>
  );
}

interface FreeAnswerProps {
  readonly payload: unknown;
  readonly isSent: boolean;
  readonly answer: (response: unknown) => Promise<void>;
}

function FreeAnswer({ payload, isSent, answer }: FreeAnswerProps): JSX.Element {
  const draft = useSignal('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void answer(parsed(draft.value) ?? draft.value);
      }}
    >
      <h2>The agent asks</h2>
      <p class="plain" dir="auto">
        <LongText value={typeof payload === 'string' ? payload : (JSON.stringify(payload, null, 2) ?? '')} />
      </p>
      <label>
        <span class="label">Your answer, as text or JSON</span>
        <textarea
          dir="auto"
          rows={3}
          value={draft.value}
          onInput={({ currentTarget }) => {
            draft.value = currentTarget.value;
          }}
        />
      </label>
      <p class="actions">
        <button type="submit" class="button primary" disabled={isSent || draft.value.trim() === ''}>
          Send answer
        </button>
      </p>
    </form>
  );
}

function allowedIn(configs: readonly Fields[], { name }: Fields): readonly unknown[] {
  const { allowedDecisions } = configs.find(({ actionName }) => actionName === name) ?? {};
  return Array.isArray(allowedDecisions) ? allowedDecisions : ['approve', 'reject'];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
