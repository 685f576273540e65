import type { JSX } from 'preact';
import type { Column } from './columns.tsx';
import type { Line } from './run-list.ts';

export function ListRow({
  line,
  columns,
  row,
  nowMs,
  isSelected,
  open,
}: {
  line: Line;
  columns: readonly Column[];
  row: number;
  nowMs: number;
  isSelected: boolean;
  open: (line: Line) => void;
}): JSX.Element {
  return (
    <div
      id={`line-${line.id}`}
      class={isSelected ? 'list-row selected' : 'list-row'}
      role="row"
      aria-rowindex={row}
      aria-selected={isSelected}
      onClick={(event) => {
        if (!(event.target instanceof Element) || event.target.closest('a') === null) open(line);
      }}
    >
      {columns.map((column) => (
        <span key={column.id} role="gridcell" class={classOf(column)} title={column.title?.(line)}>
          {column.cell(line, nowMs)}
        </span>
      ))}
    </div>
  );
}

export function classOf(column: Column): string {
  return `column-${column.id} ${column.class ?? ''}`;
}
