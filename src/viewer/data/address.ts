import type { GroupKey, SortKey } from '../../receiver/query/query.ts';

export type View = 'traces' | 'runs' | 'statistics' | 'compare';

/** What the page shows, as its URL says it. */
export interface Address {
  readonly view: View;
  readonly project?: string | undefined;
  /** In the language of `filter.ts`. */
  readonly filter: string;
  readonly sort: SortKey;
  readonly order: 'ascending' | 'descending';
  readonly groupBy: GroupKey;
  /** An open trace stands before the view. */
  readonly trace?: string | undefined;
  /** The run that is read; of a comparison the second. */
  readonly run?: string | undefined;
  /** Of a comparison the first. */
  readonly base?: string | undefined;
}

const VIEWS: readonly View[] = ['traces', 'runs', 'statistics', 'compare'];
const SORTS: readonly SortKey[] = ['start_time', 'latency', 'tokens', 'cost'];
const GROUPS: readonly GroupKey[] = ['name', 'model', 'run_type', 'project', 'status'];

/** What it cannot read is as if it were not there: an old link still leads somewhere. */
export function readAddress(search: string): Address {
  const given = new URLSearchParams(search);
  return {
    view: oneOf(VIEWS, given.get('view')),
    project: given.get('project') ?? undefined,
    filter: given.get('q') ?? '',
    sort: oneOf(SORTS, given.get('sort')),
    order: given.get('order') === 'ascending' ? 'ascending' : 'descending',
    groupBy: oneOf(GROUPS, given.get('by')),
    trace: given.get('trace') ?? undefined,
    run: given.get('run') ?? undefined,
    base: given.get('base') ?? undefined,
  };
}

/** The query of the URL; what is as ever is left out. */
export function writeAddress(address: Address): string {
  const { view, project, filter, sort, order, groupBy, trace, run, base } = address;
  const pairs: [string, string | undefined][] = [
    ['view', view === 'traces' ? undefined : view],
    ['project', project],
    ['q', filter === '' ? undefined : filter],
    ['sort', sort === 'start_time' ? undefined : sort],
    ['order', order === 'descending' ? undefined : order],
    ['by', groupBy === 'name' ? undefined : groupBy],
    ['trace', trace],
    ['base', base],
    ['run', run],
  ];
  const said = pairs.filter((pair): pair is [string, string] => pair[1] !== undefined);
  return said.length === 0 ? '/' : `/?${new URLSearchParams(said)}`;
}

function oneOf<Name extends string>(names: readonly Name[], given: string | null): Name {
  return names.find((name) => name === given) ?? (names[0] as Name);
}
