import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { IconButton } from '../parts/icon.tsx';
import { beginningOf, Problem, visible } from '../parts/text.tsx';
import { checkpointOf, problemOf, type ThreadState } from '../state/client.ts';
import { isBusy } from '../state/conversation.ts';
import { ancestorsOf, type HistoryPage, historyPage, type PastTurn, pastTurns } from '../state/history.ts';
import type { Thread } from '../state/thread.ts';

/** Maximum number of characters shown of a question or an answer. */
const CHARS = 140;
/** Media query for screens on which the panel covers the conversation. */
const OVERLAY = '(max-width: 64rem)';

/** The panel with all turns of the thread. The user can open a turn, and a message then starts a branch there. */
export function HistoryPanel({ thread, close }: { thread: Thread; close: () => void }): JSX.Element {
  const loaded = useSignal<HistoryPage | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const asked = useRef(0);
  const heading = useRef<HTMLHeadingElement>(null);
  const isWorking = isBusy(thread.conversation.value);
  const load = async (before?: string): Promise<void> => {
    if (thread.isNew) return;
    asked.current += 1;
    const mine = asked.current;
    try {
      const page = await historyPage(thread.id, before);
      // A later request has been sent, so this response is ignored.
      if (mine !== asked.current) return;
      const known = before === undefined ? [] : (loaded.value?.states ?? []);
      loaded.value = { ...page, states: [...known, ...page.states] };
      problem.value = undefined;
    } catch (error) {
      if (mine === asked.current) problem.value = problemOf(error);
    }
  };
  useEffect(() => {
    if (!isWorking) void load();
  }, [thread, isWorking]);
  useEffect(() => heading.current?.focus(), []);
  const states = loaded.value?.states ?? [];
  const oldest = states.at(-1);
  // Ids of the checkpoints on the current branch. Empty until the newest state is loaded.
  const line = ancestorsOf(states, thread.conversation.value.checkpointId);
  return (
    <aside id="history" class="panel history" aria-label="History">
      <header class="row spread">
        <h2 ref={heading} tabIndex={-1}>
          History
        </h2>
        <IconButton icon="close" label="Close the history" onClick={close} />
      </header>
      <Problem text={problem.value} />
      <ol>
        {pastTurns(states).map((turn) => (
          <PastTurnView
            key={turn.id}
            turn={turn}
            thread={thread}
            isOnBranch={line.size === 0 || line.has(idOf(turn.states[0]))}
            isDisabled={isWorking}
            close={close}
          />
        ))}
      </ol>
      {loaded.value?.hasMore === true && oldest !== undefined && (
        <button type="button" class="button" onClick={() => void load(checkpointOf(oldest))}>
          Show earlier
        </button>
      )}
    </aside>
  );
}

function PastTurnView({
  turn,
  thread,
  isOnBranch,
  isDisabled,
  close,
}: {
  turn: PastTurn;
  thread: Thread;
  /** Whether the newest state continues from the turn. */
  isOnBranch: boolean;
  isDisabled: boolean;
  close: () => void;
}): JSX.Element {
  const { question, answer, states, version, versions } = turn;
  const shown = thread.viewed.value === undefined ? thread.conversation.value.checkpointId : idOf(thread.viewed.value);
  const look = (state: ThreadState): void => {
    thread.view(state);
    if (matchMedia(OVERLAY).matches) close();
  };
  const isShown = states.some((state) => checkpointOf(state) === shown);
  return (
    <li
      class={`past ${isShown ? 'current' : isOnBranch ? 'on-branch' : ''}`}
      aria-current={isShown ? 'true' : undefined}
    >
      <p class="past-question">
        <bdi>{visible(beginningOf(question, CHARS))}</bdi>
      </p>
      <p class="note">
        <bdi>{visible(beginningOf(answer, CHARS))}</bdi>
      </p>
      <p class="actions">
        <button type="button" class="button" disabled={isDisabled} onClick={() => look(states[0])}>
          Branch from here
        </button>
        {versions > 1 && (
          <span class="note">
            version {version} of {versions}
          </span>
        )}
        {!isOnBranch && <span class="note">another branch</span>}
        <time class="note" dateTime={states[0].created_at ?? ''}>
          {timeOf(states[0])}
        </time>
      </p>
      {states.length > 1 && (
        <details>
          <summary class="note">{states.length} checkpoints</summary>
          <ol class="checkpoints">
            {states.map((state) => (
              <li key={idOf(state)}>
                <button type="button" class="link" disabled={isDisabled} onClick={() => look(state)}>
                  {state.next.length === 0 ? 'end' : `before ${visible(state.next.join(', '))}`}
                </button>
                <span class="note"> {timeOf(state)}</span>
              </li>
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}

function idOf(state: ThreadState): string {
  return checkpointOf(state) ?? '';
}

function timeOf({ created_at }: ThreadState): string {
  const time = new Date(created_at ?? '');
  return Number.isNaN(time.getTime()) ? '' : time.toLocaleTimeString();
}
