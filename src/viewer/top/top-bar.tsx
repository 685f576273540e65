import type { JSX } from 'preact';
import { readAddress, type View } from '../data/address.ts';
import { mayChange } from '../data/api.ts';
import { live, toggleLive } from '../data/changes.ts';
import { address, compared } from '../data/navigation.ts';
import { Button, Link, Problem, ThemeButton } from '../elements/controls.tsx';
import { openDialog } from '../elements/dialog.tsx';
import { lazy } from '../elements/lazy.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { FilterRow } from './filter-box.tsx';
import { importFile } from './import-file.ts';

/** The views with a link, and the keys that open them. */
export const VIEWS: readonly { readonly view: View; readonly name: string; readonly keys: string }[] = [
  { view: 'traces', name: 'Traces', keys: 'g t' },
  { view: 'runs', name: 'Runs', keys: 'g r' },
  { view: 'threads', name: 'Threads', keys: 'g h' },
  { view: 'users', name: 'Users', keys: 'g u' },
  { view: 'statistics', name: 'Statistics', keys: 'g s' },
];

export function TopBar(): JSX.Element {
  const { view, thread, trace } = address.value;
  return (
    <header class="top">
      <nav class="line" aria-label="Views">
        <Link class="brand" to={readAddress('')}>
          runspan
        </Link>
        {VIEWS.map((one) => (
          <Link
            key={one.view}
            class="button quiet"
            to={{ view: one.view }}
            title={`${one.name} (${one.keys})`}
            aria-current={view === one.view ? 'page' : undefined}
          >
            {one.name}
          </Link>
        ))}
        <span class="space" />
        <ComparedChip />
        <LiveSwitch />
        {mayChange.value && (
          <Button text="Import" class="button quiet" title="Import traces from a file" onClick={importFile} />
        )}
        <ThemeButton />
        <Button
          text="?"
          class="button quiet"
          title="Keyboard shortcuts and filters (?)"
          aria-label="Help"
          onClick={openHelp}
        />
      </nav>
      {(thread ?? trace) === undefined && view !== 'compare' && <FilterRow />}
    </header>
  );
}

const HelpDialog = lazy(
  () => import('./help-dialog.tsx'),
  ({ problem }) => <Problem text={problem} />,
);

export function openHelp(): void {
  openDialog(<HelpDialog />);
}

const LIVE_LABELS = { connecting: 'connecting', on: 'live', lost: 'no connection', off: 'paused' } as const;

function LiveSwitch(): JSX.Element {
  return (
    <button
      type="button"
      class={`button quiet live-${live.value}`}
      aria-pressed={live.value !== 'off'}
      title={live.value === 'off' ? 'Resume live updates' : 'Pause live updates'}
      onClick={toggleLive}
    >
      <span class="dot" aria-hidden="true" />
      {LIVE_LABELS[live.value]}
    </button>
  );
}

function ComparedChip(): JSX.Element | null {
  if (compared.value === undefined) return null;
  const cancel = (): void => {
    compared.value = undefined;
  };
  return (
    <span class="chip term" role="status">
      <span class="clip">Compare {visibleText(compared.value.name)} with … (c)</span>
      <Button icon="close" class="" aria-label="Cancel the comparison" onClick={cancel} />
    </span>
  );
}
