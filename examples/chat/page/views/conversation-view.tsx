import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { config } from '../../config.ts';
import { focusComposer } from '../parts/focus.ts';
import { Icon } from '../parts/icon.tsx';
import { type Conversation, isBusy, isCutShort, turnsOf } from '../state/conversation.ts';
import type { Thread } from '../state/thread.ts';
import { say } from '../state/threads.ts';
import { RequestCard } from './request-card.tsx';
import { EndNote, TurnView } from './turn-view.tsx';

/** Number of turns of a long conversation that are shown at first, and number that each click adds. */
const SHOWN_TURNS = 30;
const MORE_TURNS = 50;
/** If the scroll position is closer to the end than this, the view follows new text. */
const END_PX = 60;

/** The conversation, and the agent's requests that wait for an answer. */
export function ConversationView({ thread }: { thread: Thread }): JSX.Element {
  const conversation = thread.shown;
  const turns = turnsOf(conversation);
  const [count, setCount] = useState(SHOWN_TURNS);
  const hidden = Math.max(0, turns.length - count);
  const isWorking = isBusy(conversation);
  const scroller = useFollowedEnd();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: The keyboard must reach an element that scrolls.
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
            <RequestCard key={request.id} request={request} respond={(answer) => thread.respond(request, answer)} />
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
      <h2>{config.welcome}</h2>
      <p class="note">{config.introduction}</p>
      <ul class="actions">
        {config.suggestions.map((suggestion) => (
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

/** Shows how the last run ended, if it did not end with an answer. */
function Outcome({ thread, conversation }: { thread: Thread; conversation: Conversation }): JSX.Element | null {
  const { run, requests, next } = conversation;
  if (thread.viewed.value !== undefined || isBusy(conversation) || requests.length > 0) return null;
  // The last run did not finish, but its events are no longer available.
  const isLeft = run.status === 'idle' && next.length > 0 && thread.connection.value === 'open';
  if (!isCutShort(run) && !isLeft) return null;
  return (
    <div class={`outcome row spread ${run.status === 'failed' ? 'outcome-bad' : ''}`} role="group" aria-label="Outcome">
      <p class="plain">{isLeft ? 'This answer is incomplete.' : <EndNote end={run} />}</p>
      <button type="button" class="button" onClick={() => void thread.retry().then(focusComposer)}>
        <Icon name="retry" /> Try again
      </button>
    </div>
  );
}

/** Scrolls with new content while the user is at the end of the conversation. */
function useFollowedEnd(): { readonly current: HTMLDivElement | null } {
  const scroller = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    let isAtEnd = true;
    let lastTop = 0;
    const onScroll = (): void => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < END_PX;
      // If the position is not near the end although the user has not scrolled up, the content has grown.
      if (isNear || element.scrollTop < lastTop) isAtEnd = isNear;
      lastTop = element.scrollTop;
    };
    const follow = new ResizeObserver(() => {
      if (isAtEnd) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener('scroll', onScroll, { passive: true });
    for (const grows of [element, ...element.children]) follow.observe(grows);
    return () => {
      element.removeEventListener('scroll', onScroll);
      follow.disconnect();
    };
  }, []);
  return scroller;
}
