import type { GroupKey, RankKey, SortKey, SuggestionField, TextField } from './query.ts';

export const SORT_KEYS: readonly SortKey[] = ['start_time', 'latency', 'tokens', 'cost'];

export const RANK_KEYS: readonly RankKey[] = ['runs', 'errors', 'tokens', 'cost'];

/** All group keys except `meta.KEY`. */
export const GROUP_KEYS: readonly GroupKey[] = [
  ...(['name', 'model', 'run_type', 'project', 'status', 'thread', 'user', 'tag'] as const),
];

export function isGroupKey(value: unknown): value is GroupKey {
  return GROUP_KEYS.includes(value as GroupKey) || (typeof value === 'string' && metadataKeyOf(value) !== undefined);
}

/** Fields with the form `key:value` whose values are compared as text. */
export const TEXT_FIELDS: readonly TextField[] = [
  ...(['name', 'type', 'model', 'status', 'project', 'trace', 'run', 'thread', 'user', 'tag', 'error'] as const),
];

/** All suggestion fields except `meta.KEY`. */
export const SUGGESTION_FIELDS: readonly SuggestionField[] = [
  ...TEXT_FIELDS.filter((field) => field !== 'trace' && field !== 'run' && field !== 'error'),
  'meta',
  'feedback',
];

/** Returns the `KEY` of `meta.KEY`, or undefined for other texts. */
export function metadataKeyOf(text: string): string | undefined {
  return text.startsWith('meta.') && text.length > 'meta.'.length ? text.slice('meta.'.length) : undefined;
}
