import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { readAddress, writeAddress } from '../data/address.ts';
import { queryOf } from '../data/filter.ts';
import { address, go } from '../data/navigation.ts';
import { columnIds, preference } from '../data/preferences.ts';
import { LATEST, rangeIn, type StartRange, withRange } from '../data/time-range.ts';
import { Button, CopyButton, Link, Toggle } from '../elements/controls.tsx';
import { exact } from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { columnsOf, selectedColumns } from '../list/columns.tsx';

export function TimePanel(): JSX.Element {
  const { filter } = address.value;
  const { since, before } = rangeIn(filter);
  const apply = (range: StartRange): void => go({ filter: withRange(filter, range) });
  return (
    <>
      <div class="menu-list">
        {LATEST.map(([value, name]) => (
          <Toggle
            key={value}
            text={`Last ${name}`}
            isOn={since === value && !before}
            onClick={() => apply({ since: value })}
          />
        ))}
        <Toggle text="All time" isOn={!since && !before} onClick={() => apply({})} />
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          apply({ since: filterTime(form.get('From')), before: filterTime(form.get('To')) });
        }}
      >
        <TimeInput name="From" time={since} />
        <TimeInput name="To" time={before} />
        <Button text="Apply" type="submit" />
      </form>
    </>
  );
}

function TimeInput({ name, time }: { name: string; time: string | undefined }): JSX.Element {
  return (
    <label class="menu-time">
      {name}
      <input type="datetime-local" step={1} name={name} defaultValue={inputTime(time)} />
    </label>
  );
}

/** Converts an absolute time in a filter to local time, as time inputs require. Returns an empty text for other times. */
function inputTime(text = ''): string {
  const local = exact(text.length === 10 ? `${text}T00:00` : text);
  return local === text ? '' : local.slice(0, 19).replace(' ', 'T');
}

function filterTime(input: FormDataEntryValue | null): string | undefined {
  return input ? new Date(`${input}`).toISOString().replace('.000', '') : undefined;
}

interface SavedView {
  readonly name: string;
  /** Path and query string of the view. */
  readonly url: string;
}

const saved: Signal<string> = preference('views', (text) => text ?? '[]');

export function ViewsPanel(): JSX.Element {
  const url = writeAddress(address.value);
  const views: readonly SavedView[] = JSON.parse(saved.value);
  const store = (changed: readonly SavedView[]): void => {
    saved.value = JSON.stringify(changed.toSorted((a, b) => a.name.localeCompare(b.name)));
  };
  const without = (removed: string) => views.filter((view) => view.name !== removed);
  return (
    <>
      <ul class="menu-list">
        {views.map((view) => (
          <li key={view.name} class="line">
            <Link to={readAddress(view.url.slice(1))} aria-current={view.url === url ? 'page' : undefined}>
              {visibleText(view.name)}
            </Link>
            <Button
              icon="close"
              class=""
              aria-label={`Delete the view ${visibleText(view.name)}`}
              onClick={() => store(without(view.name))}
            />
          </li>
        ))}
      </ul>
      {views.length === 0 && <p class="note">A saved view contains the list, the filter and the sort order.</p>}
      <form
        class="line"
        onSubmit={(event) => {
          event.preventDefault();
          const name = `${new FormData(event.currentTarget).get('name') ?? ''}`;
          store([...without(name), { name, url }]);
        }}
      >
        <input
          name="name"
          aria-label="Name of the view"
          placeholder="Name of this view"
          required
          pattern=".*\S.*"
          maxLength={80}
        />
        <Button text="Save" type="submit" />
      </form>
      <CopyButton text={() => location.href} label="Copy link to this view" word="Copy link" />
    </>
  );
}

export function ColumnsPanel(): JSX.Element | null {
  const { view } = address.value;
  if (view !== 'traces' && view !== 'runs') return null;
  const shown = selectedColumns(view);
  const setShown = (id: string, isShown: boolean): void => {
    const columns = columnsOf(view).filter((column) => (column.id === id ? isShown : shown.includes(column)));
    columnIds[view].value = columns.map((column) => column.id).join(',');
  };
  return (
    <>
      <ul class="menu-list">
        {columnsOf(view).map((column) => (
          <li key={column.id}>
            <label class="line">
              <input
                type="checkbox"
                checked={shown.includes(column)}
                disabled={column.id === 'name'}
                onChange={({ currentTarget }) => setShown(column.id, currentTarget.checked)}
              />
              {column.name}
            </label>
          </li>
        ))}
      </ul>
      <Button
        text="Default columns"
        onClick={() => {
          columnIds[view].value = '';
        }}
      />
    </>
  );
}

export function DownloadPanel(): JSX.Element {
  const { view, filter, project } = address.value;
  const list = view === 'traces' || view === 'threads' ? 'traces' : 'runs';
  const query = queryOf({ filter, project }, Date.now());
  query.set('list', list);
  return (
    <div class="menu-list">
      <a href={`/query/export?${query}&format=csv`} download>
        CSV <span class="note">one row per {list === 'traces' ? 'trace' : 'run'}, for spreadsheets</span>
      </a>
      <a href={`/query/export?${query}&format=jsonl`} download>
        JSON Lines{' '}
        <span class="note">
          {list === 'traces' ? 'all runs of these traces' : 'these runs'} with inputs and outputs
        </span>
      </a>
    </div>
  );
}
