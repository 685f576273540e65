import { dottedOrder } from '../../../run/time.ts';

/** Maximum depth of a derived `dotted_order`. A deeper run becomes a sibling of its ancestor at this level. */
const LEVELS_MAX = 64;

export interface TreeNode {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly startUs: number;
  /** The `dotted_order` in the run's messages, if any. */
  readonly order: string | undefined;
}

/**
 * Returns the `dotted_order` of each run in a trace. If a run's messages contain no `dotted_order`, derives one from
 * the parent's `dotted_order`. A run without a parent becomes a root. If parents form a cycle, the run that started first
 * becomes a root.
 */
export function ordersOf(runs: readonly TreeNode[]): Map<string, string> {
  const nodes = new Map(runs.map((run) => [run.id, run]));
  const orders = new Map<string, string>();
  for (const run of runs) {
    const path = new Set<TreeNode>();
    let above: TreeNode | undefined = run;
    while (above !== undefined && !orders.has(above.id) && !path.has(above)) {
      path.add(above);
      above = above.order === undefined ? nodes.get(above.parentId ?? '') : undefined;
    }
    const line = [...path];
    if (above !== undefined && path.has(above)) line.push(...opened(line.splice(line.indexOf(above))));
    for (const node of line.reverse()) {
      const parentOrder = node.order === undefined ? orders.get(node.parentId ?? '') : undefined;
      orders.set(node.id, node.order ?? derivedOrder(parentOrder, node));
    }
  }
  return orders;
}

/** Opens a cycle, in which each run is followed by its parent, so that the run that started first comes last. */
function opened(cycle: readonly TreeNode[]): TreeNode[] {
  const first = cycle.reduce((a, b) => (b.startUs < a.startUs || (b.startUs === a.startUs && b.id < a.id) ? b : a));
  const end = cycle.indexOf(first) + 1;
  return [...cycle.slice(end), ...cycle.slice(0, end)];
}

function derivedOrder(parentOrder: string | undefined, { id, startUs }: TreeNode): string {
  if (parentOrder === undefined || levelsOf(parentOrder) < LEVELS_MAX) return dottedOrder(parentOrder, startUs, id);
  return dottedOrder(parentOrder.slice(0, parentOrder.lastIndexOf('.')), startUs, id);
}

function levelsOf(order: string): number {
  let levels = 1;
  for (let at = order.indexOf('.'); at !== -1; at = order.indexOf('.', at + 1)) levels += 1;
  return levels;
}

/** Returns the ids above one of the keys of `parents`, the nearest first, at most `max`. Parents may form a cycle. */
export function idsAbove(parents: ReadonlyMap<string, string>, id: string, max: number): string[] {
  const ids: string[] = [];
  for (let at = parents.get(id) ?? ''; parents.has(at) && ids.length < max; at = parents.get(at) ?? '') ids.push(at);
  return ids;
}

/** Sorts runs by `dotted_order`, parents before children. */
export function inOrder<Run extends TreeNode>(runs: readonly Run[]): { run: Run; order: string }[] {
  const orders = ordersOf(runs);
  return runs
    .map((run) => ({ run, order: orders.get(run.id) ?? '' }))
    .sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
}
