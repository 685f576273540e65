import type { ComponentChildren, JSX, RefObject } from 'preact';
import { Table, type TableProps } from '../elements/table.tsx';

interface ScrolledTableProps<Item> extends TableProps<Item> {
  label: string;
  element?: RefObject<HTMLElement | null>;
  children: ComponentChildren;
}

/** A view with a table. `children` follow the table. */
export function ScrolledTable<Item>(props: ScrolledTableProps<Item>): JSX.Element {
  const { label, element = null, children, ...table } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
    <section ref={element} class="groups threads scroll" aria-label={label} tabIndex={0} data-own-arrows>
      <Table {...table} />
      {children}
    </section>
  );
}
