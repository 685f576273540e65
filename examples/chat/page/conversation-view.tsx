import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApprovalCard } from './approval-card.tsx';
import { focusComposer } from './composer-focus.ts';
import { type Conversation, isBusy } from './conversation.ts';
import { say } from './current-thread.ts';
import { Icon } from './icon.tsx';
import { RunEnd } from './run-end.tsx';
import type { Thread } from './thread.ts';
import { TurnView } from './turn-view.tsx';
import { turnsOf } from './turns.ts';

/** Turns that are shown of a long conversation, from its end, and how many more at a time. */
const SHOWN_TURNS = 30;
const MORE_TURNS = 50;
/** Closer to the end than this, the reader follows what comes. */
const END_PX = 60;

const SUGGESTIONS = ['What is the spool?', 'Compare OpenAI and LangChain', 'Save a note: read about the spool'];

/** The conversation, as far as it has come, and what it waits for. */
export function ConversationView({ thread }: { thread: Thread }): JSX.Element {
  const conversation = thread.shown;
  const turns = turnsOf(conversation);
  const [count, setCount] = useState(SHOWN_TURNS);
  const hidden = Math.max(0, turns.length - count);
  const isWorking = isBusy(conversation);
  const scroller = useFollowedEnd();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard.
    <div class="scroller" ref={scroller} tabIndex={0} role="region" aria-label="Conversation">
      <div class="content">
        {turns.length === 0 && <Welcome thread={thread} />}
        {hidden > 0 && (
          <button type="button" class="link earlier" onClick={() => setCount(count + MORE_TURNS)}>
            Show {Math.min(MORE_TURNS, hidden)} earlier of {turns.length.toLocaleString('en')} turns
          </button>
        )}
        <ol class="turns" start={hidden + 1}>
          {turns.slice(hidden).map((turn, index) => (
            <TurnView
              key={turn.question?.id ?? 'first'}
              turn={turn}
              thread={thread}
              conversation={conversation}
              isLast={hidden + index === turns.length - 1}
              isBusy={isWorking}
            />
          ))}
        </ol>
        {!isWorking &&
          conversation.requests.map((request) => (
            <ApprovalCard
              key={request.id}
              request={request}
              respond={(response) => thread.respond(request, response)}
            />
          ))}
        <Outcome thread={thread} conversation={conversation} />
      </div>
    </div>
  );
}

function Welcome({ thread }: { thread: Thread }): JSX.Element | null {
  const connection = thread.connection.value;
  if (thread.absence.value !== undefined) return null;
  if (connection === 'connecting' || connection === 'reconnecting') return <p class="note loading">Loading</p>;
  return (
    <div class="welcome">
      <h2>What would you like to know?</h2>
      <p class="note">A supervisor answers, with the help of a researcher who reads the documents, and a writer.</p>
      <ul>
        {SUGGESTIONS.map((suggestion) => (
          <li key={suggestion}>
            <button type="button" class="button" onClick={() => void say(suggestion).then(focusComposer)}>
              {suggestion}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What became of the last run, where that is not an answer, and what the reader can do. */
function Outcome({ thread, conversation }: { thread: Thread; conversation: Conversation }): JSX.Element | null {
  const { run, requests, next } = conversation;
  if (thread.viewed.value !== undefined || isBusy(conversation) || requests.length > 0) return null;
  // Nobody works on it, and nobody has told why: its server has gone, with all that it knew.
  const isLeft = run.status === 'idle' && next.length > 0 && thread.connection.value === 'open';
  const isEnded = run.status === 'failed' || run.status === 'interrupted';
  if (!isEnded && !isLeft) return null;
  return (
    <div class={`outcome ${run.status === 'failed' ? 'outcome-bad' : ''}`} role="group" aria-label="Outcome">
      <p class="plain">
        {isEnded && <RunEnd run={run} />}
        {isLeft && 'This was left before its end.'}
      </p>
      <button type="button" class="button" onClick={() => void thread.retry().then(focusComposer)}>
        <Icon name="retry" /> Try again
      </button>
    </div>
  );
}

/** Scrolls along with what comes, as long as the reader is at the end. */
function useFollowedEnd(): { readonly current: HTMLDivElement | null } {
  const scroller = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    let isAtEnd = true;
    let lastTop = 0;
    const note = (): void => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < END_PX;
      // What has come since the last step down is no step of the reader's.
      if (isNear || element.scrollTop < lastTop) isAtEnd = isNear;
      lastTop = element.scrollTop;
    };
    const follow = new ResizeObserver(() => {
      if (isAtEnd) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener('scroll', note, { passive: true });
    for (const grows of [element, ...element.children]) follow.observe(grows);
    return () => {
      element.removeEventListener('scroll', note);
      follow.disconnect();
    };
  }, []);
  return scroller;
}
