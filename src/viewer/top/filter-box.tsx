import type { JSX } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { KEYS, type Term } from '../data/filter.ts';
import { Icon } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { visible } from '../elements/visible-text.ts';
import { useFilterDraft } from './filter-draft.ts';
import type { Suggestion } from './suggestions.ts';

/** What is looked for, as chips, and the condition that is being typed. */
export function FilterBox(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const draft = useFilterDraft(input);
  const { terms, suggestions, active } = draft;
  useKeys({ '/': () => input.current?.focus() });
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: A click beside the input is meant for it, which has keys of its own.
    <div class="filter-box" onClick={(event) => event.target === event.currentTarget && input.current?.focus()}>
      <Icon name="search" />
      {terms.map((term) => (
        <Chip key={term.text} term={term} edit={() => draft.edit(term)} remove={() => draft.remove(term)} />
      ))}
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Filter: words, or key:value"
        aria-expanded={suggestions.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={active === -1 ? undefined : `${id}-${active}`}
        placeholder={terms.length === 0 ? 'Filter: words, status:error, latency>2s, …' : ''}
        autocomplete="off"
        spellcheck={false}
        value={draft.text}
        onFocus={draft.open}
        onBlur={draft.close}
        onInput={(event) => draft.type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (draft.press(event.key)) event.preventDefault();
        }}
      />
      <Suggestions id={id} suggestions={suggestions} active={active} take={draft.take} />
    </div>
  );
}

function Suggestions({
  id,
  suggestions,
  active,
  take,
}: {
  id: string;
  suggestions: readonly Suggestion[];
  active: number;
  take: (suggestion: Suggestion) => void;
}): JSX.Element {
  const isEmpty = suggestions.length === 0;
  return (
    <div id={`${id}-list`} role="listbox" aria-label="Suggestions" class="suggestions" hidden={isEmpty}>
      {suggestions.map((suggestion, index) => (
        <div
          key={suggestion.text}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          // The input would lose the focus, and with it the list, before a click is one.
          onMouseDown={(event) => {
            event.preventDefault();
            take(suggestion);
          }}
        >
          <span>{visible(suggestion.text)}</span>
          <span class="note">{suggestion.about}</span>
        </div>
      ))}
    </div>
  );
}

function Chip({ term, edit, remove }: { term: Term; edit: () => void; remove: () => void }): JSX.Element {
  return (
    <span class={term.problem === undefined ? 'chip term' : 'chip term bad'} title={term.problem}>
      <button type="button" class="term-text" onClick={edit} aria-label={`Edit ${visible(term.text)}`}>
        {visible(term.text)}
      </button>
      {term.problem !== undefined && <span class="unseen">{term.problem}</span>}
      <button type="button" class="term-remove" onClick={remove} aria-label={`Remove ${visible(term.text)}`}>
        <Icon name="close" />
      </button>
    </span>
  );
}

/** The language of the filter, for help. */
export function FilterHelp(): JSX.Element {
  return (
    <dl class="help-keys">
      {KEYS.map(({ key, about }) => (
        <div key={key}>
          <dt>
            <code>{key}</code>
          </dt>
          <dd>{about}</dd>
        </div>
      ))}
      <div>
        <dt>
          <code>refund "late order"</code>
        </dt>
        <dd>words in names, errors, inputs, outputs, tags and metadata; in quotes next to each other</dd>
      </div>
    </dl>
  );
}
