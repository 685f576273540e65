import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { TraceOutcome } from '../../receiver/domain/run-view.ts';
import type { View } from '../data/address.ts';
import { exportUrl } from '../data/api.ts';
import { address } from '../data/navigation.ts';
import { toggle } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { DeleteButton } from '../delete/delete-button.tsx';
import { Button, Command, CopyButton, Link, ThemeButton, Toggle } from '../elements/controls.tsx';
import {
  ago,
  costFigure,
  countFigure,
  durationFigure,
  exact,
  latencyOf,
  millisecondsAt,
  plural,
  usageTitle,
  useNow,
} from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { Menu } from '../elements/menu.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { AddToSet } from '../sets/add-to-set.tsx';
import { innermostMessage, useAxis } from './run-tree.ts';
import type { TraceModel } from './trace-model.ts';

const TICK_MS = 1_000;
/** Labels of the link that closes the trace, by view. */
const ORIGINS: Readonly<Partial<Record<View, string>>> = { runs: 'Runs', threads: 'Thread' };

/** Bar with the name and totals of a trace, the search, and the export buttons. */
export function TraceBar({ model }: { model: TraceModel }): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => box.current?.focus() });
  const { id, search, isErrorsOnly } = model;
  const root = model.tree.value.branches[0]?.run;
  return (
    <header class="line trace-bar">
      {saved === undefined && (
        <Link class="button quiet" to={{ trace: undefined }} title="Back to the list (Esc)">
          <Icon name="back" />
          {ORIGINS[address.value.view] ?? 'Traces'}
        </Link>
      )}
      <h1 class="clip" title={visibleText(root?.name ?? '')}>
        {visibleText(root?.name ?? '')}
      </h1>
      <Outcome model={model} />
      <TraceFigures model={model} />
      <CopyButton text={() => id} label="Copy the trace id" />
      <span class="space" />
      <span class="line search-line">
        <input
          ref={box}
          class="search"
          type="search"
          placeholder="Search in this trace"
          aria-label="Search in this trace: names, errors, payloads"
          title="Enter and Shift+Enter select the next and the previous hit"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
          onKeyDown={({ key, shiftKey }) => {
            if (key === 'Escape') search.value = '';
            if (key === 'Enter') model.selectHit(shiftKey ? 'previous' : 'next');
          }}
        />
        {search.value !== '' && <Hits model={model} />}
      </span>
      <Toggle
        class="button"
        isOn={isErrorsOnly.value}
        title="Show only failed runs and their parents (e)"
        text="Errors only"
        onClick={() => toggle(isErrorsOnly)}
      />
      {saved === undefined ? <Menu name="Save" icon="download" panel={<SavePanel />} /> : <ThemeButton />}
      <AddToSet name="Add to set" examples={{ trace_ids: [id] }} />
      <DeleteButton label="Delete this trace" target={{ kind: 'trace', id }} name={root?.name} />
    </header>
  );
}

function SavePanel(): JSX.Element {
  const id = address.value.trace ?? '';
  return (
    <div class="menu-list">
      <a href={exportUrl(id, 'html')} download>
        Save as HTML <span class="note">one file to share, with secrets masked</span>
      </a>
      <a href={exportUrl(id, 'runspan')} download>
        JSON <span class="note">all data, to import elsewhere</span>
      </a>
      <a href={exportUrl(id, 'perfetto')} download>
        Perfetto <span class="note">for ui.perfetto.dev</span>
      </a>
      <p>Make a test</p>
      <Command text={`npx runspan test ${id}`} />
    </div>
  );
}

/** Shows the number of hits, and buttons that select the next and the previous hit. */
function Hits({ model }: { model: TraceModel }): JSX.Element {
  const count = model.hits.value.length;
  const position = model.hitPosition.value + 1;
  const hits = plural(count, 'hit') + (model.hasMoreHits() ? ' or more' : '');
  return (
    <>
      <span class="note" role="status">
        {position === 0 ? hits : `${position} of ${hits}`}
      </span>
      {(['previous', 'next'] as const).map((step) => (
        <Button
          key={step}
          icon={step === 'next' ? 'down' : 'up'}
          class="copy"
          aria-label={`Select the ${step} hit`}
          disabled={count === 0}
          onClick={() => model.selectHit(step)}
        />
      ))}
    </>
  );
}

/** The outcome of a trace. If a run failed, the text of the failure leads to the run. */
function Outcome({ model }: { model: TraceModel }): JSX.Element | null {
  const outcome = model.outcome.value;
  const failed = model.failed.value;
  if (outcome === undefined) return null;
  if (failed === undefined || !isFailure(outcome)) return <StatusMark status={outcome} />;
  const { error, trace } = model.summary.value.value ?? {};
  const text = innermostMessage(failed.error ?? error ?? `${failed.name} failed`);
  const title = `${outcome === 'error' ? 'error' : `${trace?.errors} failed below`}: ${visibleText(text)}`;
  return (
    <Button
      icon={outcome}
      text={<span class="clip">{title}</span>}
      class={`status pill status-${outcome}`}
      title={title}
      onClick={() => model.select(failed.id)}
    />
  );
}

function isFailure(outcome: TraceOutcome | undefined): boolean {
  return outcome === 'error' || outcome === 'failed_below';
}

function TraceFigures({ model }: { model: TraceModel }): JSX.Element {
  const tree = model.tree.value;
  const { lengthMs, nowMs } = useAxis(tree);
  const agoMs = useNow(true, TICK_MS);
  const root = tree.branches[0]?.run;
  const failed = model.failed.value;
  const { session_name: project, trace } = model.summary.value.value ?? {};
  const { runs = 0, errors = 0, pending = 0, usage } = trace ?? {};
  const { total_tokens: tokens = 0, total_cost: dollars = 0 } = usage ?? {};
  const startTime = root?.start_time ?? '';
  return (
    <ul class="figures clip small">
      <li>{root?.status === 'pending' ? `running for ${latencyOf(root, nowMs)}` : durationFigure(lengthMs)}</li>
      {runs > 0 && <li>{plural(runs, 'run')}</li>}
      {errors > 0 && failed !== undefined && !isFailure(model.outcome.value) && (
        <li>
          <Button text={plural(errors, 'error')} class="bad" onClick={() => model.select(failed.id)} />
        </li>
      )}
      {pending > 0 && <li>{pending} pending</li>}
      {tokens > 0 && <li title={usageTitle(usage)}>{countFigure(tokens)} tokens</li>}
      {dollars > 0 && <li title={usageTitle(usage)}>{costFigure(dollars)}</li>}
      {project !== undefined && <li>{visibleText(project)}</li>}
      <li title={exact(startTime)}>{ago(millisecondsAt(startTime), agoMs)}</li>
      {saved !== undefined && <li>saved {exact(saved.savedMs).slice(0, -7)}</li>}
      {(saved?.omittedRuns ?? 0) > 0 && <li class="bad">without {plural(saved?.omittedRuns ?? 0, 'run')}</li>}
    </ul>
  );
}
