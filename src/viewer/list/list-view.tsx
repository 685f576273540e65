import type { JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SortKey } from '../../receiver/domain/query/query.ts';
import { api } from '../data/api.ts';
import { condition, queryOf, withTerms } from '../data/filter.ts';
import { address, compare, go } from '../data/navigation.ts';
import { columnIds } from '../data/preferences.ts';
import { Button, Link, Problem } from '../elements/controls.tsx';
import { costFigure, countFigure, plural, useNow } from '../elements/figures.ts';
import { Icon, OUTCOMES, StatusMark } from '../elements/icon.tsx';
import { useFocus, useKeys } from '../elements/keys.ts';
import { isNarrow, type OpenRows, Rows, useOpenRows, useRowWindow } from '../elements/rows.tsx';
import { type Column, type ListKind, shownColumns, usageOf } from './columns.tsx';
import { EmptyState } from './empty-state.tsx';
import { PickBar, pickColumn, pickKeys } from './picked.tsx';
import { type Line, RunList, shownOutcome, useRestoredScroll, useRunList } from './run-list.ts';

const ROW_HEIGHT = 36;
/** Height of a row with three lines, on a narrow screen. */
const TALL_ROW_HEIGHT = 78;
/** Number of remaining rows at which the next page is requested. */
const AHEAD = 30;
const TICK_MS = 5_000;

export function ListView({ view }: { view: ListKind }): JSX.Element {
  const { project, filter, sort, order } = address.value;
  const key = [view, project, filter, sort, order].join('\n');
  const list = useRunList(view, key, () => {
    const createQuery = (): URLSearchParams => {
      const query = queryOf({ filter, project }, Date.now());
      if (sort !== 'start_time') query.set('sort', sort);
      if (order !== 'descending') query.set('order', order);
      return query;
    };
    return new RunList<Line>(api[view], createQuery);
  });
  const problem = list.problem.value;
  if (list.lines.value.length === 0 && !list.isLoading.value) return <EmptyState problem={problem} />;
  const name = view === 'traces' ? 'Traces' : 'Runs';
  return (
    <section class="list column" aria-label={name}>
      <h1 class="unseen">{name}</h1>
      <ListGrid key={key} view={view} list={list} />
      <Problem text={problem} />
      {list.lines.value.length > 0 && <ListTotals view={view} list={list} />}
    </section>
  );
}

function ListGrid({ view, list }: { view: ListKind; list: RunList }): JSX.Element {
  const lines = list.lines.value;
  const shown = useMemo(() => shownColumns(view, lines), [view, lines, columnIds[view].value, address.value.sort]);
  const columns = list.picked.value === undefined ? shown : [pickColumn(list), ...shown];
  const isDefault = columnIds[view].value === '';
  const rowHeight = isNarrow.value && isDefault ? TALL_ROW_HEIGHT : ROW_HEIGHT;
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useRowWindow(element, rowHeight, lines.length);
  const nowMs = useNow(true, TICK_MS);
  const isAtTop = first === 0;
  useEffect(() => {
    list.see(lines.slice(first, end), isAtTop);
    if (end > lines.length - AHEAD) list.grow();
  }, [first, end, lines, list, list.isBehind.value]);
  useRestoredScroll(element, list);
  const unseen = useAnchoredScroll(element, list, isAtTop, rowHeight);
  useFocus(element);
  const rows = useOpenRows({
    element,
    items: lines,
    idOf: ({ id }) => id,
    selected: list.selected,
    rowHeight,
    open: (line) => go({ trace: line.trace_id, run: view === 'runs' ? line.id : undefined }),
  });
  const line = lines[rows.position];
  useKeys({ c: line && (() => compare(line.id, line.name)), ...pickKeys(list, line) });
  return (
    <>
      {(unseen > 0 || list.isBehind.value) && (
        <p class="arrived" role="status">
          <Button
            icon="up"
            text={
              list.isBehind.value ? `Many new ${view}` : plural(unseen, view === 'traces' ? 'new trace' : 'new run')
            }
            onClick={() => element.current?.scrollTo({ top: 0 })}
          />
        </p>
      )}
      <div
        ref={element}
        class={isDefault ? 'list-rows scroll' : 'list-rows scroll custom'}
        role="grid"
        aria-label={view === 'traces' ? 'Traces' : 'Runs'}
        aria-rowcount={list.hasMore ? -1 : lines.length + 1}
        aria-activedescendant={rows.position >= first && rows.position < end ? rows.activeId : undefined}
        tabIndex={0}
        aria-busy={list.isLoading.value}
      >
        <Head columns={columns} />
        <Rows count={lines.length} rowHeight={rowHeight} first={first} role="rowgroup">
          {lines.slice(first, end).map((line, offset) => (
            <ListRow key={line.id} line={line} columns={columns} row={first + offset + 2} nowMs={nowMs} rows={rows} />
          ))}
        </Rows>
        {lines.length === 0 && <p class="loading">Loading…</p>}
      </div>
    </>
  );
}

interface ListRowProps {
  line: Line;
  columns: readonly Column[];
  row: number;
  nowMs: number;
  rows: OpenRows<Line>;
}

function ListRow({ line, columns, row, nowMs, rows }: ListRowProps): JSX.Element {
  const { class: name, ...attributes } = rows.attributesOf(line);
  return (
    <div {...attributes} class={`list-row ${name}`} role="row" aria-rowindex={row}>
      {columns.map((column) => {
        const cell = column.cell(line, nowMs);
        const title = column.title?.(line) ?? (typeof cell === 'string' ? cell : undefined);
        return (
          <span key={column.id} role="gridcell" class={classOf(column)} title={title}>
            {cell}
          </span>
        );
      })}
    </div>
  );
}

/** Totals of the loaded rows. Each outcome is a link that adds the outcome to the filter. */
function ListTotals({ view, list }: { view: ListKind; list: RunList }): JSX.Element {
  const lines = list.lines.value;
  const sumOf = (key: 'total_tokens' | 'total_cost'): number =>
    lines.reduce((sum, line) => sum + (usageOf(line)?.[key] ?? 0), 0);
  const [tokens, dollars] = [sumOf('total_tokens'), sumOf('total_cost')];
  return (
    <footer class="line list-totals">
      <strong>
        {plural(lines.length, view === 'traces' ? 'trace' : 'run')}
        {list.hasMore && ' loaded'}
      </strong>
      {OUTCOMES.map((outcome) => {
        const found = lines.filter((line) => shownOutcome(line) === outcome).length;
        const filter = withTerms(address.value.filter, condition('status', outcome));
        return (
          found > 0 && (
            <Link key={outcome} to={{ filter }}>
              <StatusMark status={outcome} count={found} />
            </Link>
          )
        );
      })}
      <PickBar view={view} list={list} />
      <span class="space" />
      {tokens > 0 && <span>{countFigure(tokens)} tokens</span>}
      {dollars > 0 && <span>{costFigure(dollars)}</span>}
    </footer>
  );
}

/** Keeps the visible rows in place when rows arrive at the top. Returns the number of new rows that are unseen. */
function useAnchoredScroll(
  element: RefObject<HTMLElement | null>,
  list: RunList,
  isAtTop: boolean,
  rowHeight: number,
): number {
  const [unseen, setUnseen] = useState(0);
  const arrived = list.arrived.value;
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null || arrived.count === 0 || scrolled.scrollTop === 0) return;
    scrolled.scrollTop += arrived.count * rowHeight;
    setUnseen((before) => before + arrived.count);
  }, [arrived]);
  useEffect(() => {
    if (isAtTop) setUnseen(0);
  }, [isAtTop]);
  return unseen;
}

function Head({ columns }: { columns: readonly Column[] }): JSX.Element {
  return (
    <div class="list-row list-head pinned small" role="row" aria-rowindex={1}>
      {columns.map((column) =>
        column.sort === undefined ? (
          <span key={column.id} role="columnheader" class={classOf(column)}>
            {column.head ?? column.name}
          </span>
        ) : (
          <SortHeader key={column.id} column={column} by={column.sort} />
        ),
      )}
    </div>
  );
}

function classOf(column: Column): string {
  return `column-${column.id} ${column.class ?? ''}`;
}

function SortHeader({ column, by }: { column: Column; by: SortKey }): JSX.Element {
  const { sort, order } = address.value;
  const isSorted = sort === by;
  const next = isSorted && order === 'descending' ? 'ascending' : 'descending';
  return (
    <span role="columnheader" class={classOf(column)} aria-sort={isSorted ? order : 'none'}>
      <button type="button" class="sort" onClick={() => go({ sort: by, order: next }, { replace: true })}>
        {column.name}
        {isSorted && <Icon name={order === 'descending' ? 'down' : 'up'} />}
      </button>
    </span>
  );
}
