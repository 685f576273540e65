import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { exportUrl } from '../data/api.ts';
import { address, follow, linkTo } from '../data/navigation.ts';
import { CopyButton } from '../elements/controls.tsx';
import { cost, count, duration, exact, plural } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { StatusMark } from '../elements/status-mark.tsx';
import { visible } from '../elements/visible-text.ts';
import { countedUsages, type RunTree } from './run-tree.ts';

/** What a trace comes to, and what can be done with it. */
export function TraceBar({
  id,
  tree,
  search,
  isErrorsOnly,
}: {
  id: string;
  tree: RunTree;
  search: Signal<string>;
  isErrorsOnly: Signal<boolean>;
}): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => box.current?.focus() });
  const root = tree.branches[0]?.run;
  const back = { trace: undefined, run: undefined };
  return (
    <header class="trace-bar">
      <a
        class="button quiet"
        href={linkTo(back)}
        onClick={(event) => follow(event, back)}
        title="Back to the list (Esc)"
      >
        <Icon name="back" />
        {address.value.view === 'runs' ? 'Runs' : 'Traces'}
      </a>
      {root !== undefined && (
        <>
          <StatusMark status={root.status} />
          <h1>{visible(root.name)}</h1>
        </>
      )}
      <CopyButton text={() => id} label="Copy the id of the trace" />
      <TraceFigures tree={tree} />
      <span class="space" />
      <input
        ref={box}
        class="search"
        type="search"
        placeholder="Search in this trace"
        aria-label="Search in this trace: names, errors, payloads"
        value={search.value}
        onInput={(event) => {
          search.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') search.value = '';
          if (event.key === 'Enter') event.currentTarget.blur();
        }}
      />
      <button
        type="button"
        class="button"
        aria-pressed={isErrorsOnly.value}
        title="Only runs that failed, and what is above them (e)"
        onClick={() => {
          isErrorsOnly.value = !isErrorsOnly.value;
        }}
      >
        Errors only
      </button>
      <a
        class="button quiet"
        href={exportUrl(id, 'runspan')}
        download
        title="The trace as JSON, to be imported elsewhere"
      >
        <Icon name="download" />
        JSON
      </a>
      <a class="button quiet" href={exportUrl(id, 'perfetto')} download title="The trace for ui.perfetto.dev">
        <Icon name="download" />
        Perfetto
      </a>
    </header>
  );
}

function TraceFigures({ tree }: { tree: RunTree }): JSX.Element {
  const { branches } = tree;
  const { errors, pending, tokens, dollars } = useMemo(() => sumOf(tree), [tree]);
  const first = branches[0]?.run;
  return (
    <ul class="figures">
      <li>{duration(tree.endMs - tree.startMs)}</li>
      <li>{plural(branches.length, 'run')}</li>
      {errors > 0 && <li class="bad">{plural(errors, 'error')}</li>}
      {pending > 0 && <li>{pending} pending</li>}
      {tokens > 0 && <li>{count(tokens)} tokens</li>}
      {dollars > 0 && <li>{cost(dollars)}</li>}
      {first !== undefined && <li title={first.start_time}>{exact(first.start_time)}</li>}
    </ul>
  );
}

function sumOf(tree: RunTree): { errors: number; pending: number; tokens: number; dollars: number } {
  const sum = { errors: 0, pending: 0, tokens: 0, dollars: 0 };
  for (const usage of countedUsages(tree)) {
    sum.tokens += usage.total_tokens ?? 0;
    sum.dollars += usage.total_cost ?? 0;
  }
  for (const { run } of tree.branches) {
    if (run.status === 'error') sum.errors++;
    if (run.status === 'pending') sum.pending++;
  }
  return sum;
}
