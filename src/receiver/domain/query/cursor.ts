import { RunspanError } from '../../../base/errors.ts';
import { fieldsOf, listOf, parsedJson } from '../../../payload/fields.ts';
import type { ListPage, ListQuery } from './query.ts';

/** An item's position in a sorted list. Items with equal values keep the order in which they were stored. */
interface Position {
  /** Value by which the item is sorted. Items without a value have null and come last. */
  readonly value: number | null;
  readonly n: number;
}

export const PAGE_ITEMS = 50;

export function cursorOf({ value, n }: Position): string {
  return Buffer.from(JSON.stringify([value, n])).toString('base64url');
}

/** Decodes a cursor. Throws a RunspanError if the cursor is invalid. */
export function positionOf(cursor: string): Position {
  const [value, n] = listOf(decoded(cursor));
  if ((value === null || Number.isFinite(value)) && Number.isSafeInteger(n)) {
    return { value: value as number | null, n: n as number };
  }
  throw new RunspanError('RUNSPAN_INVALID_OPTION', INVALID);
}

const INVALID = 'Expected `cursor` to be the `next` value of the previous page';

function decoded(cursor: string): unknown {
  return parsedJson(Buffer.from(cursor, 'base64url').toString());
}

/** Returns a page of items that are sorted by their names. Throws a RunspanError if the cursor is invalid. */
export function pageByName<Item extends { readonly name: string }>(
  sorted: readonly Item[],
  { cursor, limit = PAGE_ITEMS }: Pick<ListQuery, 'cursor' | 'limit'>,
): ListPage<Item> {
  const after = cursor === undefined ? '' : fieldsOf(decoded(cursor)).name;
  if (typeof after !== 'string') throw new RunspanError('RUNSPAN_INVALID_OPTION', INVALID);
  const left = sorted.filter(({ name }) => cursor === undefined || name > after);
  const items = left.slice(0, limit);
  const last = JSON.stringify({ name: items.at(-1)?.name });
  return left.length > limit ? { items, next: Buffer.from(last).toString('base64url') } : { items };
}

/** Returns the page with the first items of a list. `found` must have one more if the list has more. */
export function firstPage<Item>(
  found: readonly Item[],
  limit: number,
  placeOf: (item: Item) => Position,
): ListPage<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return found.length > limit && last !== undefined ? { items, next: cursorOf(placeOf(last)) } : { items };
}

export interface Listed<Item> extends Position {
  readonly item: Item;
}

export function sortedItems<Item>(items: readonly Listed<Item>[], order: ListQuery['order']): Listed<Item>[] {
  return items.toSorted((a, b) => compare(a, b, order));
}

export function pageOf<Item>(
  sorted: readonly Listed<Item>[],
  { order, cursor, limit = PAGE_ITEMS }: Pick<ListQuery, 'order' | 'cursor' | 'limit'>,
): ListPage<Item> {
  const after = cursor === undefined ? undefined : positionOf(cursor);
  const start = sorted.findIndex((item) => after === undefined || compare(item, after, order) > 0);
  const found = start === -1 ? [] : sorted.slice(start, start + limit + 1);
  const { items, ...next } = firstPage(found, limit, (item) => item);
  return { items: items.map(({ item }) => item), ...next };
}

function compare(a: Position, b: Position, order: ListQuery['order'] = 'descending'): number {
  const sign = order === 'descending' ? -1 : 1;
  if (a.value === b.value) return sign * (a.n - b.n);
  if (a.value === null) return 1;
  if (b.value === null) return -1;
  return sign * (a.value - b.value);
}
