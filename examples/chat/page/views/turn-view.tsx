import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { focusComposer } from '../parts/focus.ts';
import { Icon, IconButton } from '../parts/icon.tsx';
import { CopyButton } from '../parts/markdown.tsx';
import { isBlank, LongText } from '../parts/text.tsx';
import { type Conversation, isCutShort, type RunState, type Turn } from '../state/conversation.ts';
import { type Message, textIn } from '../state/message.ts';
import type { Thread } from '../state/thread.ts';
import { info } from '../state/threads.ts';
import { MessageView } from './message-view.tsx';
import { RATING_KEY, RatingView } from './rating.tsx';

export interface TurnViewProps {
  readonly turn: Turn;
  readonly thread: Thread;
  readonly conversation: Conversation;
  readonly isLast: boolean;
  readonly isBusy: boolean;
}

/** A question, its answer, and buttons for both. */
export function TurnView(props: TurnViewProps): JSX.Element {
  const { turn, conversation, isLast, isBusy } = props;
  const { question, answer, end, runId } = turn;
  const isWorking = isLast && isBusy;
  const isWaiting = isLast && conversation.requests.length > 0;
  return (
    <li class="turn">
      {question !== undefined && <Question {...props} question={question} />}
      {(answer.length > 0 || isWorking) && (
        <article class="answer" aria-label="Answer" aria-busy={isWorking}>
          {answer.map((message) => (
            <MessageView key={message.id} message={message} conversation={conversation} isLast={isLast} />
          ))}
          {isWorking && <p class="working">Working</p>}
        </article>
      )}
      {/* The end of the last turn is shown below the conversation. */}
      {!isLast && end !== undefined && isCutShort(end) && (
        <p class="note plain">
          <EndNote end={end} />
        </p>
      )}
      {!isWorking && !isWaiting && (answer.length > 0 || runId !== undefined) && <AnswerActions {...props} />}
    </li>
  );
}

/** A note about why a run did not complete. */
export function EndNote({ end: { status, error = '' } }: { end: RunState }): JSX.Element {
  if (status !== 'failed') return <>{error === 'cancelled' ? 'Stopped.' : `This answer was interrupted: ${error}.`}</>;
  return (
    <>
      <strong>The answer failed.</strong> <LongText value={error} />
    </>
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
    <article class="question row" aria-label="You">
      <p class="plain" dir="auto">
        <LongText value={text} />
      </p>
      {question.blocks.some(({ type }) => type !== 'text') && <p class="note">With attachments</p>}
      {!isBusy && (
        <IconButton
          ref={button}
          icon="edit"
          label="Edit message"
          title="Edit message (starts a branch)"
          onClick={() => {
            isEdited.value = true;
          }}
        />
      )}
    </article>
  );
}

interface QuestionFormProps {
  readonly text: string;
  readonly send: (text: string) => Promise<boolean>;
  readonly close: () => void;
}

function QuestionForm({ text, send, close }: QuestionFormProps): JSX.Element {
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
        <span class="unseen">Edit message</span>
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
  // If there is no answer, the button `Try again` is shown below the conversation instead.
  const isAnswered = run.status === 'completed' || (run.status === 'idle' && next.length === 0);
  const viewerUrl = info.value?.tracing.viewer_url;
  const trace = runId && viewerUrl ? traceUrl(viewerUrl, runId) : undefined;
  const text = answer.map(textIn).join('\n\n').trim();
  if (answer.length === 0 && trace === undefined) return null;
  const isRated = answer.length > 0 && info.value?.feedback_keys.includes(RATING_KEY) === true;
  return (
    <div class="answer-actions row" role="group" aria-label="Actions for this answer">
      {text !== '' && <CopyButton text={text} label="Copy answer" />}
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

/**
 * Returns the URL of a run in the trace viewer. The run is the root of its trace, so the trace has the same id as the
 * run.
 */
function traceUrl(viewerUrl: string, runId: string): string {
  const url = new URL(viewerUrl);
  url.search = `${new URLSearchParams({ trace: runId, run: runId })}`;
  return url.href;
}
