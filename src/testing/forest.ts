import type { RunRecord } from '../run/record.ts';

/** What has to be known of a run to find its place: its order too, where the runs do not come in it. */
export type Linked = Pick<RunRecord, 'id' | 'parent_run_id'> & Partial<Pick<RunRecord, 'dotted_order'>>;

/** A run with those below it, in the order in which they started. */
export interface Tree<Run extends Linked = RunRecord> {
  readonly run: Run;
  readonly children: Tree<Run>[];
  /** The run names a parent that is not among the runs, or that stands below the run itself. */
  readonly isOrphan: boolean;
}

/** The runs as trees. Each run is in exactly one place, whatever parents they name; orphans stand at the root. */
export function forestOf<Run extends Linked>(runs: readonly Run[]): Tree<Run>[] {
  const sorted = [...runs].sort(byOrder);
  const byId = new Map(sorted.map((run) => [run.id, run]));
  const childrenOf = new Map<string | undefined, Run[]>();
  for (const run of byId.values()) {
    const parentId = byId.has(run.parent_run_id ?? '') ? run.parent_run_id : undefined;
    const siblings = childrenOf.get(parentId);
    if (siblings === undefined) childrenOf.set(parentId, [run]);
    else siblings.push(run);
  }
  const placed = new Set<string>();
  const plant = (run: Run): Tree<Run> => treeFrom(run, childrenOf, placed);
  const roots = (childrenOf.get(undefined) ?? []).map(plant);
  // What no root leads to goes in a ring, or hangs on one.
  const rings = [...byId.values()].flatMap((run) => (placed.has(run.id) ? [] : [plant(run)]));
  return [...roots, ...rings];
}

/** Each node with how deep it stands, parents before children. Not recursive either. */
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

function byOrder({ dotted_order: a = '' }: Linked, { dotted_order: b = '' }: Linked): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Not recursive: a chain of runs may be longer than the stack is deep. */
function treeFrom<Run extends Linked>(
  run: Run,
  childrenOf: ReadonlyMap<string | undefined, readonly Run[]>,
  placed: Set<string>,
): Tree<Run> {
  const root: Tree<Run> = { run, children: [], isOrphan: run.parent_run_id !== undefined };
  placed.add(run.id);
  const pending = [root];
  for (let tree = pending.pop(); tree !== undefined; tree = pending.pop()) {
    for (const child of childrenOf.get(tree.run.id) ?? []) {
      if (placed.has(child.id)) continue;
      placed.add(child.id);
      const below: Tree<Run> = { run: child, children: [], isOrphan: false };
      tree.children.push(below);
      pending.push(below);
    }
  }
  return root;
}
