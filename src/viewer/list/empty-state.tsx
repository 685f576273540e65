import type { JSX } from 'preact';
import { failedBelowInstead } from '../../receiver/filter/parser.ts';
import type { View } from '../data/address.ts';
import { api } from '../data/api.ts';
import { queryOf, termsOf } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { Button, Link } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { lazy } from '../elements/lazy.tsx';

const FirstRun = lazy(() => import('./first-run.tsx'));

/** Settings that a view needs to show anything. */
const HINTS: Readonly<Partial<Record<View, { readonly option: string; readonly key: string }>>> = {
  threads: { option: 'threadId', key: 'thread_id' },
  users: { option: 'userId', key: 'user_id' },
};

/** Message that explains what to do if the list or the statistics are empty. */
export function EmptyState({ problem }: { problem: string | undefined }): JSX.Element {
  const { view, filter, project } = address.value;
  if (problem !== undefined) {
    return (
      <div class="empty" role="alert">
        <h1>{problem}</h1>
      </div>
    );
  }
  if (filter !== '' || project !== undefined) {
    return (
      <div class="empty">
        <h1>No matches</h1>
        <p>
          No {view === 'traces' || view === 'threads' ? 'traces' : 'runs'} match this filter. New matches appear
          automatically.
        </p>
        {view === 'traces' && <FailedBelow />}
        <Button text="Clear the filter" onClick={() => go({ filter: '', project: undefined })} />
      </div>
    );
  }
  const hint = HINTS[view];
  if (hint !== undefined) {
    return (
      <div class="empty">
        <h1>No {view} yet</h1>
        <p>
          Set the option <code>{hint.option}</code> in your application, or the metadata <code>{hint.key}</code>. New{' '}
          {view} appear here automatically.
        </p>
      </div>
    );
  }
  return <FirstRun />;
}

const COUNTED_MAX = 100;

/** If the filter selects failed traces, offers those of which only a run below the root has failed. */
function FailedBelow(): JSX.Element | null {
  const { filter, project } = address.value;
  const below = failedBelowInstead(termsOf(filter));
  const { value } = useLive(
    below && `${below}\n${project}`,
    (signal) => {
      const query = queryOf({ filter: below ?? '', project }, Date.now());
      query.set('limit', `${COUNTED_MAX}`);
      return api.traces(query, signal);
    },
    { isStale: () => true },
  );
  const { items = [], next } = value ?? {};
  if (items.length === 0) return null;
  const traces = next === undefined ? plural(items.length, 'trace') : `More than ${COUNTED_MAX} traces`;
  return (
    <p>
      {traces} {items.length === 1 ? 'has' : 'have'} a failed run: <Link to={{ filter: below ?? '' }}>show them</Link>
    </p>
  );
}
