import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { parseFilter, queryOf } from '../data/filter.ts';
import { address } from '../data/navigation.ts';
import { EmptyState } from './empty-state.tsx';
import { ListGrid, leftAt } from './list-grid.tsx';
import { RunList } from './run-list.ts';

/** The list of traces, or of all runs. */
export function ListView({ view }: { view: 'traces' | 'runs' }): JSX.Element {
  const { project, filter, sort, order } = address.value;
  const key = [view, project, filter, sort, order].join('\n');
  const list = useRunList(view, key);
  const problem = list.problem.value;
  if (list.lines.value.length === 0 && !list.isLoading.value) return <EmptyState problem={problem} />;
  return (
    <section class={`list list-${view}`} aria-label={view === 'traces' ? 'Traces' : 'Runs'}>
      <ListGrid key={key} place={key} view={view} list={list} />
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </section>
  );
}

function useRunList(view: 'traces' | 'runs', key: string): RunList {
  const list = useMemo(() => {
    const { project, filter, sort, order } = address.value;
    const query = queryOf(parseFilter(filter), Date.now());
    if (project !== undefined) query.set('project', project);
    if (sort !== 'start_time') query.set('sort', sort);
    if (order !== 'descending') query.set('order', order);
    return new RunList(view, query, leftAt(key));
  }, [key]);
  useEffect(() => () => list.end(), [list]);
  return list;
}
