import type { Signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { ThreadSummary } from '../../receiver/domain/run-view.ts';
import { cachedShare, costFigure, countFigure, orDash } from '../elements/figures.ts';
import { useFocus } from '../elements/keys.ts';
import { useOpenRows } from '../elements/rows.tsx';
import { Table, type TableColumn, type TableProps } from '../elements/table.tsx';
import { feedbackChips } from '../list/columns.tsx';
import { useRestoredScroll } from '../list/run-list.ts';

const ROW_HEIGHT = 36;

interface ScrolledTableProps<Item> extends Omit<TableProps<Item>, 'rows'> {
  label: string;
  /** The list whose selected row and scroll position are kept. */
  list: { readonly selected: Signal<string | undefined>; scrollTop: number };
  open: (item: Item) => void;
  children: ComponentChildren;
}

export const USAGE_COLUMNS: readonly TableColumn<Pick<ThreadSummary, 'usage' | 'feedback'>>[] = [
  { name: 'Tokens', class: 'number optional', cell: ({ usage }) => orDash(usage?.total_tokens, countFigure) },
  { name: 'Cost', class: 'number optional', cell: ({ usage }) => orDash(usage?.total_cost, costFigure) },
  { name: 'Cached', class: 'number optional', cell: ({ usage }) => cachedShare(usage) ?? '–' },
  { name: 'Feedback', class: 'optional', cell: ({ feedback }) => feedbackChips(feedback) },
];

/** A view with a table whose rows open other views. `children` follow the table. */
export function ScrolledTable<Item>(props: ScrolledTableProps<Item>): JSX.Element {
  const { label, list, open, children, ...table } = props;
  const { items, keyOf: idOf } = table;
  const element = useRef<HTMLElement>(null);
  const grid = useRef<HTMLTableElement>(null);
  useRestoredScroll(element, list);
  useFocus(grid);
  const rows = useOpenRows({ element, items, idOf, selected: list.selected, rowHeight: ROW_HEIGHT, open });
  return (
    <section ref={element} class="groups threads scroll" aria-label={label}>
      <h1 class="unseen">{label}</h1>
      <Table {...table} rows={{ ...rows, grid }} />
      {children}
    </section>
  );
}
