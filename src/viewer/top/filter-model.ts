import { type Signal, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import type { Suggestion as StoredValue } from '../../receiver/domain/query/query.ts';
import type { ProjectSummary } from '../../receiver/domain/run-view.ts';
import type { FilterTerm } from '../../receiver/filter/parser.ts';
import { api } from '../data/api.ts';
import { termsOf, withoutTerms, withTerms } from '../data/filter.ts';
import { LiveValue } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { type Suggestion, suggestionsFor, unfinishedIn } from './suggestions.ts';

/** The store counts the traces of all projects for each read. */
const PROJECTS_PAUSE_MS = 5_000;

/** State of the filter box: the conditions in the URL, and the condition that the user is typing. */
export class FilterModel {
  readonly input: RefObject<HTMLInputElement | null> = { current: null };
  readonly text: Signal<string> = signal('');
  /** Index of the highlighted suggestion, or -1 if none is highlighted. */
  readonly active: Signal<number> = signal(-1);
  readonly #isOpen: Signal<boolean> = signal(false);
  readonly projects: LiveValue<{ items: ProjectSummary[] }> = new LiveValue(api.projects, {
    isStale: () => true,
    pauseMsMin: PROJECTS_PAUSE_MS,
  });
  readonly #values: Signal<{ field: string; items: StoredValue[] }> = signal({ field: '', items: [] });

  get terms(): readonly FilterTerm[] {
    return termsOf(address.value.filter);
  }

  get suggestions(): readonly Suggestion[] {
    if (!this.#isOpen.value) return [];
    const typed = this.text.value;
    const { field, items } = this.#values.value;
    return suggestionsFor(typed, unfinishedIn(typed)?.field === field ? items : []);
  }

  open(): void {
    this.#isOpen.value = true;
  }

  close(): void {
    const added = this.text.value.trim();
    this.#type('');
    this.#isOpen.value = false;
    if (added !== '') go({ filter: withTerms(address.value.filter, added) });
  }

  write(text: string): void {
    this.#isOpen.value = true;
    this.#type(text);
  }

  accept(suggestion: Suggestion): void {
    this.#type(suggestion.text);
    if (suggestion.isComplete) this.close();
    this.input.current?.focus();
  }

  edit(term: FilterTerm): void {
    this.write(term.text);
    this.remove(term);
    this.input.current?.focus();
  }

  remove(term: FilterTerm): void {
    go({ filter: withoutTerms(address.value.filter, ({ text }) => text === term.text) });
  }

  /** Handles a key press. Returns whether the key was handled. */
  press(key: string): boolean {
    const suggestion = this.suggestions[this.active.value];
    const last = this.terms.at(-1);
    if (key === 'ArrowDown') this.#step(1);
    else if (key === 'ArrowUp') this.#step(-1);
    else if (key === 'Escape') this.#cancel();
    else if ((key === 'Enter' || key === 'Tab') && suggestion !== undefined) this.accept(suggestion);
    else if (key === 'Enter') this.close();
    else if (key === 'Backspace' && this.text.value === '' && last !== undefined) this.edit(last);
    else return false;
    return true;
  }

  #type(text: string): void {
    this.text.value = text;
    this.active.value = -1;
    void this.#readValues(text);
  }

  async #readValues(text: string): Promise<void> {
    const { field = '', typed = '' } = unfinishedIn(text) ?? {};
    if (field === '') return;
    const { project } = address.value;
    try {
      const { items } = await api.suggestions(new URLSearchParams({ field, text: typed, ...(project && { project }) }));
      if (this.text.value === text) this.#values.value = { field, items };
    } catch {
      // The error is ignored, because the view below shows it. The filter box still suggests keys.
    }
  }

  #step(by: number): void {
    this.#isOpen.value = true;
    this.active.value = Math.max(-1, Math.min(this.suggestions.length - 1, this.active.value + by));
  }

  #cancel(): void {
    if (this.active.value !== -1) this.active.value = -1;
    else if (this.text.value !== '') this.#type('');
    else this.input.current?.blur();
  }
}
