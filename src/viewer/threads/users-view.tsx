import type { JSX } from 'preact';
import type { Statistics } from '../../receiver/query/query.ts';
import { api } from '../data/api.ts';
import { queryOf } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address } from '../data/navigation.ts';
import { DeleteButton } from '../delete/delete-button.tsx';
import { Link, Pending, Problem } from '../elements/controls.tsx';
import { cost, count, duration, orDash, plural } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { EmptyState } from '../list/empty-state.tsx';
import { FeedbackChips, isUnfiltered, userFilter } from './thread-list.tsx';

const USERS_MAX = 200;

/** Table of the users with the most runs among the runs that match the filter. */
export default function UsersView(): JSX.Element {
  const { filter, project } = address.value;
  const read = (signal: AbortSignal): Promise<Statistics> => {
    const query = queryOf({ filter, project }, Date.now());
    for (const [name, value] of [
      ['group_by', 'user'],
      ['groups', `${USERS_MAX}`],
      ['buckets', '1'],
    ] as const) {
      query.set(name, value);
    }
    return api.statistics(query, signal);
  };
  const { value, problem } = useLive(`${filter}\n${project}`, read, { isStale: () => true });
  if (value === undefined && problem === undefined) return <Pending note="Loading users…" />;
  const groups = value?.groups ?? [];
  if (groups.length === 0)
    return problem === undefined && isUnfiltered() ? <NoUsers /> : <EmptyState problem={problem} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
    <section class="groups threads scroll" aria-label="Users" tabIndex={0} data-own-arrows>
      <Problem text={problem} />
      <table>
        <thead class="pinned">
          <tr>
            <th scope="col">User</th>
            {['Traces', 'Failed', 'p50', 'p95', 'Model calls', 'Tokens', 'Cost'].map((column) => (
              <th key={column} scope="col" class="number">
                {column}
              </th>
            ))}
            <th scope="col">Feedback</th>
            <th scope="col">Show</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((figures) => (
            <UserRow key={figures.group} figures={figures} />
          ))}
        </tbody>
      </table>
      {groups.length === USERS_MAX && <p class="note">The {plural(USERS_MAX, 'user')} with the most runs are shown.</p>}
    </section>
  );
}

function NoUsers(): JSX.Element {
  return (
    <div class="empty">
      <h2>No users yet</h2>
      <p>
        Set the option <code>userId</code> in your application, or the metadata <code>user_id</code>. Users appear here
        automatically.
      </p>
    </div>
  );
}

function UserRow({ figures }: { figures: Statistics['groups'][number] }): JSX.Element {
  const { group, roots, model_calls, usage, feedback = [] } = figures;
  const { runs, errors, latency_ms } = roots;
  const filter = userFilter(group);
  const cells = [
    runs.toLocaleString('en'),
    errors === 0 ? '–' : errors.toLocaleString('en'),
    orDash(latency_ms?.p50, duration),
    orDash(latency_ms?.p95, duration),
    model_calls.runs.toLocaleString('en'),
    orDash(usage?.total_tokens, count),
    orDash(usage?.total_cost, cost),
  ];
  return (
    <tr>
      <th scope="row" class="clip">
        <Link to={{ view: 'threads', filter }} title={`Threads of ${visible(group)}`}>
          {visible(group)}
        </Link>
      </th>
      {cells.map((cell, index) => (
        <td key={index} class={index === 1 && errors > 0 ? 'number bad' : 'number'}>
          {cell}
        </td>
      ))}
      <td>
        <FeedbackChips feedback={feedback} />
      </td>
      <td>
        <span class="line">
          <Link to={{ view: 'threads', filter }}>Threads</Link>
          <Link to={{ view: 'traces', filter }}>Traces</Link>
          <Link to={{ view: 'statistics', filter }}>Statistics</Link>
          <DeleteButton label={`Delete the user ${visible(group)}`} target={{ kind: 'user', id: group }} />
        </span>
      </td>
    </tr>
  );
}
