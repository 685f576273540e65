import type { GroupKey } from '../../receiver/query/query.ts';
import { api } from '../data/api.ts';
import { condition, KEYS } from '../data/filter.ts';

/** A condition, or the beginning of a condition, that completes the typed text. */
export interface Suggestion {
  readonly text: string;
  readonly about: string;
  readonly isComplete: boolean;
}

/** Known values for each filter key, with the number of runs that have the value. */
export type Names = Readonly<Record<string, readonly (readonly [string, number])[]>>;

const SUGGESTIONS_MAX = 12;
const NAMES_MAX = 100;
const TAGGED_RUNS_MAX = 300;

export function suggestionsFor(typed: string, names: Names): Suggestion[] {
  const [, key, value = ''] = /^([a-z]+):(.*)$/.exec(typed) ?? [];
  if (key === undefined) {
    const start = typed.toLowerCase();
    return KEYS.filter((one) => one.key.startsWith(start) && one.key !== start)
      .slice(0, SUGGESTIONS_MAX)
      .map((one) => ({ text: one.key, about: one.about, isComplete: false }));
  }
  const wanted = value.replace(/^"/, '').toLowerCase();
  const fixed = KEYS.find((one) => one.key === `${key}:`)?.values ?? [];
  const found = (names[key] ?? []).filter(([name]) => !fixed.includes(name));
  return [...fixed.map((name) => [name, undefined] as const), ...found]
    .filter(([name]) => name.toLowerCase().includes(wanted) && name !== '')
    .slice(0, SUGGESTIONS_MAX)
    .map(([name, runs]) => ({
      text: condition(key, name),
      about: runs === undefined ? '' : runs.toLocaleString('en'),
      isComplete: true,
    }));
}

/** Reads the names, models, types and tags of the runs in a project, most frequent first. */
export async function readNames(project: string | undefined): Promise<Names> {
  const scope = project === undefined ? {} : { project };
  const groups = async (groupBy: GroupKey): Promise<[string, number][]> => {
    const query = new URLSearchParams({ ...scope, group_by: groupBy, groups: `${NAMES_MAX}`, buckets: '1' });
    return (await api.statistics(query)).groups.map(({ group, runs }) => [group, runs]);
  };
  const [name, model, type, tagged] = await Promise.all([
    groups('name'),
    groups('model'),
    groups('run_type'),
    api.runs(new URLSearchParams({ ...scope, limit: `${TAGGED_RUNS_MAX}` })),
  ]);
  // The receiver cannot group runs by tag, so tags are counted here.
  const tags = new Map<string, number>();
  for (const tag of tagged.items.flatMap((run) => run.tags ?? [])) tags.set(tag, (tags.get(tag) ?? 0) + 1);
  return { name, model, type, tag: [...tags].sort(([, a], [, b]) => b - a) };
}
