import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import type { GroupFigures, Statistics } from '../../receiver/domain/query/query.ts';
import { api } from '../data/api.ts';
import { queryOf } from '../data/filter.ts';
import { roundedNowMs, STATISTICS, useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { DeleteButton } from '../delete/delete-button.tsx';
import { Link, Pending, Problem } from '../elements/controls.tsx';
import { countFigure, durationFigure, orDash, plural } from '../elements/figures.ts';
import type { TableColumn } from '../elements/table.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { EmptyState } from '../list/empty-state.tsx';
import { ScrolledTable, USAGE_COLUMNS } from './scrolled-table.tsx';
import { failuresOf, UserLink, userFilter } from './thread-list.tsx';

const USERS_MAX = 200;

/** The selected user, and the scroll position of the table. */
const list = { selected: signal<string | undefined>(undefined), scrollTop: 0 };

const UNPRICED = 'No price';
const COLUMNS: readonly TableColumn<GroupFigures>[] = [
  { name: 'User', class: 'clip', cell: ({ group }) => <UserLink user={group} /> },
  { name: 'Traces', class: 'number', cell: ({ roots }) => roots.runs.toLocaleString('en') },
  { name: 'Failed', class: 'number', cell: ({ roots }) => failuresOf(roots) },
  { name: 'p50', class: 'number', cell: ({ roots }) => orDash(roots.latency_ms?.p50, durationFigure) },
  { name: 'p95', class: 'number optional', cell: ({ roots }) => orDash(roots.latency_ms?.p95, durationFigure) },
  { name: 'Model calls', class: 'number optional', cell: ({ model_calls }) => model_calls.runs.toLocaleString('en') },
  ...USAGE_COLUMNS,
  { name: UNPRICED, class: 'number optional', cell: (user) => orDash(user.unpriced_calls, countFigure) },
  { name: 'Show', class: 'optional', cell: ({ group }) => <UserLinks user={group} /> },
];

/** Table of the users with the most runs among the runs that match the filter. */
export default function UsersView(): JSX.Element {
  const { filter, project } = address.value;
  const read = (signal: AbortSignal): Promise<Statistics> => {
    const query = queryOf({ filter, project }, roundedNowMs());
    const grouped = { group_by: 'user', groups: `${USERS_MAX}`, buckets: '1' };
    return api.statistics(new URLSearchParams([...query, ...Object.entries(grouped)]), signal);
  };
  const { value, problem } = useLive(`${filter}\n${project}`, read, STATISTICS);
  if (value === undefined && problem === undefined) return <Pending note="Loading users…" />;
  const items = value?.groups ?? [];
  if (items.length === 0) return <EmptyState problem={problem} />;
  return (
    <ScrolledTable
      label="Users"
      columns={COLUMNS.filter(({ name }) => name !== UNPRICED || items.some((user) => user.unpriced_calls))}
      items={items}
      keyOf={({ group }) => group}
      list={list}
      open={({ group }) => go({ view: 'threads', filter: userFilter(group) })}
    >
      <Problem text={problem} />
      {items.length === USERS_MAX && <p class="note">The {plural(USERS_MAX, 'user')} with the most runs are shown.</p>}
    </ScrolledTable>
  );
}

function UserLinks({ user }: { user: string }): JSX.Element {
  const filter = userFilter(user);
  return (
    <p class="line">
      <Link to={{ view: 'threads', filter }}>Threads</Link>
      <Link to={{ view: 'traces', filter }}>Traces</Link>
      <Link to={{ view: 'statistics', filter }}>Statistics</Link>
      <DeleteButton label={`Delete the user ${visibleText(user)}`} target={{ kind: 'user', id: user }} />
    </p>
  );
}
