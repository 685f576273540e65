import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ProjectSummary } from '../../receiver/store/run-view.ts';
import { compared } from '../compare/comparison.ts';
import type { Address, View } from '../data/address.ts';
import { api } from '../data/api.ts';
import { live, onChanges, toggleLive } from '../data/changes.ts';
import { address, follow, go, linkTo } from '../data/navigation.ts';
import { nextTheme, theme } from '../data/preferences.ts';
import { Refresh } from '../data/refresh.ts';
import { Icon } from '../elements/icon.tsx';
import { visible } from '../elements/visible-text.ts';
import { FilterBox } from './filter-box.tsx';
import { isHelpOpen } from './help.tsx';
import { importFile } from './import-file.ts';

const VIEWS: readonly { readonly view: View; readonly name: string; readonly keys: string }[] = [
  { view: 'traces', name: 'Traces', keys: 'g t' },
  { view: 'runs', name: 'Runs', keys: 'g r' },
  { view: 'statistics', name: 'Statistics', keys: 'g s' },
];

/** Where one is and where one can go, and what is looked for. */
export function TopBar(): JSX.Element {
  const { view, trace } = address.value;
  return (
    <header class="top">
      <nav aria-label="Views">
        <a class="brand" href="/" onClick={(event) => follow(event, HOME)}>
          runspan
        </a>
        {VIEWS.map((one) => {
          const place = { view: one.view, trace: undefined, run: undefined, base: undefined };
          return (
            <a
              key={one.view}
              class="nav"
              href={linkTo(place)}
              title={`${one.name} (${one.keys})`}
              aria-current={view === one.view ? 'page' : undefined}
              onClick={(event) => follow(event, place)}
            >
              {one.name}
            </a>
          );
        })}
        <span class="space" />
        <Compared />
        <LiveSwitch />
        <button type="button" class="button quiet" title="Read traces from a file" onClick={importFile}>
          Import
        </button>
        <button
          type="button"
          class="button quiet"
          title={`Colours: ${theme.value}`}
          aria-label={`Colours: ${theme.value}`}
          onClick={nextTheme}
        >
          <Icon name="theme" />
        </button>
        <button
          type="button"
          class="button quiet"
          title="Keys and filters (?)"
          aria-label="Help"
          onClick={() => {
            isHelpOpen.value = true;
          }}
        >
          ?
        </button>
      </nav>
      {trace === undefined && view !== 'compare' && (
        <div class="filter-row">
          <ProjectSelect />
          <FilterBox />
        </div>
      )}
    </header>
  );
}

const HOME: Partial<Address> = {
  view: 'traces',
  project: undefined,
  filter: '',
  sort: 'start_time',
  order: 'descending',
  trace: undefined,
  run: undefined,
  base: undefined,
};

function ProjectSelect(): JSX.Element {
  const projects = useSignal<readonly ProjectSummary[]>([]);
  useEffect(() => {
    const refresh = new Refresh(async (signal) => {
      try {
        projects.value = (await api.projects(signal)).items;
      } catch {
        // The list beside it says what is wrong.
      }
    });
    refresh.ask();
    const unsubscribe = onChanges(() => refresh.ask());
    return () => {
      unsubscribe();
      refresh.end();
    };
  }, []);
  const { project = '' } = address.value;
  const isUnknown = project !== '' && !projects.value.some(({ name }) => name === project);
  return (
    <select
      aria-label="Project"
      value={project}
      onChange={({ currentTarget }) => go({ project: currentTarget.value === '' ? undefined : currentTarget.value })}
    >
      <option value="">All projects</option>
      {isUnknown && <option value={project}>{visible(project)}</option>}
      {projects.value.map(({ name, traces }) => (
        <option key={name} value={name}>
          {visible(name)} ({traces.toLocaleString('en')})
        </option>
      ))}
    </select>
  );
}

const SAID = { connecting: 'connecting', on: 'live', lost: 'no connection', off: 'paused' } as const;

function LiveSwitch(): JSX.Element {
  return (
    <button
      type="button"
      class={`button quiet live live-${live.value}`}
      aria-pressed={live.value !== 'off'}
      title={live.value === 'off' ? 'Follow what happens' : 'Stop following'}
      onClick={toggleLive}
    >
      <span class="dot" aria-hidden="true" />
      {SAID[live.value]}
    </button>
  );
}

function Compared(): JSX.Element | null {
  if (compared.value === undefined) return null;
  return (
    <span class="chip term" role="status">
      <span class="term-text">Compare {visible(compared.value.name)} with … (c)</span>
      <button
        type="button"
        class="term-remove"
        aria-label="Compare nothing"
        onClick={() => {
          compared.value = undefined;
        }}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}
