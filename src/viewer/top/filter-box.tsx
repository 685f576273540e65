import type { ComponentType, JSX } from 'preact';
import { useEffect, useId, useMemo } from 'preact/hooks';
import type { ProjectSummary } from '../../receiver/domain/run-view.ts';
import type { FilterTerm } from '../../receiver/filter/parser.ts';
import { address, go } from '../data/navigation.ts';
import { nameOfRange, rangeIn } from '../data/time-range.ts';
import { DeleteButton } from '../delete/delete-button.tsx';
import { Button } from '../elements/controls.tsx';
import { Icon } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { lazy } from '../elements/lazy.tsx';
import { Menu } from '../elements/menu.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { FilterModel } from './filter-model.ts';

export function FilterRow(): JSX.Element {
  const model = useMemo(() => new FilterModel(), []);
  useEffect(() => () => model.projects.close(), [model]);
  const { view, filter, project } = address.value;
  return (
    <div class="filter-row">
      <ProjectSelect projects={model.projects.value.value?.items ?? []} />
      {project !== undefined && (
        <DeleteButton label={`Delete the project ${visibleText(project)}`} target={{ kind: 'project', id: project }} />
      )}
      <Menu name="Time" icon="time" value={nameOfRange(rangeIn(filter))} panel={<TimePanel />} />
      <FilterBox model={model} />
      <Menu name="Views" icon="views" panel={<ViewsPanel />} />
      {(view === 'traces' || view === 'runs') && <Menu name="Columns" icon="columns" panel={<ColumnsPanel />} />}
      <Menu name="Download" icon="download" panel={<DownloadPanel />} />
    </div>
  );
}

function ProjectSelect({ projects }: { projects: readonly ProjectSummary[] }): JSX.Element {
  const { project = '' } = address.value;
  const isUnknown = project !== '' && !projects.some(({ name }) => name === project);
  return (
    <select
      aria-label="Project"
      value={project}
      onChange={({ currentTarget }) => go({ project: currentTarget.value === '' ? undefined : currentTarget.value })}
    >
      <option value="">All projects</option>
      {isUnknown && <option value={project}>{visibleText(project)}</option>}
      {projects.map(({ name, traces }) => (
        <option key={name} value={name}>
          {visibleText(name)} ({traces.toLocaleString('en')})
        </option>
      ))}
    </select>
  );
}

/** Shows the conditions of the filter as chips, followed by a text box for the next condition. */
function FilterBox({ model }: { model: FilterModel }): JSX.Element {
  useKeys({ '/': () => model.input.current?.focus() });
  const id = useId();
  const { terms, suggestions } = model;
  const active = model.active.value;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: A click beside the text box focuses it; the text box handles keys.
    <div class="filter-box" onClick={(event) => event.target === event.currentTarget && model.input.current?.focus()}>
      <Icon name="search" />
      {terms.map((term) => (
        <Chip key={term.text} term={term} edit={() => model.edit(term)} remove={() => model.remove(term)} />
      ))}
      <input
        ref={model.input}
        type="text"
        role="combobox"
        aria-label="Filter: text, or key:value"
        aria-expanded={suggestions.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={active === -1 ? undefined : `${id}-${active}`}
        placeholder={terms.length === 0 ? 'Filter: text, status:error, latency>2s, …' : ''}
        autocomplete="off"
        spellcheck={false}
        value={model.text.value}
        onFocus={() => model.open()}
        onBlur={() => model.close()}
        onInput={(event) => model.write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (model.press(event.key)) event.preventDefault();
        }}
      />
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Suggestions"
        class="suggestions popup"
        hidden={suggestions.length === 0}
      >
        {suggestions.map((suggestion, index) => (
          <div
            key={suggestion.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active}
            // Use `mousedown`, because a click would first take the focus from the text box and hide the list.
            onMouseDown={(event) => {
              event.preventDefault();
              model.accept(suggestion);
            }}
          >
            <code>{visibleText(suggestion.text)}</code>
            <span class="note">{suggestion.about}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

function Chip({ term, edit, remove }: { term: FilterTerm; edit: () => void; remove: () => void }): JSX.Element {
  const text = visibleText(term.text);
  return (
    <span class={term.problem === undefined ? 'chip term' : 'chip term bad'} title={term.problem}>
      <Button text={text} class="clip" onClick={edit} aria-label={`Edit ${text}`} />
      {term.problem !== undefined && <span class="unseen">{term.problem}</span>}
      <Button icon="close" class="" onClick={remove} aria-label={`Remove ${text}`} />
    </span>
  );
}

const TimePanel = panel('TimePanel');
const ViewsPanel = panel('ViewsPanel');
const ColumnsPanel = panel('ColumnsPanel');
const DownloadPanel = panel('DownloadPanel');

/** Loads the panels when the first menu is opened. */
function panel(name: 'TimePanel' | 'ViewsPanel' | 'ColumnsPanel' | 'DownloadPanel'): ComponentType {
  return lazy(async () => ({ default: (await import('./menu-panels.tsx'))[name] }));
}
