import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { focusComposer } from './composer-focus.ts';
import type { Conversation } from './conversation.ts';
import { Icon } from './icon.tsx';
import { info } from './info.ts';
import { type Message, textIn } from './message.ts';
import { MessageBlocks } from './message-blocks.tsx';
import { RatingView } from './rating.tsx';
import { RATING_KEY } from './ratings.ts';
import { isCutShort, RunEnd } from './run-end.tsx';
import { LongText } from './text.tsx';
import type { Thread } from './thread.ts';
import { traceUrl } from './trace-link.ts';
import type { Turn } from './turns.ts';
import { isBlank } from './visible-text.ts';

export interface TurnViewProps {
  readonly turn: Turn;
  readonly thread: Thread;
  readonly conversation: Conversation;
  readonly isLast: boolean;
  readonly isBusy: boolean;
}

/** What was said and what was answered, and what can be done about it. */
export function TurnView(props: TurnViewProps): JSX.Element {
  const { turn, conversation, isLast, isBusy } = props;
  const { question, answer, end, runId } = turn;
  const isOver = !(isLast && isBusy);
  return (
    <li class="turn">
      {question !== undefined && <Question {...props} question={question} />}
      {(answer.length > 0 || !isOver) && (
        <article class="answer" aria-label="Answer" aria-busy={!isOver}>
          {answer.map((message) => (
            <MessageBlocks key={message.id} message={message} conversation={conversation} isLive={isLast} />
          ))}
          {!isOver && <p class="working">Working</p>}
        </article>
      )}
      {/* That of the last one stands below the conversation, with what can be done. */}
      {!isLast && end !== undefined && isCutShort(end) && (
        <p class="note plain">
          <RunEnd run={end} />
        </p>
      )}
      {isOver && (answer.length > 0 || runId !== undefined) && !(isLast && conversation.requests.length > 0) && (
        <AnswerActions {...props} />
      )}
    </li>
  );
}

function Question({ question, thread, isBusy }: TurnViewProps & { readonly question: Message }): JSX.Element {
  const isEdited = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasEdited = useRef(false);
  useLayoutEffect(() => {
    if (wasEdited.current && !isEdited.value) {
      if (button.current === null) focusComposer();
      else button.current.focus();
    }
    wasEdited.current = isEdited.value;
  }, [isEdited.value]);
  const text = textIn(question);
  if (isEdited.value) {
    const close = (): void => {
      isEdited.value = false;
    };
    return <QuestionForm text={text} send={(changed) => thread.edit(question.id, changed)} close={close} />;
  }
  return (
    <article class="question" aria-label="You">
      <p class="plain" dir="auto">
        <LongText value={text} />
      </p>
      {!isBusy && (
        <button
          ref={button}
          type="button"
          class="button quiet"
          aria-label="Edit the message"
          title="Edit: what you send in its place begins a branch"
          onClick={() => {
            isEdited.value = true;
          }}
        >
          <Icon name="edit" />
        </button>
      )}
    </article>
  );
}

function QuestionForm({
  text,
  send,
  close,
}: {
  text: string;
  send: (text: string) => Promise<boolean>;
  close: () => void;
}): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => area.current?.focus(), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const changed = area.current?.value.trim() ?? '';
    if (!isBlank(changed) && (await send(changed))) close();
  };
  return (
    <form class="question-form" onSubmit={(event) => void submit(event)}>
      <label>
        <span class="unseen">Message in the place of this one</span>
        <textarea
          ref={area}
          dir="auto"
          rows={3}
          defaultValue={text}
          onKeyDown={(event) => {
            if (event.isComposing) return;
            if (event.key === 'Enter' && !event.shiftKey) void submit(event);
            if (event.key === 'Escape') {
              event.stopPropagation();
              close();
            }
          }}
        />
      </label>
      <p class="actions">
        <button type="submit" class="button primary">
          Send
        </button>
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
      </p>
    </form>
  );
}

function AnswerActions({ turn, thread, conversation, isLast, isBusy }: TurnViewProps): JSX.Element | null {
  const { runId, answer } = turn;
  const { run, next } = conversation;
  // Where there is no answer, that is told apart, with the way to get one.
  const isAnswered = run.status === 'completed' || (run.status === 'idle' && next.length === 0);
  const trace = runId === undefined ? undefined : traceUrl(info.value?.tracing.viewer_url, runId);
  const isAnswer = answer.length > 0;
  if (!isAnswer && trace === undefined) return null;
  const isRated = isAnswer && info.value?.feedback_keys.includes(RATING_KEY) === true;
  return (
    <div class="answer-actions" role="group" aria-label="About this answer">
      {isLast && !isBusy && isAnswered && (
        <button type="button" class="button quiet" onClick={() => void thread.retry().then(focusComposer)}>
          <Icon name="retry" /> Retry
        </button>
      )}
      {trace !== undefined && (
        <a class="button quiet" href={trace} target="_blank" rel="noopener noreferrer">
          <Icon name="trace" /> Trace
        </a>
      )}
      {runId !== undefined && isRated && <RatingView threadId={thread.id} runId={runId} />}
    </div>
  );
}
