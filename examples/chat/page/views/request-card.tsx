import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { focusComposer, isComposerIdle } from '../parts/focus.ts';
import { LongText, Problem, Text, visible } from '../parts/text.tsx';
import { type Fields, fieldsOf, stringOf } from '../state/client.ts';
import type { InputRequest } from '../state/conversation.ts';

interface RequestCardProps {
  readonly request: InputRequest;
  /** Sends the response. Resolves to false if the server does not accept the response. */
  readonly respond: (response: unknown) => Promise<boolean>;
}

type Decision = { readonly type: 'approve' | 'edit' | 'reject' } & Fields;

/**
 * A request of the agent. A request in the form of LangChain's `humanInTheLoopMiddleware` needs a decision for each
 * action, which can be changed until the last one is decided. Any other request needs an answer as text or JSON.
 */
export function RequestCard({ request, respond }: RequestCardProps): JSX.Element {
  const { actionRequests, reviewConfigs } = fieldsOf(request.payload);
  const actions = listOf(actionRequests);
  const configs = listOf(reviewConfigs);
  const isSent = useSignal(false);
  const decisions = useSignal<readonly (Decision | undefined)[]>(actions.map(() => undefined));
  const card = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    // The focus moves to the card instead of a button, so that a key pressed by habit does not approve anything.
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
      decisions.value = actions.map(() => undefined);
    }
  };
  const decide = (index: number, decision: Decision | undefined): void => {
    decisions.value = decisions.value.map((known, at) => (at === index ? decision : known));
    if (!decisions.value.includes(undefined)) void answer({ decisions: decisions.value });
  };
  return (
    <article ref={card} class="approval" tabIndex={-1} aria-label="Request of the agent">
      {actions.length === 0 && <FreeAnswer payload={request.payload} isSent={isSent.value} answer={answer} />}
      {actions.length > 1 && (
        <p class="note">Decide on all {actions.length} actions. If you reject one action, none is run.</p>
      )}
      {actions.map((action, index) => (
        <Action
          key={index}
          action={action}
          allowed={allowedIn(configs, action)}
          decided={decisions.value[index]?.type}
          isSent={isSent.value}
          decide={(decision) => decide(index, decision)}
        />
      ))}
    </article>
  );
}

interface ActionProps {
  readonly action: Fields;
  readonly allowed: readonly unknown[];
  readonly decided: Decision['type'] | undefined;
  readonly isSent: boolean;
  /** Undefined if the user changes the input after a decision. */
  readonly decide: (decision: Decision | undefined) => void;
}

function Action({ action, allowed, decided, isSent, decide }: ActionProps): JSX.Element {
  const name = stringOf(action.name) ?? 'tool';
  const args = fieldsOf(action.args);
  const [[onlyName, onlyValue] = [], ...others] = Object.entries(args);
  // A single text argument is edited as text. Other arguments are edited as JSON.
  const isText = others.length === 0 && typeof onlyValue === 'string';
  const given = isText ? onlyValue : JSON.stringify(args, null, 2);
  const draft = useSignal(given);
  const problem = useSignal('');
  const id = useId();
  const isEditable = allowed.includes('edit');
  const isChanged = draft.value !== given;
  const approve = (): void => {
    const edited = isText ? { [onlyName ?? '']: draft.value } : parsed(draft.value);
    if (!isChanged) decide({ type: 'approve' });
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
          {visible(isText ? `${name}: ${onlyName}` : name)} {isEditable && '(editable)'}
        </span>
        <textarea
          dir="auto"
          rows={3}
          value={draft.value}
          readOnly={!isEditable || isSent}
          onInput={({ currentTarget }) => {
            draft.value = currentTarget.value;
            problem.value = '';
            decide(undefined);
          }}
        />
      </label>
      <Problem text={problem.value} />
      <p class="actions">
        {(allowed.includes('approve') || isEditable) && (
          <button
            type="button"
            class="button primary"
            aria-pressed={decided !== undefined && decided !== 'reject'}
            disabled={isSent || (!isChanged && !allowed.includes('approve'))}
            onClick={approve}
          >
            {isChanged ? 'Approve with changes' : 'Approve'}
          </button>
        )}
        {allowed.includes('reject') && <Rejection decided={decided} isSent={isSent} decide={decide} />}
      </p>
    </section>
  );
}

function Rejection({ decided, isSent, decide }: Pick<ActionProps, 'decided' | 'isSent' | 'decide'>): JSX.Element {
  const reason = useRef<HTMLInputElement>(null);
  const reject = (): void => {
    const text = reason.current?.value.trim();
    decide({ type: 'reject', message: `The user declined${text ? `: ${text}` : '.'}` });
  };
  return (
    <>
      <button type="button" class="button" aria-pressed={decided === 'reject'} disabled={isSent} onClick={reject}>
        Reject
      </button>
      <input
        ref={reason}
        aria-label="Reason for the rejection"
        placeholder="Reason (optional)"
        disabled={isSent}
        onInput={() => decide(undefined)}
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
  const area = useRef<HTMLTextAreaElement>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    const text = area.current?.value ?? '';
    void answer(parsed(text) ?? text);
  };
  return (
    <form onSubmit={submit}>
      <h2>The agent asks</h2>
      <p class="plain" dir="auto">
        <LongText value={typeof payload === 'string' ? payload : (JSON.stringify(payload, null, 2) ?? '')} />
      </p>
      <label>
        <span class="label">Your answer, as text or JSON</span>
        <textarea ref={area} dir="auto" rows={3} required />
      </label>
      <p class="actions">
        <button type="submit" class="button primary" disabled={isSent}>
          Send answer
        </button>
      </p>
    </form>
  );
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
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
