import '../trace/trace.css';
import '../run/run.css';
import '../payload/payload.css';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { ThreadSummary, TraceSummary } from '../../receiver/domain/run-view.ts';
import type { Message } from '../../services/message.ts';
import { api } from '../data/api.ts';
import { condition } from '../data/filter.ts';
import { changesOfTrace, useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { payload } from '../data/payloads.ts';
import { isMarkdown, toggle } from '../data/preferences.ts';
import { DeleteButton } from '../delete/delete-button.tsx';
import { Button, CopyButton, Link, Pending, Problem } from '../elements/controls.tsx';
import {
  cachedShare,
  costFigure,
  countFigure,
  durationFigure,
  exact,
  latencyOf,
  plural,
  usageTitle,
  useNow,
} from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useFocus, useKeys } from '../elements/keys.ts';
import { visibleText } from '../elements/visible-text.ts';
import { feedbackChips } from '../list/columns.tsx';
import { type Line, RunList, shownOutcome, useRestoredScroll, useRunList } from '../list/run-list.ts';
import { ConversationView } from '../payload/conversation-view.tsx';
import { useVisible } from '../run/payload-section.tsx';
import { failuresOf, ThreadList, UserLink } from './thread-list.tsx';
import { messagesOfTurn } from './turn-messages.ts';

const TICK_MS = 1_000;

export default function ThreadsView(): JSX.Element {
  const { thread } = address.value;
  return thread === undefined ? <ThreadList /> : <ThreadView key={thread} id={thread} />;
}

function ThreadView({ id }: { id: string }): JSX.Element {
  const { project } = address.value;
  const createQuery = (more: Readonly<Record<string, string>>): URLSearchParams =>
    new URLSearchParams({ ...more, ...(project !== undefined && { project }) });
  const key = `${id}\n${project}`;
  const createList = () => new RunList<Line>(api.traces, () => createQuery({ filter: condition('thread', id) }));
  const list = useRunList('thread', key, createList);
  const readSummary = async (signal: AbortSignal) =>
    (await api.thread(id, createQuery({ limit: '1' }), signal)).summary;
  const { value: summary, problem } = useLive(key, readSummary, { isStale: () => true });
  const element = useRef<HTMLElement>(null);
  useRestoredScroll(element, list);
  useFocus(element);
  useKeys({ Escape: () => go({ view: 'threads' }), m: () => toggle(isMarkdown) });
  const turns = list.lines.value.toReversed();
  if (summary === undefined || turns.length === 0) {
    return (
      <>
        <ThreadBar id={id} />
        <Pending problem={problem ?? list.problem.value} note="Loading the thread…" />
      </>
    );
  }
  return (
    <>
      <ThreadBar id={id} summary={summary} />
      <Problem text={list.problem.value} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus. */}
      <section ref={element} class="turns scroll" aria-label="Conversation" tabIndex={0} data-own-arrows>
        <ol>
          {list.hasMore && (
            <li>
              <Button text="Show earlier turns" onClick={() => list.grow()} />
            </li>
          )}
          {turns.map((turn, index) => (
            <Turn key={turn.id} turn={turn} number={summary.turns - turns.length + index + 1} />
          ))}
        </ol>
      </section>
    </>
  );
}

function ThreadBar({ id, summary }: { id: string; summary?: ThreadSummary }): JSX.Element {
  return (
    <header class="line trace-bar thread-bar">
      <Link class="button quiet" to={{ view: 'threads' }} title="Back to the threads (Esc)">
        <Icon name="back" />
        Threads
      </Link>
      <h1 class="clip" title={visibleText(id)}>
        {visibleText(id)}
      </h1>
      <CopyButton text={() => id} label="Copy the thread id" />
      <DeleteButton label="Delete this thread" target={{ kind: 'thread', id }} />
      {summary !== undefined && <ThreadFigures summary={summary} />}
    </header>
  );
}

function ThreadFigures({ summary }: { summary: ThreadSummary }): JSX.Element {
  const { user, turns, errors, failed_below, start_time, latency_ms, usage, feedback } = summary;
  return (
    <>
      <ul class="figures small">
        {user !== undefined && (
          <li>
            <UserLink user={user} />
          </li>
        )}
        <li>{plural(turns, 'turn')}</li>
        {errors + failed_below > 0 && <li>{failuresOf(summary)}</li>}
        {latency_ms !== undefined && (
          <li title="Median and maximum latency of a turn">
            p50 {durationFigure(latency_ms.p50)}, max {durationFigure(latency_ms.max)}
          </li>
        )}
        {usage?.total_tokens !== undefined && <li>{countFigure(usage.total_tokens)} tokens</li>}
        {usage?.total_cost !== undefined && <li title={usageTitle(usage)}>{costFigure(usage.total_cost)}</li>}
        {usage?.cached_tokens !== undefined && <li title={usageTitle(usage)}>{cachedShare(usage)} cached</li>}
        <li title="Start of the first turn">since {exact(start_time).slice(0, -4)}</li>
      </ul>
      {feedbackChips(feedback)}
    </>
  );
}

/** A turn: the figures of its trace, the user's input and the answer. Reads the payloads when the turn becomes visible. */
function Turn({ turn, number }: { turn: Line; number: number }): JSX.Element {
  const { id, trace_id, error, start_time, end_time, status } = turn;
  const outcome = shownOutcome(turn);
  const element = useRef<HTMLLIElement>(null);
  const isVisible = useVisible(element);
  const nowMs = useNow(status === 'pending', TICK_MS);
  const { asked_run_id: askedId = id, answered_run_id: answeredId = id } = turn.trace ?? {};
  const read = async (signal: AbortSignal) => {
    const run = await api.run(askedId, signal);
    const answered = answeredId === askedId ? run : await api.run(answeredId, signal);
    const [inputs, outputs] = await Promise.all([payload(run, 'inputs', signal), payload(answered, 'outputs', signal)]);
    return { run, messages: messagesOfTurn(inputs, outputs) };
  };
  const key = isVisible ? [askedId, answeredId, end_time].join(' ') : undefined;
  const { value, problem } = useLive(key, read, { isStale: changesOfTrace(trace_id) });
  const usage = turn.trace?.usage;
  return (
    <li ref={element} class="turn">
      <header class="line small">
        <span>{number}</span>
        <StatusMark status={outcome} />
        <Link to={{ trace: trace_id }} title={`Open the trace ${visibleText(turn.name)}`}>
          <time dateTime={start_time}>{exact(start_time).slice(0, -4)}</time>
        </Link>
        <span>{latencyOf(turn, nowMs)}</span>
        {usage?.total_tokens !== undefined && <span>{countFigure(usage.total_tokens)} tokens</span>}
        {usage?.total_cost !== undefined && <span title={usageTitle(usage)}>{costFigure(usage.total_cost)}</span>}
        {feedbackChips(turn.trace?.feedback)}
      </header>
      <ConversationView messages={value?.messages ?? previewed(turn)} run={value?.run ?? turn} />
      {error !== undefined && <p class={`box failed status-${outcome}`}>{visibleText(error)}</p>}
      {status === 'pending' && <p class="note">The turn has not ended.</p>}
      <Problem text={problem} />
    </li>
  );
}

/** Returns the previews of a turn as messages, until its payloads have been read. */
function previewed({ inputs_preview, outputs_preview }: Partial<TraceSummary>): Message[] {
  const messages = [
    { role: 'user', text: inputs_preview },
    { role: 'assistant', text: outputs_preview },
  ];
  return messages.flatMap(({ role, text }) => (text === undefined ? [] : [{ role, parts: [{ kind: 'text', text }] }]));
}
