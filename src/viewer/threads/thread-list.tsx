import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { FeedbackFigures } from '../../receiver/feedback/feedback.ts';
import type { ThreadSummary } from '../../receiver/store/run-view.ts';
import { api } from '../data/api.ts';
import { condition, queryOf, withTerms } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { Link, Pending, Problem } from '../elements/controls.tsx';
import { ago, cost, count, duration, exact, millisecondsAt, orDash, plural, useNow } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { EmptyState } from '../list/empty-state.tsx';
import { RunList, useRestoredScroll, useRunList } from '../list/run-list.ts';

type ThreadLine = ThreadSummary & { readonly id: string; readonly trace_id: string };

const COLUMNS = ['Turns', 'Latest', 'p50', 'Tokens', 'Cost'];
const TICK_MS = 5_000;

/** Table of the threads that match the filter. */
export function ThreadList(): JSX.Element {
  const { project, filter } = address.value;
  const list = useRunList('threads', `${project}\n${filter}`, () => {
    const read = async (query: URLSearchParams, signal?: AbortSignal) => {
      const { items, ...page } = await api.threads(query, signal);
      return { ...page, items: items.map((item): ThreadLine => ({ ...item, id: item.thread, trace_id: '' })) };
    };
    return new RunList<ThreadLine>(read, () => queryOf({ filter, project }, Date.now()));
  });
  const element = useRef<HTMLElement>(null);
  useRestoredScroll(element, list);
  const nowMs = useNow(true, TICK_MS);
  const [lines, problem] = [list.lines.value, list.problem.value];
  if (lines.length === 0 && list.isLoading.value) return <Pending note="Loading threads…" />;
  if (lines.length === 0)
    return problem === undefined && isUnfiltered() ? <NoThreads /> : <EmptyState problem={problem} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
    <section ref={element} class="groups threads scroll" aria-label="Threads" tabIndex={0} data-own-arrows>
      <Problem text={problem} />
      <table>
        <thead class="pinned">
          <tr>
            <th scope="col">Thread</th>
            <th scope="col" class="wide optional">
              First input → latest output
            </th>
            <th scope="col" class="optional">
              User
            </th>
            {COLUMNS.map((column) => (
              <th key={column} scope="col" class="number">
                {column}
              </th>
            ))}
            <th scope="col">Feedback</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <ThreadRow key={line.id} line={line} nowMs={nowMs} />
          ))}
        </tbody>
      </table>
      {list.hasMore && (
        <button type="button" class="button" onClick={() => list.grow()}>
          Show more threads
        </button>
      )}
    </section>
  );
}

/** Returns whether the view shows all threads or users of the receiver. */
export function isUnfiltered(): boolean {
  return address.value.filter === '' && address.value.project === undefined;
}

function NoThreads(): JSX.Element {
  return (
    <div class="empty">
      <h2>No threads yet</h2>
      <p>
        A thread is a conversation: all traces with the same thread id. Set the option <code>threadId</code> in your
        application, or the metadata <code>thread_id</code>. Threads appear here automatically.
      </p>
    </div>
  );
}

function ThreadRow({ line, nowMs }: { line: ThreadLine; nowMs: number }): JSX.Element {
  const { thread, user, turns, errors, last_start_time, latency_ms, usage, feedback = [] } = line;
  const { inputs_preview = '', outputs_preview = '' } = line;
  const open = (event: MouseEvent): void => {
    if (event.target instanceof Element && event.target.closest('a') === null) go({ view: 'threads', thread });
  };
  return (
    <tr onClick={open}>
      <th scope="row" class="clip">
        <Link to={{ view: 'threads', thread }} title={visible(thread)}>
          {visible(thread)}
        </Link>
      </th>
      <td class="wide optional">
        <span class="line">
          <span class="preview-in note clip">{visible(inputs_preview)}</span>
          {outputs_preview !== '' && <span class="preview-out clip">→ {visible(outputs_preview)}</span>}
        </span>
      </td>
      <td class="clip optional">{user !== undefined && <UserLink user={user} />}</td>
      <td class="number">
        {turns.toLocaleString('en')}
        {errors > 0 && (
          <span class="bad" title={plural(errors, 'failed turn')}>
            {' '}
            {errors} ✕
          </span>
        )}
      </td>
      <td class="number" title={`${exact(last_start_time)}\n${last_start_time}`}>
        <time dateTime={last_start_time}>{ago(millisecondsAt(last_start_time), nowMs)}</time>
      </td>
      <td class="number">{orDash(latency_ms?.p50, duration)}</td>
      <td class="number">{orDash(usage?.total_tokens, count)}</td>
      <td class="number">{orDash(usage?.total_cost, cost)}</td>
      <td>
        <FeedbackChips feedback={feedback} />
      </td>
    </tr>
  );
}

/** Adds the condition that runs belong to a user to the current filter. */
export function userFilter(user: string): string {
  return withTerms(address.value.filter, condition('user', user));
}

/** Link to the threads of a user. */
export function UserLink({ user }: { user: string }): JSX.Element {
  return (
    <Link to={{ view: 'threads', filter: userFilter(user) }} title={`Threads of ${visible(user)}`}>
      {visible(user)}
    </Link>
  );
}

const FEEDBACK_MAX = 3;

export function FeedbackChips({ feedback }: { feedback: readonly FeedbackFigures[] }): JSX.Element {
  return (
    <>
      {feedback.slice(0, FEEDBACK_MAX).map(({ key, count: times, average_score }) => (
        <span key={key} class="chip" title={`${visible(key)}: ${plural(times, 'time')}`}>
          {visible(key)} {average_score === undefined ? times : Number(average_score.toFixed(2))}
        </span>
      ))}
    </>
  );
}
