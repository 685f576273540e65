import { depthFirst, forestOf } from '../../base/forest.ts';
import type { RunOutline } from '../../receiver/domain/run-view.ts';
import { type FoldedRuns, isLeftOut } from '../../receiver/domain/trace/call-records.ts';
import type { TreeRun } from '../../receiver/domain/trace/derived-tools.ts';
import { millisecondsAt, useNow } from '../elements/figures.ts';

/** A run in the tree of a trace. */
export interface Branch {
  readonly run: TreeRun;
  readonly depth: number;
  /** Index of the parent branch, or -1 if the branch is a root. */
  readonly parent: number;
  /** Index of the branch after the last descendant. */
  readonly end: number;
  /** Whether the run's parent is missing. */
  readonly isOrphan: boolean;
  readonly startMs: number;
  /** End time in milliseconds. Undefined while the run is pending. */
  readonly endMs: number | undefined;
  /** Tokens and cost of the run and of all runs below it. */
  readonly tokens: number;
  readonly dollars: number;
}

/** The runs of a trace in depth-first order, and their time range. */
export interface RunTree {
  readonly branches: readonly Branch[];
  readonly indexOf: ReadonlyMap<string, number>;
  readonly startMs: number;
  readonly endMs: number;
  readonly hasOpenRuns: boolean;
  readonly depthMax: number;
}

/** Time range of the horizontal axis for all bars in a trace. */
export interface Axis {
  readonly startMs: number;
  readonly lengthMs: number;
  readonly nowMs: number;
}

/** Time after the last known start or end at which the bars of pending runs stop growing, in milliseconds. */
const IDLE_MS = 600_000;
const TICK_MS = 250;

/** If parents form a cycle, one run of it becomes a root and counts as an orphan. */
export function treeOf(runs: readonly TreeRun[]): RunTree {
  const branches: Mutable<Branch>[] = [];
  const indexOf = new Map<string, number>();
  for (const [{ run, isOrphan }, depth] of depthFirst(forestOf(runs))) {
    const usage = run.usage_counts === false ? undefined : run.usage;
    const index = branches.length;
    indexOf.set(run.id, index);
    branches.push({
      run,
      depth,
      parent: depth === 0 ? -1 : (indexOf.get(run.parent_run_id ?? '') ?? -1),
      end: index + 1,
      isOrphan,
      startMs: millisecondsAt(run.start_time),
      endMs: run.end_time === undefined ? undefined : millisecondsAt(run.end_time),
      tokens: usage?.total_tokens ?? 0,
      dollars: usage?.total_cost ?? 0,
    });
  }
  addUp(branches);
  return { branches, indexOf, ...rangeOf(branches) };
}

/** Returns the runs of a trace, with the further records of each call directly below its head. */
export function unfolded({ runs, records }: FoldedRuns): readonly RunOutline[] {
  if (records.size === 0) return runs;
  return runs.flatMap((run) => [
    run,
    ...(records.get(run.id) ?? []).map((record) => ({ ...record, parent_run_id: run.id })),
  ]);
}

/** Minimum number of equal runs that are folded. */
const REPEATS_MIN = 10;

/** Returns the first of equal runs by the id of each further one. Equal runs have no children and follow each other. */
export function repeatsIn({ branches }: RunTree): Map<string, string> {
  const heads = new Map<string, string>();
  for (let first = 0, end = 1; first < branches.length; first = end, end += 1) {
    const key = repeatKey(branches[first] as Branch, first);
    while (key !== undefined && end < branches.length && repeatKey(branches[end] as Branch, end) === key) end += 1;
    if (end - first < REPEATS_MIN) continue;
    const head = branches[first]?.run.id ?? '';
    for (const { run } of branches.slice(first + 1, end)) heads.set(run.id, head);
  }
  return heads;
}

/** Returns a text that is the same for equal runs. Only runs that succeeded and have no children can be equal. */
function repeatKey({ run, parent, end }: Branch, index: number): string | undefined {
  const isAlone = run.same_call_as === undefined && run.derived === undefined && end === index + 1;
  if (parent === -1 || run.status !== 'success' || !isAlone) return undefined;
  return JSON.stringify([parent, run.name, run.run_type, run.model]);
}

/** What a run does, which decides its colour and where its time is counted. */
export type Kind = 'model' | 'tool' | 'other';

export function runKind({ run_type: type }: RunOutline): Kind {
  if (type === 'llm' || type === 'embedding') return 'model';
  return type === 'tool' || type === 'retriever' ? 'tool' : 'other';
}

/** Returns the message of the deepest cause in the headline of an error, without the name of its class. */
export function innermostMessage(headline: string): string {
  return (headline.split(' ← ').at(-1) ?? '').replace(/^[A-Z][\w.$]*: (?=\S)/, '');
}

/** Returns the indices of the root, of its longest child, of the longest child of that run, and so on. */
export function slowestPath({ branches }: RunTree): ReadonlySet<number> {
  const path = new Set<number>();
  for (let at = 0; branches.length > 1 && at !== -1; ) {
    path.add(at);
    const { end = 0 } = branches[at] ?? {};
    let longest = -1;
    for (let child = at + 1; child < end; child = branches[child]?.end ?? end) {
      if (lengthMsOf(branches[child]) > lengthMsOf(branches[longest])) longest = child;
    }
    at = longest;
  }
  return path;
}

/** Returns the duration of a run, or -1 if it is unknown, as for a derived tool. A pending run has no end. */
export function lengthMsOf(branch: Branch | undefined): number {
  return branch === undefined || branch.run.derived !== undefined
    ? -1
    : (branch.endMs ?? Number.POSITIVE_INFINITY) - branch.startMs;
}

/** Returns whether a framework has added a run for itself. A root, and a run that did not succeed, never count. */
export function isInternal({ run, parent }: Branch): boolean {
  return isLeftOut(run, parent !== -1);
}

/** Returns the range from the first start to the last end, or to the current time while runs are pending. */
export function useAxis({ startMs, endMs, hasOpenRuns }: RunTree): Axis {
  const nowMs = useNow(hasOpenRuns, TICK_MS);
  const isGrowing = hasOpenRuns && nowMs > endMs && nowMs - endMs < IDLE_MS;
  return { startMs, nowMs, lengthMs: Math.max(0.001, (isGrowing ? nowMs : endMs) - startMs) };
}

export function openBranches({ branches }: RunTree, collapsed: ReadonlySet<string>): number[] {
  const shown: number[] = [];
  for (let index = 0; index < branches.length; ) {
    const branch = branches[index] as Branch;
    shown.push(index);
    index = collapsed.has(branch.run.id) ? branch.end : index + 1;
  }
  return shown;
}

export function withAncestors({ branches }: RunTree, indices: readonly number[]): number[] {
  const kept = new Uint8Array(branches.length);
  for (const index of indices) {
    for (let at = index; at !== -1 && kept[at] === 0; at = (branches[at] as Branch).parent) kept[at] = 1;
  }
  return [...kept.keys()].filter((index) => kept[index] === 1);
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

/** Sets the end and the totals of each branch. Iterates backwards, so that a branch is done before its parent. */
function addUp(branches: readonly Mutable<Branch>[]): void {
  for (const { parent, end, tokens, dollars } of branches.toReversed()) {
    const above = branches[parent];
    if (above === undefined) continue;
    above.end = Math.max(above.end, end);
    above.tokens += tokens;
    above.dollars += dollars;
  }
}

function rangeOf(branches: readonly Branch[]): Omit<RunTree, 'branches' | 'indexOf'> {
  if (branches.length === 0) return { startMs: 0, endMs: 0, hasOpenRuns: false, depthMax: 0 };
  let startMs = Number.POSITIVE_INFINITY;
  let endMs = Number.NEGATIVE_INFINITY;
  let hasOpenRuns = false;
  let depthMax = 0;
  for (const branch of branches) {
    startMs = Math.min(startMs, branch.startMs);
    endMs = Math.max(endMs, branch.endMs ?? branch.startMs);
    hasOpenRuns ||= branch.run.status === 'pending';
    depthMax = Math.max(depthMax, branch.depth);
  }
  return { startMs, endMs, hasOpenRuns, depthMax };
}
