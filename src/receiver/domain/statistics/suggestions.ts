import type { Suggestion, SuggestionField, TextField } from '../query/query.ts';
import { metadataKeyOf } from '../query/query-keys.ts';
import { type FilteredRun, filteredTexts, metadataTextOf, projectOf } from '../run-values.ts';

/** Maximum number of runs whose values are suggested, latest first. */
export const SUGGESTED_RUNS_MAX = 2_000;
const SUGGESTIONS_MAX = 20;
const LENGTH_MAX = 200;

/** Returns the values of a run that can be suggested for a field, and by which statistics group. */
export function suggestedValues(field: SuggestionField, run: FilteredRun): readonly (string | undefined)[] {
  if (field === 'feedback') return run.feedback.map(({ key }) => key);
  if (field.startsWith('meta')) return suggestedMetadata(field, run.metadata);
  // A project is suggested by its name only.
  return field === 'project' ? [projectOf(run.summary)] : filteredTexts(field as TextField, '', run);
}

/** Returns the metadata keys of a run for `meta`, and the value of a key for `meta.KEY`. */
export function suggestedMetadata(field: string, metadata: FilteredRun['metadata']): readonly (string | undefined)[] {
  const key = metadataKeyOf(field);
  return key === undefined ? Object.keys(metadata ?? {}) : [metadataTextOf(metadata, key)];
}

/** Counts the values of runs, most frequent first. Omits values that do not contain `text`. Case is ignored. */
export function suggestionsOf(runs: readonly (readonly (string | undefined)[])[], text: string): Suggestion[] {
  const counts = new Map<string, number>();
  for (const value of runs.flatMap((values) => [...new Set(values)])) {
    if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const wanted = text.toLowerCase();
  return [...counts]
    .filter(([value]) => value.length <= LENGTH_MAX && value.toLowerCase().includes(wanted))
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, SUGGESTIONS_MAX)
    .map(([value, count]) => ({ value, runs: count }));
}
