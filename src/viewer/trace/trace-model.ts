import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import type { RunOutline, TraceOutcome, TraceSummary } from '../../receiver/domain/run-view.ts';
import { type FoldedRuns, foldedCalls } from '../../receiver/domain/trace/call-records.ts';
import { derivedTools, type TreeRun, withDerivedTools } from '../../receiver/domain/trace/derived-tools.ts';
import { condition, searchWords } from '../../receiver/filter/parser.ts';
import { api, ReceiverError } from '../data/api.ts';
import { changesOfTrace, LiveValue } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { isInternalShown } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import {
  type Branch,
  isInternal,
  openBranches,
  type RunTree,
  repeatsIn,
  slowestPath,
  treeOf,
  unfolded,
  withAncestors,
} from './run-tree.ts';

/** Maximum number of runs in the result of a payload search. */
const FOUND_MAX = 1_000;
/** Minimum length of a search text to send to the receiver. */
const SEARCH_LENGTH_MIN = 2;
/** Delay between the last keystroke and the search, in milliseconds. */
const TYPING_MS = 150;
const NONE: ReadonlySet<string> = new Set();

/** State of an open trace: the tree, the search, and the selected run. */
export class TraceModel {
  readonly id: string;
  readonly content: LiveValue<readonly RunOutline[]>;
  /** The trace as the list shows it. Undefined until it arrives. */
  readonly summary: LiveValue<TraceSummary | undefined>;
  readonly search: Signal<string> = signal('');
  readonly isErrorsOnly: Signal<boolean> = signal(false);
  readonly collapsed: Signal<ReadonlySet<string>> = signal(NONE);
  readonly folded: ReadonlySignal<FoldedRuns> = computed(() => foldedCalls(this.content.value.value ?? []));
  /** Ids of the first of equal runs, by the id of each further one. */
  readonly repeats: ReadonlySignal<ReadonlyMap<string, string>> = computed(() => repeatsIn(this.tree.value));
  /** Number of runs that are equal to a run and follow it. */
  readonly repeatCounts: ReadonlySignal<ReadonlyMap<string, number>> = computed(() => {
    const counts = new Map<string, number>();
    for (const head of this.repeats.value.values()) counts.set(head, (counts.get(head) ?? 0) + 1);
    return counts;
  });
  /** Number of runs that a framework has added for itself. */
  readonly internals: ReadonlySignal<number> = computed(() => this.tree.value.branches.filter(isInternal).length);
  /** Ids of the runs whose further records, or whose equal runs, are shown. */
  readonly unfolded: Signal<ReadonlySet<string>> = signal(NONE);
  readonly tree: ReadonlySignal<RunTree> = computed(() =>
    treeOf(withDerivedTools(unfolded(this.folded.value), derivedTools(this.content.value.value ?? []))),
  );
  readonly slowest: ReadonlySignal<ReadonlySet<number>> = computed(() => slowestPath(this.tree.value));
  readonly outcome: ReadonlySignal<TraceOutcome | undefined> = computed(
    () => this.summary.value.value?.outcome ?? this.tree.value.branches[0]?.run.status,
  );
  /** The last run that failed. */
  readonly failed: ReadonlySignal<RunOutline | undefined> = computed(() =>
    this.outlineOf(this.summary.value.value?.trace.failed_run_id ?? ''),
  );
  readonly selected: ReadonlySignal<string | undefined> = computed(
    () => address.value.run ?? this.tree.value.branches[0]?.run.id,
  );
  /** Whether a search or the error filter is active. An active search or filter expands collapsed branches. */
  readonly isNarrowed: ReadonlySignal<boolean> = computed(() => this.search.value !== '' || this.isErrorsOnly.value);
  /** Indices of the branches that match the search and the error filter. */
  readonly hits: ReadonlySignal<readonly number[]> = computed(() =>
    this.#indicesOf((run) => (!this.isErrorsOnly.value || hasFailed(run)) && this.isMatch(run)),
  );
  /** Indices of the visible branches. */
  readonly shown: ReadonlySignal<readonly number[]> = computed(() =>
    this.isNarrowed.value
      ? withAncestors(this.tree.value, this.hits.value)
      : openBranches(this.tree.value, this.collapsed.value).filter((index) => !this.#isFolded(index)),
  );
  /** Position of the selected run among the visible branches, or -1 if the run is not visible. */
  readonly position: ReadonlySignal<number> = computed(() => this.shown.value.indexOf(this.#selectedIndex()));
  /** Position of the selected run among the hits, or -1 if the run is not a hit. */
  readonly hitPosition: ReadonlySignal<number> = computed(() => this.hits.value.indexOf(this.#selectedIndex()));
  readonly panel: RefObject<HTMLElement | null> = { current: null };
  /** Ids of the runs whose payloads contain the search text. */
  readonly #found: Signal<LiveValue<ReadonlySet<string>> | undefined> = signal(undefined);
  readonly #stopSearch: () => void;

  constructor(id: string) {
    this.id = id;
    this.content = new LiveValue((signal) => readTrace(id, signal), { isStale: changesOfTrace(id) });
    this.summary = new LiveValue((signal) => readSummary(id, signal), { isStale: changesOfTrace(id) });
    this.#stopSearch = effect(() => {
      const text = this.search.value.trim();
      if (text.length < SEARCH_LENGTH_MIN) return;
      const found = new LiveValue((signal) => searchPayloads(id, text, signal), { delayMs: TYPING_MS });
      this.#found.value = found;
      return () => {
        found.close();
        this.#found.value = undefined;
      };
    });
  }

  close(): void {
    this.#stopSearch();
    this.content.close();
    this.summary.close();
  }

  outlineOf(id: string): TreeRun | undefined {
    const { branches, indexOf } = this.tree.value;
    return branches[indexOf.get(id) ?? -1]?.run;
  }

  /** Returns the further records of a call by the id of its head. */
  recordsOf(id: string): readonly RunOutline[] {
    return this.folded.value.records.get(id) ?? [];
  }

  isMatch(run: RunOutline): boolean {
    const text = this.search.value.trim().toLowerCase();
    if (this.#found.value?.value.value?.has(run.id)) return true;
    const fields = [run.name, run.run_type, run.status, run.model ?? '', run.error ?? '', run.id];
    return fields.some((field) => field.toLowerCase().includes(text));
  }

  /** Returns whether more payloads may contain the search text than the receiver was asked for. */
  hasMoreHits(): boolean {
    return (this.#found.value?.value.value?.size ?? 0) >= FOUND_MAX;
  }

  isCollapsed(id: string): boolean {
    return !this.isNarrowed.value && this.collapsed.value.has(id);
  }

  /** Returns the depth of a branch in the tree. Hidden steps above the branch do not count. */
  depthOf(index: number): number {
    const { branches } = this.tree.value;
    let { depth = 0, parent = -1 } = branches[index] ?? {};
    if (this.isNarrowed.value || isInternalShown.value || this.internals.value === 0) return depth;
    for (; parent !== -1; parent = branches[parent]?.parent ?? -1) if (this.#isFolded(parent)) depth -= 1;
    return depth;
  }

  select(run: string | undefined): void {
    if (run !== undefined) go({ run }, { replace: true });
  }

  selectAt(position: number): void {
    this.select(this.tree.value.branches[this.shown.value[position] ?? -1]?.run.id);
  }

  selectNextError(): void {
    this.#selectNext(this.#indicesOf(hasFailed));
  }

  selectHit(step: 'next' | 'previous'): void {
    if (step === 'next') this.#selectNext(this.hits.value);
    else this.#selectNext(this.hits.value.toReversed(), (index, selected) => index < selected);
  }

  collapse(id: string, isCollapsed: boolean): void {
    const next = new Set(this.collapsed.value);
    if (isCollapsed) next.add(id);
    else next.delete(id);
    this.collapsed.value = next;
  }

  /** Shows or hides the further records of a call, or the runs that are equal to a run. */
  toggleFolded(id: string): void {
    const next = new Set(this.unfolded.value);
    if (!next.delete(id)) next.add(id);
    this.unfolded.value = next;
  }

  collapseAll(isCollapsed: boolean): void {
    const parents = this.tree.value.branches.filter(({ end }, index) => end > index + 1 && index > 0);
    this.collapsed.value = new Set(isCollapsed ? parents.map(({ run }) => run.id) : []);
  }

  /** Returns whether a run is hidden: a further record, an equal run or an internal step. The selected run is shown. */
  #isFolded(index: number): boolean {
    const branch = this.tree.value.branches[index] as Branch;
    const { id, same_call_as: outer = '' } = branch.run;
    if (id === this.selected.value) return false;
    if (!isInternalShown.value && isInternal(branch)) return true;
    const head = this.folded.value.records.has(outer) ? outer : this.repeats.value.get(id);
    return head !== undefined && !this.unfolded.value.has(head);
  }

  #indicesOf(matches: (run: RunOutline) => boolean): number[] {
    return this.tree.value.branches.flatMap(({ run }, index) => (matches(run) ? [index] : []));
  }

  #selectedIndex(): number {
    return this.tree.value.indexOf.get(this.selected.value ?? '') ?? -1;
  }

  /** Selects the first branch of a list that is after the selected one. After the last one, starts again. */
  #selectNext(indices: readonly number[], isAfter = (index: number, selected: number) => index > selected): void {
    const selected = this.#selectedIndex();
    const next = indices.find((index) => isAfter(index, selected)) ?? indices[0] ?? -1;
    this.select(this.tree.value.branches[next]?.run.id);
  }
}

/** Returns an empty list if the receiver does not have the trace. */
async function readTrace(id: string, signal: AbortSignal): Promise<readonly RunOutline[]> {
  try {
    return (await api.trace(id, signal)).items;
  } catch (error) {
    if (error instanceof ReceiverError && error.status === 404) return [];
    throw error;
  }
}

async function readSummary(id: string, signal: AbortSignal): Promise<TraceSummary | undefined> {
  if (saved !== undefined) return saved.summary;
  const query = new URLSearchParams({ filter: condition('trace', id), limit: '1' });
  return (await api.traces(query, signal)).items[0];
}

async function searchPayloads(traceId: string, text: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
  if (saved !== undefined) return saved.search(text);
  const query = new URLSearchParams({ trace_id: traceId, filter: searchWords(text), limit: `${FOUND_MAX}` });
  return new Set((await api.runs(query, signal)).items.map((run) => run.id));
}

function hasFailed({ status }: RunOutline): boolean {
  return status === 'error' || status === 'interrupted' || status === 'incomplete';
}
