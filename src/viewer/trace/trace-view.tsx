import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { RunOutline } from '../../receiver/store/run-view.ts';
import { ApiError, api, problemOf, type TraceContent } from '../data/api.ts';
import { onChanges } from '../data/changes.ts';
import { useLoaded } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { Refresh } from '../data/refresh.ts';
import { isTyped, useKeys } from '../elements/keys.ts';
import { RunPanel } from '../run/run-panel.tsx';
import { matchingBranches, openBranches, type RunTree, treeOf } from './run-tree.ts';
import { Splitter } from './splitter.tsx';
import { TraceBar } from './trace-bar.tsx';
import { TraceTree } from './trace-tree.tsx';

/** Runs whose payloads are searched for words. */
const FOUND_MAX = 1_000;
const NONE: readonly RunOutline[] = [];
const GONE: TraceContent = { items: [], feedback: [] };

/** One trace: the tree of its runs beside the one that is read. */
export function TraceView({ id }: { id: string }): JSX.Element {
  const content = useSignal<TraceContent | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const collapsed = useSignal<ReadonlySet<string>>(new Set());
  const search = useSignal('');
  const isErrorsOnly = useSignal(false);
  useOutline(id, content, problem);

  const tree = useMemo(() => treeOf(content.value?.items ?? NONE), [content.value]);
  const found = useFound(id, search.value);
  const isNarrowed = search.value !== '' || isErrorsOnly.value;
  const shown = useMemo(
    () => (isNarrowed ? narrowed(tree, search.value, found, isErrorsOnly.value) : openBranches(tree, collapsed.value)),
    [tree, collapsed.value, search.value, found, isErrorsOnly.value],
  );
  const selected = address.value.run ?? tree.branches[0]?.run.id;
  const panel = useRef<HTMLElement>(null);
  const select = (run: string | undefined): void => {
    if (run !== undefined) go({ run }, { replace: true });
  };
  const collapse = (run: string, isCollapsed: boolean): void => {
    const next = new Set(collapsed.value);
    if (isCollapsed) next.add(run);
    else next.delete(run);
    collapsed.value = next;
  };
  const collapseAll = (isCollapsed: boolean): void => {
    const parents = tree.branches.filter(({ end }, index) => end > index + 1 && index > 0);
    collapsed.value = new Set(isCollapsed ? parents.map(({ run }) => run.id) : []);
  };
  useKeys({
    Escape: () => go({ trace: undefined, run: undefined }),
    e: () => {
      isErrorsOnly.value = !isErrorsOnly.value;
    },
    n: () => select(nextError(tree, selected)),
    '[': () => collapseAll(true),
    ']': () => collapseAll(false),
    Enter: () => panel.current?.focus(),
  });

  if (content.value === undefined || tree.branches.length === 0) {
    return <TraceMissing problem={problem.value} isEmpty={content.value !== undefined} />;
  }
  return (
    <div class="trace">
      <TraceBar id={id} tree={tree} search={search} isErrorsOnly={isErrorsOnly} />
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <div class="trace-body">
        <TraceTree
          tree={tree}
          shown={shown}
          collapsed={isNarrowed ? NOTHING : collapsed.value}
          matches={search.value === '' ? undefined : (run) => matchesSearch(run, search.value, found)}
          selected={selected}
          select={select}
          collapse={collapse}
          collapseAll={collapseAll}
          isOpened={address.value.run !== undefined}
        />
        <Splitter />
        {selected !== undefined && (
          <RunPanel
            key={selected}
            id={selected}
            outline={outlineOf(tree, selected)}
            content={content.value}
            element={panel}
            traceId={id}
          />
        )}
      </div>
    </div>
  );
}

const NOTHING: ReadonlySet<string> = new Set();

function TraceMissing({ problem, isEmpty }: { problem: string | undefined; isEmpty: boolean }): JSX.Element {
  if (problem === undefined && !isEmpty) return <p class="loading">Loading the trace…</p>;
  return (
    <div class="empty">
      <h2>{problem ?? 'This trace is not here'}</h2>
      {isEmpty && <p>It was never received, or has been forgotten to stay within the limits of the store.</p>}
      <button type="button" class="button" onClick={() => go({ trace: undefined, run: undefined })}>
        Back to the list
      </button>
    </div>
  );
}

function useOutline(
  id: string,
  content: { value: TraceContent | undefined },
  problem: { value: string | undefined },
): void {
  useEffect(() => {
    const refresh = new Refresh(async (signal) => {
      try {
        content.value = await api.trace(id, signal);
        problem.value = undefined;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) content.value = GONE;
        else problem.value = problemOf(error) ?? problem.value;
      }
    });
    refresh.ask();
    const unsubscribe = onChanges((traceIds) => {
      if (traceIds === undefined || traceIds.has(id)) refresh.ask();
    });
    return () => {
      unsubscribe();
      refresh.end();
    };
  }, [id]);
}

/** Runs in whose payloads the words stand: the receiver knows, as nothing of them is here. */
function useFound(traceId: string, search: string): ReadonlySet<string> {
  const words = search.trim();
  const key = words.length < 2 ? undefined : words;
  const { value } = useLoaded(key, async (signal) => {
    await isTyped(signal);
    const query = new URLSearchParams({ trace_id: traceId, text: words, limit: `${FOUND_MAX}` });
    return new Set((await api.runs(query, signal)).items.map((run) => run.id));
  });
  return value ?? NOTHING;
}

function narrowed(tree: RunTree, search: string, found: ReadonlySet<string>, isErrorsOnly: boolean): number[] {
  return matchingBranches(
    tree,
    (run) => (!isErrorsOnly || hasFailed(run)) && (search === '' || matchesSearch(run, search, found)),
  );
}

function hasFailed({ status }: RunOutline): boolean {
  return status === 'error' || status === 'interrupted' || status === 'incomplete';
}

function matchesSearch(run: RunOutline, search: string, found: ReadonlySet<string>): boolean {
  if (found.has(run.id)) return true;
  const wanted = search.trim().toLowerCase();
  const told = [run.name, run.run_type, run.status, run.model ?? '', run.error ?? '', run.id];
  return told.some((text) => text.toLowerCase().includes(wanted));
}

/** The next run with an error after this one, from the top again after the last. */
function nextError(tree: RunTree, selected: string | undefined): string | undefined {
  const { branches, indexOf } = tree;
  const from = (selected === undefined ? undefined : indexOf.get(selected)) ?? -1;
  for (let step = 1; step <= branches.length; step++) {
    const run = branches[(from + step) % branches.length]?.run;
    if (run !== undefined && hasFailed(run)) return run.id;
  }
  return undefined;
}

function outlineOf(tree: RunTree, id: string): RunOutline | undefined {
  return tree.branches[tree.indexOf.get(id) ?? -1]?.run;
}
