import { compare, cursorOf, type Position, positionOf } from '../query/cursor.ts';
import type { ListQuery, Page } from '../query/query.ts';

const ITEMS = 50;

/** The page of a list that a query asks for, of all its items in any order. Time goes with their number alone. */
export function pageOf<Item>(
  items: Iterable<Item>,
  positionOfItem: (item: Item) => Position,
  { order = 'descending', cursor, limit = ITEMS }: ListQuery,
): Page<Item> {
  const isDescending = order === 'descending';
  const after = cursor === undefined ? undefined : positionOf(cursor);
  // One more than asked for says whether there is a next page.
  const first: { item: Item; position: Position }[] = [];
  for (const item of items) {
    const position = positionOfItem(item);
    if (after !== undefined && compare(position, after, isDescending) <= 0) continue;
    const last = first.at(-1);
    if (first.length > limit && last !== undefined && compare(position, last.position, isDescending) >= 0) continue;
    first.splice(placeIn(first, position, isDescending), 0, { item, position });
    if (first.length > limit + 1) first.pop();
  }
  const shown = first.slice(0, limit);
  const last = shown.at(-1);
  const page: Page<Item> = { items: shown.map(({ item }) => item) };
  if (first.length > limit && last !== undefined) page.next = cursorOf(last.position);
  return page;
}

/** Where in the sorted list an item belongs. */
function placeIn(sorted: readonly { position: Position }[], position: Position, isDescending: boolean): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const there = sorted[middle]?.position;
    if (there !== undefined && compare(there, position, isDescending) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
