import type { ComponentChildren, JSX, RefObject } from 'preact';

export interface TableColumn<Item> {
  readonly name: string;
  /** `optional` columns are hidden on a narrow screen. */
  readonly class?: 'number' | 'number optional' | 'clip' | 'clip optional' | 'wide optional' | 'optional';
  readonly cell: (item: Item, nowMs: number) => ComponentChildren;
}

/** A scrolled table. The first column names the row. `children` follow the table. */
export function DataTable<Item>(props: {
  label: string;
  columns: readonly TableColumn<Item>[];
  items: readonly Item[];
  keyOf: (item: Item) => string;
  nowMs?: number;
  element?: RefObject<HTMLElement | null>;
  children: ComponentChildren;
}): JSX.Element {
  const { label, columns, items, keyOf, nowMs = 0, element = null, children } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
    <section ref={element} class="groups threads scroll" aria-label={label} tabIndex={0} data-own-arrows>
      <table>
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
            <tr key={keyOf(item)}>
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
      {children}
    </section>
  );
}
