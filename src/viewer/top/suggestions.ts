import { useEffect, useState } from 'preact/hooks';
import type { GroupKey } from '../../receiver/query/query.ts';
import { api } from '../data/api.ts';
import { KEYS, quoted, STATUSES } from '../data/filter.ts';
import { address } from '../data/navigation.ts';

/** Something to take for what is being typed: a whole condition, or its beginning. */
export interface Suggestion {
  readonly text: string;
  readonly about: string;
  readonly isWhole: boolean;
}

/** Names that occur, by the key that they are values of, with how many have them. */
export type Names = Readonly<Record<string, readonly (readonly [string, number])[]>>;

const SUGGESTIONS_MAX = 12;
const NAMES_MAX = 100;
const TAGGED_MAX = 300;

const FIXED: Readonly<Record<string, readonly string[]>> = {
  status: STATUSES,
  type: ['llm', 'chain', 'tool', 'retriever', 'embedding', 'prompt', 'parser'],
  since: ['15m', '1h', '24h', '7d'],
  before: ['15m', '1h', '24h', '7d'],
};

/** What a condition that begins like this may become. */
export function suggestionsFor(draft: string, names: Names): Suggestion[] {
  const [, key, given = ''] = /^([a-z]+):(.*)$/.exec(draft) ?? [];
  if (key === undefined) {
    const typed = draft.toLowerCase();
    return KEYS.filter((one) => one.key.startsWith(typed) && one.key !== typed)
      .slice(0, SUGGESTIONS_MAX)
      .map((one) => ({ text: one.key, about: one.about, isWhole: false }));
  }
  const wanted = given.replace(/^"/, '').toLowerCase();
  const fixed = (FIXED[key] ?? []).map((value) => [value, undefined] as const);
  const known = new Set(FIXED[key] ?? []);
  const found = (names[key] ?? []).filter(([value]) => !known.has(value));
  return [...fixed, ...found]
    .filter(([value]) => value.toLowerCase().includes(wanted) && value !== '')
    .slice(0, SUGGESTIONS_MAX)
    .map(([value, runs]) => ({
      text: `${key}:${quoted(value)}`,
      about: runs === undefined ? '' : runs.toLocaleString('en'),
      isWhole: true,
    }));
}

const GROUPS: readonly (readonly [string, GroupKey])[] = [
  ['name', 'name'],
  ['model', 'model'],
  ['type', 'run_type'],
];

type Found = readonly [string, readonly (readonly [string, number])[]];

/** Tags are counted over the latest runs: the receiver does not group by them. */
async function readTags(project: string | undefined, signal: AbortSignal): Promise<Found> {
  const query = new URLSearchParams({ limit: `${TAGGED_MAX}`, ...(project === undefined ? {} : { project }) });
  const counts = new Map<string, number>();
  for (const { tags = [] } of (await api.runs(query, signal)).items) {
    for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  }
  return ['tag', [...counts].sort(([, a], [, b]) => b - a)];
}

async function readProjects(signal: AbortSignal): Promise<Found> {
  return ['project', (await api.projects(signal)).items.map(({ name, traces }) => [name, traces] as const)];
}

/** Asked for when the box is opened: what there is in the project, most frequent first. */
export function useNames(isOpen: boolean): Names {
  const [names, setNames] = useState<Names>({});
  const { project } = address.value;
  useEffect(() => {
    if (!isOpen) return;
    const asking = new AbortController();
    const read = async ([key, groupBy]: readonly [string, GroupKey]): Promise<Found> => {
      const query = new URLSearchParams({ group_by: groupBy, groups: `${NAMES_MAX}`, buckets: '1' });
      if (project !== undefined) query.set('project', project);
      const { groups } = await api.statistics(query, asking.signal);
      return [key, groups.map(({ group, runs }) => [group, runs] as const)];
    };
    Promise.all([...GROUPS.map(read), readTags(project, asking.signal), readProjects(asking.signal)]).then(
      (found) => setNames(Object.fromEntries(found)),
      // Then there is nothing to suggest.
      () => undefined,
    );
    return () => asking.abort();
  }, [isOpen, project]);
  return names;
}
