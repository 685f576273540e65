import type { ComponentChildren, JSX, RefObject } from 'preact';
import type { OpenRows } from './rows.tsx';

export interface TableColumn<Item> {
  readonly name: string;
  /** `optional` columns are hidden on a narrow screen. */
  readonly class?: 'number' | 'number optional' | 'clip' | 'clip optional' | 'wide optional' | 'optional';
  readonly cell: (item: Item, nowMs: number) => ComponentChildren;
}

export interface TableProps<Item> {
  columns: readonly TableColumn<Item>[];
  items: readonly Item[];
  keyOf: (item: Item) => string;
  nowMs?: number;
  /** Rows that open other views, and the element that takes the focus. */
  rows?: OpenRows<Item> & { readonly grid: RefObject<HTMLTableElement | null> };
}

/** A table with a row for each item. The first column names the row. */
export function Table<Item>({ columns, items, keyOf, nowMs = 0, rows }: TableProps<Item>): JSX.Element {
  const grid = rows && { role: 'grid' as const, tabIndex: 0, ref: rows.grid, 'aria-activedescendant': rows.activeId };
  return (
    <table {...grid}>
      <thead class="pinned">
        <tr>
          {columns.map(({ name, class: names }) => (
            <th key={name} scope="col" class={names}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)} {...rows?.attributesOf(item)}>
            {columns.map(({ name, class: names, cell }, index) =>
              index === 0 ? (
                <th key={name} scope="row" class={names}>
                  {cell(item, nowMs)}
                </th>
              ) : (
                <td key={name} class={names}>
                  {cell(item, nowMs)}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
