import type { Suggestion as StoredValue } from '../../receiver/domain/query/query.ts';
import { condition, filterValue, KEYS, metadataCondition } from '../data/filter.ts';

/** A condition, or the beginning of a condition, that completes the typed text. */
export interface Suggestion {
  readonly text: string;
  readonly about: string;
  readonly isComplete: boolean;
}

/** A typed condition that the values of a field can complete. */
export interface Unfinished {
  /** Field of `/query/suggestions`. Empty for `since` and `before`, which have only fixed values. */
  readonly field: string;
  readonly typed: string;
  readonly fixed: readonly string[];
  /** Returns the condition with a value, and whether the condition is then complete. */
  readonly complete: (value: string) => Omit<Suggestion, 'about'>;
}

const SUGGESTIONS_MAX = 12;

const FIELDS = 'name|type|model|status|project|thread|user|tag|since|before';
const UNFINISHED = new RegExp(
  `^(?<not>-?)(?:(?<field>${FIELDS}):|meta\\.(?<key>"[^"]*"|[^\\s=:"]+)[=:]|(?<map>meta|feedback)\\.)"?(?<typed>.*)$`,
);

export function unfinishedIn(text: string): Unfinished | undefined {
  const { not, field, key, map, typed = '' } = UNFINISHED.exec(text)?.groups ?? {};
  if (field !== undefined) {
    const fixed = KEYS.find((one) => one.key === `${field}:`)?.values ?? [];
    const isTime = field === 'since' || field === 'before';
    const complete = (value: string) => ({ text: `${not}${condition(field, value)}`, isComplete: true });
    return { field: isTime ? '' : field, typed, fixed, complete };
  }
  if (key !== undefined) {
    const name = key.replaceAll('"', '');
    const complete = (value: string) => ({ text: `${not}${metadataCondition(name, value)}`, isComplete: true });
    return { field: `meta.${name}`, typed, fixed: [], complete };
  }
  if (map === undefined) return undefined;
  const complete = (value: string) => ({
    text: `${not}${map}.${filterValue(value)}${map === 'meta' ? '=' : ''}`,
    isComplete: false,
  });
  return { field: map, typed, fixed: [], complete };
}

/** Returns suggestions for the typed text. `values` are the stored values of the field. */
export function suggestionsFor(text: string, values: readonly StoredValue[]): Suggestion[] {
  const unfinished = unfinishedIn(text);
  if (unfinished === undefined) {
    const not = text.length > 1 && text.startsWith('-') ? '-' : '';
    const start = text.slice(not.length).toLowerCase();
    return KEYS.filter((one) => one.key.startsWith(start) && one.key !== start)
      .slice(0, SUGGESTIONS_MAX)
      .map((one) => ({ text: not + one.key, about: one.about, isComplete: false }));
  }
  const { fixed, typed, complete } = unfinished;
  const stored = values.filter(({ value }) => !fixed.includes(value));
  const known = fixed.map((value) => ({ value, runs: values.find((one) => one.value === value)?.runs }));
  return [...known, ...stored]
    .filter(({ value }) => value.toLowerCase().includes(typed.toLowerCase()))
    .slice(0, SUGGESTIONS_MAX)
    .map(({ value, runs }) => ({ ...complete(value), about: runs?.toLocaleString('en') ?? '' }));
}
