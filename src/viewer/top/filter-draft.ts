import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { parseFilter, printFilter, type Term, withTerm } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { type Suggestion, suggestionsFor, useNames } from './suggestions.ts';

/** A filter, and the condition that is being added to it. */
export interface FilterDraft {
  readonly terms: readonly Term[];
  readonly text: string;
  readonly suggestions: readonly Suggestion[];
  /** Which suggestion Enter would take; -1 for none. */
  readonly active: number;
  open(): void;
  /** What was typed counts. */
  close(): void;
  type(text: string): void;
  /** Whether the key meant something here. */
  press(key: string): boolean;
  take(suggestion: Suggestion): void;
  edit(term: Term): void;
  remove(term: Term): void;
}

/** The filter of the address: what is added to it or taken from it is a step in the history. */
export function useFilterDraft(input: RefObject<HTMLInputElement | null>): FilterDraft {
  const terms = parseFilter(address.value.filter);
  const text = useSignal('');
  const isOpen = useSignal(false);
  const active = useSignal(-1);
  const names = useNames(isOpen.value);
  const suggestions = isOpen.value ? suggestionsFor(text.value, names) : [];

  const show = (next: readonly Term[]): void => go({ filter: printFilter(next) });
  const type = (next: string): void => {
    text.value = next;
    active.value = -1;
  };
  const commit = (): void => {
    const added = parseFilter(text.value.trim());
    type('');
    if (added.length > 0) show(added.reduce<Term[]>((all, term) => withTerm(all, term), [...terms]));
  };
  /** The list of suggestions would stand before what has been asked for. */
  const enter = (): void => {
    commit();
    isOpen.value = false;
  };
  const take = (suggestion: Suggestion): void => {
    type(suggestion.text);
    if (suggestion.isWhole) enter();
    input.current?.focus();
  };
  const write = (next: string): void => {
    isOpen.value = true;
    type(next);
  };
  const remove = (term: Term): void => show(terms.filter((one) => one !== term));
  const edit = (term: Term): void => {
    write(term.text);
    remove(term);
    input.current?.focus();
  };
  const open = (): void => {
    isOpen.value = true;
  };
  const close = (): void => {
    isOpen.value = false;
    commit();
  };
  const leave = (): void => {
    if (active.value !== -1) active.value = -1;
    else if (text.value !== '') type('');
    else input.current?.blur();
  };
  const step = (by: number): void => {
    isOpen.value = true;
    active.value = Math.max(-1, Math.min(suggestions.length - 1, active.value + by));
  };
  const press = (key: string): boolean => {
    const chosen = suggestions[active.value];
    const last = terms.at(-1);
    if (key === 'ArrowDown') step(1);
    else if (key === 'ArrowUp') step(-1);
    else if (key === 'Escape') leave();
    else if ((key === 'Enter' || key === 'Tab') && chosen !== undefined) take(chosen);
    else if (key === 'Enter') enter();
    else if (key === 'Backspace' && text.value === '' && last !== undefined) edit(last);
    else return false;
    return true;
  };
  return {
    terms,
    text: text.value,
    suggestions,
    active: active.value,
    open,
    close,
    type: write,
    press,
    take,
    edit,
    remove,
  };
}
