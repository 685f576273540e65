import type { GroupKey, SortKey } from '../../receiver/domain/query/query.ts';
import { isGroupKey, SORT_KEYS } from '../../receiver/domain/query/query-keys.ts';

const VIEWS = ['traces', 'runs', 'threads', 'users', 'statistics', 'compare', 'rerun'] as const;

export type View = (typeof VIEWS)[number];

/** The part of the page state that is stored in the URL. */
export interface Address {
  readonly view: View;
  readonly project?: string | undefined;
  /** Filter text, in the syntax that `filter.ts` parses. */
  readonly filter: string;
  readonly sort: SortKey;
  readonly order: 'ascending' | 'descending';
  readonly groupBy: GroupKey;
  readonly thread?: string | undefined;
  /** Id of the trace that is open on top of the view. */
  readonly trace?: string | undefined;
  /** Id of the selected run, or of the second run in a comparison. */
  readonly run?: string | undefined;
  /** Id of the first run in a comparison. */
  readonly base?: string | undefined;
}

/**
 * Parses the query string of the URL. Replaces unknown values with defaults, so that old links still work. The fields have
 * the order of the parameters in the URL.
 */
export function readAddress(search: string): Address {
  const query = new URLSearchParams(search);
  const groupBy = query.get('by');
  return {
    view: oneOf(VIEWS, query.get('view')),
    project: query.get('project') ?? undefined,
    filter: query.get('q') ?? '',
    sort: oneOf(SORT_KEYS, query.get('sort')),
    order: query.get('order') === 'ascending' ? 'ascending' : 'descending',
    groupBy: isGroupKey(groupBy) ? groupBy : 'name',
    thread: query.get('thread') ?? undefined,
    trace: query.get('trace') ?? undefined,
    base: query.get('base') ?? undefined,
    run: query.get('run') ?? undefined,
  };
}

/** Names of the URL parameters that differ from the names of the fields. */
const PARAMETERS: Readonly<Record<string, string>> = { filter: 'q', groupBy: 'by' };

/** Returns the path and query string for an address. Omits default values. */
export function writeAddress(address: Address): string {
  const defaults = readAddress('');
  const query = new URLSearchParams();
  for (const field of Object.keys(defaults) as (keyof Address)[]) {
    const value = address[field];
    if (value !== undefined && value !== defaults[field]) query.set(PARAMETERS[field] ?? field, value);
  }
  const search = `${query}`;
  return search === '' ? '/' : `/?${search}`;
}

function oneOf<Name extends string>(names: readonly Name[], value: string | null): Name {
  return names.find((name) => name === value) ?? (names[0] as Name);
}
