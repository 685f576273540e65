import type { ComponentChildren, JSX } from 'preact';
import type { ThreadSummary } from '../../receiver/domain/run-view.ts';
import { api } from '../data/api.ts';
import { condition, queryOf, withTerms } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { Button, Link, Pending, Problem } from '../elements/controls.tsx';
import { ago, durationFigure, exact, millisecondsAt, orDash, useNow } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import type { TableColumn } from '../elements/table.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { previewOf } from '../list/columns.tsx';
import { EmptyState } from '../list/empty-state.tsx';
import { RunList, useRunList } from '../list/run-list.ts';
import { ScrolledTable, USAGE_COLUMNS } from './scrolled-table.tsx';

type ThreadLine = ThreadSummary & { readonly id: string; readonly trace_id: string };

const TICK_MS = 5_000;

const COLUMNS: readonly TableColumn<ThreadLine>[] = [
  {
    name: 'Thread',
    class: 'clip',
    cell: ({ thread }) => (
      <Link to={{ view: 'threads', thread }} title={visibleText(thread)}>
        {visibleText(thread)}
      </Link>
    ),
  },
  {
    name: 'First input → latest output',
    class: 'wide optional',
    cell: (line) => <p class="preview">{previewOf(line)}</p>,
  },
  { name: 'User', class: 'clip optional', cell: ({ user }) => user !== undefined && <UserLink user={user} /> },
  { name: 'Turns', class: 'number', cell: ({ turns }) => turns.toLocaleString('en') },
  { name: 'Failed', class: 'number', cell: failuresOf },
  {
    name: 'Latest',
    class: 'number',
    cell: ({ last_start_time: time }, nowMs) => (
      <time dateTime={time} title={exact(time)}>
        {ago(millisecondsAt(time), nowMs)}
      </time>
    ),
  },
  { name: 'p50', class: 'number optional', cell: ({ latency_ms }) => orDash(latency_ms?.p50, durationFigure) },
  ...USAGE_COLUMNS,
];

export function ThreadList(): JSX.Element {
  const { project, filter } = address.value;
  const list = useRunList('threads', `${project}\n${filter}`, () => {
    const read = async (query: URLSearchParams, signal?: AbortSignal) => {
      const { items, ...page } = await api.threads(query, signal);
      return { ...page, items: items.map((item): ThreadLine => ({ ...item, id: item.thread, trace_id: '' })) };
    };
    return new RunList<ThreadLine>(read, () => queryOf({ filter, project }, Date.now()));
  });
  const nowMs = useNow(true, TICK_MS);
  const [items, problem] = [list.lines.value, list.problem.value];
  if (items.length === 0 && list.isLoading.value) return <Pending note="Loading threads…" />;
  if (items.length === 0) return <EmptyState problem={problem} />;
  return (
    <ScrolledTable
      label="Threads"
      columns={COLUMNS}
      items={items}
      keyOf={({ id }) => id}
      nowMs={nowMs}
      list={list}
      open={({ thread }) => go({ view: 'threads', thread })}
    >
      <Problem text={problem} />
      {list.hasMore && <Button text="Show more threads" onClick={() => list.grow()} />}
    </ScrolledTable>
  );
}

/** Numbers of turns or traces that failed, and of those in which only a run below the root failed. */
export function failuresOf({ errors, failed_below }: { errors: number; failed_below: number }): ComponentChildren {
  const counts = [['error', errors] as const, ['failed_below', failed_below] as const].filter(([, count]) => count > 0);
  return counts.map(([status, count]) => <StatusMark key={status} status={status} count={count} isShort />);
}

export function userFilter(user: string): string {
  return withTerms(address.value.filter, condition('user', user));
}

export function UserLink({ user }: { user: string }): JSX.Element {
  return (
    <Link to={{ view: 'threads', filter: userFilter(user) }} title={`Threads of ${visibleText(user)}`}>
      {visibleText(user)}
    </Link>
  );
}
