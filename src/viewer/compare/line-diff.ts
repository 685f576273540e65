/** A line of both sides, or of one. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Lines that may differ before the rest counts as replaced: the work grows with its square. */
const EDITS_MAX = 1_500;

/** The shortest way from one list of lines to another (Myers), what both begin and end with aside. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let endBefore = before.length;
  let endAfter = after.length;
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) {
    endBefore--;
    endAfter--;
  }
  return [
    ...lines('same', before.slice(0, start)),
    ...middle(before.slice(start, endBefore), after.slice(start, endAfter)),
    ...lines('same', before.slice(endBefore)),
  ];
}

function lines(kind: DiffLine['kind'], texts: readonly string[]): DiffLine[] {
  return texts.map((text) => ({ kind, text }));
}

/**
 * `furthest[d]` holds for each diagonal k = x − y, at index k + d, how far along `before` a path of d edits gets. The path is
 * read back from the last of them.
 */
function middle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const furthest: Int32Array[] = [];
  const bound = Math.min(EDITS_MAX, before.length + after.length);
  for (let edits = 0; edits <= bound; edits++) {
    const reached = new Int32Array(2 * edits + 1);
    furthest.push(reached);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = startOf(furthest, edits, diagonal);
      let y = x - diagonal;
      while (x < before.length && y < after.length && before[x] === after[y]) {
        x++;
        y++;
      }
      reached[diagonal + edits] = x;
      if (x >= before.length && y >= after.length) return traced(furthest, before, after);
    }
  }
  return [...lines('removed', before), ...lines('added', after)];
}

/** Where a path of so many edits arrives on a diagonal, from the better of its neighbours. */
function startOf(furthest: readonly Int32Array[], edits: number, diagonal: number): number {
  if (edits === 0) return 0;
  const last = furthest[edits - 1] as Int32Array;
  const fromAdded = reachedOn(last, edits - 1, diagonal + 1);
  const fromRemoved = reachedOn(last, edits - 1, diagonal - 1) + 1;
  return isAdded(diagonal, edits, fromAdded, fromRemoved - 1) ? fromAdded : fromRemoved;
}

function isAdded(diagonal: number, edits: number, above: number, left: number): boolean {
  return diagonal === -edits || (diagonal !== edits && left < above);
}

function reachedOn(reached: Int32Array, edits: number, diagonal: number): number {
  return reached[diagonal + edits] ?? -1;
}

function traced(furthest: readonly Int32Array[], before: readonly string[], after: readonly string[]): DiffLine[] {
  const found: DiffLine[] = [];
  let x = before.length;
  let y = after.length;
  for (let edits = furthest.length - 1; edits >= 0; edits--) {
    const diagonal = x - y;
    const last = edits === 0 ? undefined : (furthest[edits - 1] as Int32Array);
    const above = last === undefined ? 0 : reachedOn(last, edits - 1, diagonal + 1);
    const left = last === undefined ? 0 : reachedOn(last, edits - 1, diagonal - 1);
    const added = last !== undefined && isAdded(diagonal, edits, above, left);
    const fromX = last === undefined ? 0 : added ? above : left;
    const fromY = last === undefined ? 0 : fromX - (added ? diagonal + 1 : diagonal - 1);
    const firstX = last === undefined ? 0 : added ? fromX : fromX + 1;
    while (x > firstX) {
      x--;
      y--;
      found.push({ kind: 'same', text: before[x] as string });
    }
    if (last === undefined) break;
    if (added) found.push({ kind: 'added', text: after[fromY] as string });
    else found.push({ kind: 'removed', text: before[fromX] as string });
    x = fromX;
    y = fromY;
  }
  return found.reverse();
}
