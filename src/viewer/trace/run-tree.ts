import type { RunOutline, Usage } from '../../receiver/store/run-view.ts';
import { millisecondsAt } from '../elements/figures.ts';

/** A run in its place in the tree. */
export interface Branch {
  readonly run: RunOutline;
  readonly depth: number;
  /** Index of the parent among the branches; -1 at the root. */
  readonly parent: number;
  /** Index of the first branch that is not below it. */
  readonly end: number;
  /** It names a parent that is not there. */
  readonly isOrphan: boolean;
  readonly startMs: number;
  /** Undefined while it has not ended. */
  readonly endMs: number | undefined;
}

/** The runs of a trace, depth first, and the time that they cover as far as it is known. */
export interface RunTree {
  readonly branches: readonly Branch[];
  readonly indexOf: ReadonlyMap<string, number>;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Returns the usages included in sums. As in the receiver, a run that is no model call counts only if no run below it
 * has usage.
 */
export function countedUsages({ branches }: RunTree): Usage[] {
  // Number of branches with usage before each index.
  const before = [0];
  for (const { run } of branches) before.push((before.at(-1) ?? 0) + +(run.usage !== undefined));
  return branches.flatMap(({ run: { run_type, usage }, end }, index) => {
    const isModelCall = run_type === 'llm' || run_type === 'embedding';
    return usage !== undefined && (isModelCall || before[end] === before[index + 1]) ? [usage] : [];
  });
}

/** Each run is looked at a fixed number of times. Runs that are their own ancestors stand at the root, the first of them as an orphan. */
export function treeOf(runs: readonly RunOutline[]): RunTree {
  const positions = new Map(runs.map((run, position) => [run.id, position]));
  const parents = runs.map(({ parent_run_id }) =>
    parent_run_id === undefined ? -1 : (positions.get(parent_run_id) ?? -1),
  );
  const children = childrenOf(parents);
  const branches: Mutable<Branch>[] = [];
  const indexOf = new Map<string, number>();
  const grow = (root: number, isOrphan: boolean): void => {
    // A stack of our own, as traces may be deeper than the one of the engine.
    const stack = [{ position: root, parent: -1, depth: 0 }];
    while (stack.length > 0) {
      const { position, parent, depth } = stack.pop() as (typeof stack)[number];
      const run = runs[position] as RunOutline;
      if (indexOf.has(run.id)) continue;
      const index = branches.length;
      indexOf.set(run.id, index);
      branches.push({
        run,
        depth,
        parent,
        end: index + 1,
        isOrphan: isOrphan && parent === -1,
        startMs: millisecondsAt(run.start_time),
        endMs: run.end_time === undefined ? undefined : millisecondsAt(run.end_time),
      });
      const below = children[position] ?? [];
      for (let at = below.length - 1; at >= 0; at--) {
        stack.push({ position: below[at] as number, parent: index, depth: depth + 1 });
      }
    }
  };
  parents.forEach((parent, position) => {
    if (parent === -1) grow(position, runs[position]?.parent_run_id !== undefined);
  });
  if (branches.length < runs.length) {
    for (const [position, run] of runs.entries()) if (!indexOf.has(run.id)) grow(position, true);
  }
  closeEnds(branches);
  return { branches, indexOf, ...spanOf(branches) };
}

/** Indices of the branches that are shown: none below one that is collapsed. */
export function openBranches(tree: RunTree, collapsed: ReadonlySet<string>): number[] {
  const { branches } = tree;
  const shown: number[] = [];
  for (let index = 0; index < branches.length; ) {
    const branch = branches[index] as Branch;
    shown.push(index);
    index = collapsed.has(branch.run.id) ? branch.end : index + 1;
  }
  return shown;
}

/** Indices of the branches that match, and of all above them. */
export function matchingBranches(tree: RunTree, matches: (run: RunOutline) => boolean): number[] {
  const { branches } = tree;
  const kept = new Uint8Array(branches.length);
  for (let index = 0; index < branches.length; index++) {
    if (!matches((branches[index] as Branch).run)) continue;
    for (let at = index; at !== -1 && kept[at] === 0; at = (branches[at] as Branch).parent) kept[at] = 1;
  }
  return [...kept.keys()].filter((index) => kept[index] === 1);
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

function childrenOf(parents: readonly number[]): number[][] {
  const children: number[][] = [];
  for (const [position, parent] of parents.entries()) {
    if (parent === -1) continue;
    const siblings = children[parent];
    if (siblings === undefined) children[parent] = [position];
    else siblings.push(position);
  }
  return children;
}

/** From the last branch to the first, as what is below has its end by then. */
function closeEnds(branches: readonly Mutable<Branch>[]): void {
  for (let index = branches.length - 1; index >= 0; index--) {
    const { parent, end } = branches[index] as Branch;
    const above = branches[parent];
    if (above !== undefined && above.end < end) above.end = end;
  }
}

function spanOf(branches: readonly Branch[]): { startMs: number; endMs: number } {
  let startMs = Number.POSITIVE_INFINITY;
  let endMs = Number.NEGATIVE_INFINITY;
  for (const branch of branches) {
    startMs = Math.min(startMs, branch.startMs);
    endMs = Math.max(endMs, branch.endMs ?? branch.startMs);
  }
  return branches.length === 0 ? { startMs: 0, endMs: 0 } : { startMs, endMs };
}
