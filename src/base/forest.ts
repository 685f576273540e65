/** The fields that determine a run's position in a tree. */
export interface Linked {
  readonly id: string;
  readonly parent_run_id?: string | undefined;
  readonly dotted_order?: string;
}

/** A run with its child runs, sorted by start time. */
export interface Tree<Run extends Linked> {
  readonly run: Run;
  readonly children: Tree<Run>[];
  /** Whether the run's parent is missing or is a descendant of the run. */
  readonly isOrphan: boolean;
}

/**
 * Builds trees of runs. Each run occurs exactly once, even if parents form a cycle. If a run's parent is missing, the
 * run becomes a root. Not recursive.
 */
export function forestOf<Run extends Linked>(runs: readonly Run[]): Tree<Run>[] {
  const sorted = [...runs].sort((a, b) => compareText(a.dotted_order ?? '', b.dotted_order ?? ''));
  const trees = new Map<string, Tree<Run>>(sorted.map((run) => [run.id, { run, children: [], isOrphan: false }]));
  const parentOf = ({ run }: Tree<Run>): Tree<Run> | undefined => trees.get(run.parent_run_id ?? '');
  const roots = [...trees.values()].filter((tree) => parentOf(tree) === undefined);
  const placed = new Set<Tree<Run>>();
  const place = (root: Tree<Run>): Tree<Run> => {
    for (const [tree] of depthFirst([root])) placed.add(tree);
    return root.run.parent_run_id === undefined ? root : { ...root, isOrphan: true };
  };
  for (const tree of trees.values()) parentOf(tree)?.children.push(tree);
  const forest = roots.map(place);
  for (const tree of trees.values()) {
    if (placed.has(tree)) continue;
    // A run that is part of a parent cycle, or below one, becomes a root.
    const siblings = parentOf(tree)?.children ?? [];
    siblings.splice(siblings.indexOf(tree), 1);
    forest.push(place(tree));
  }
  return forest;
}

/** Returns the root run of a trace, or the first run if the root run has not arrived. */
export function rootIn<Run extends Linked>(runs: readonly Run[]): Run | undefined {
  return runs.find(({ parent_run_id: parent }) => parent === undefined) ?? runs[0];
}

/** Returns the ancestors of a run and the run, the root run first. */
export function pathTo<Run extends Linked>(run: Run, byId: ReadonlyMap<string, Run>): Run[] {
  // The set ends the loop if the parents form a cycle.
  const path = new Set<Run>();
  for (let at: Run | undefined = run; at !== undefined && !path.has(at); ) {
    path.add(at);
    at = byId.get(at.parent_run_id ?? '');
  }
  return [...path].reverse();
}

/** Returns the names of a path, for example `answer > search`. */
export function pathText(path: readonly { readonly name: string }[]): string {
  return path.map(({ name }) => name).join(' > ');
}

/** Yields each node with its depth, parents before children. Not recursive. */
export function* depthFirst<Node extends { readonly children?: readonly Node[] }>(
  roots: readonly Node[],
): Generator<readonly [node: Node, depth: number]> {
  const pending = roots.map((node) => ({ node, depth: 0 })).reverse();
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, depth } = next;
    yield [node, depth];
    for (const child of node.children?.toReversed() ?? []) pending.push({ node: child, depth: depth + 1 });
  }
}

/** Compares two strings by code units, because locale order differs between machines. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
