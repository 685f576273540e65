import type { JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { SortKey } from '../../receiver/query/query.ts';
import { compare } from '../compare/comparison.ts';
import type { Address } from '../data/address.ts';
import { address, go } from '../data/navigation.ts';
import { plural } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { scrollTopFor } from '../elements/rows.tsx';
import { useFocus } from '../elements/use-focus.ts';
import { useNow } from '../elements/use-now.ts';
import { useRowWindow } from '../elements/use-row-window.ts';
import { ListRow } from './list-row.tsx';
import type { Line, ReadLines, RunList } from './run-list.ts';

const ROW_HEIGHT = 34;
/** Rows before the end at which more are asked for. */
const AHEAD = 30;
const TICK_MS = 5_000;

/** The list that was left last, and where: whoever comes back from a trace finds it as it was. */
let left: (ReadLines & { place: string; cursor: string | undefined; scrollTop: number }) | undefined;

/** What had been read of the list that was left at this place. */
export function leftAt(place: string): ReadLines | undefined {
  return left?.place === place ? left : undefined;
}

/** The lines of a list, of which those in sight are in the document. */
export function ListGrid({
  place,
  view,
  list,
}: {
  place: string;
  view: 'traces' | 'runs';
  list: RunList;
}): JSX.Element {
  const lines = list.lines.value;
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useRowWindow(element, ROW_HEIGHT, lines.length);
  const nowMs = useNow(true, TICK_MS);
  const [cursor, setCursor] = useState<string>();
  const position = lines.findIndex(({ id }) => id === cursor);
  const isAtTop = first === 0;
  useEffect(() => {
    list.see(lines.slice(first, end), isAtTop);
    if (end > lines.length - AHEAD) list.grow();
  }, [first, end, lines, list, list.isBehind.value]);
  useKeptPlace(element, place, list, cursor, setCursor);
  const unseen = useStillLines(element, list, isAtTop);
  const open = (line: Line): void => {
    setCursor(line.id);
    go({ trace: line.trace_id, run: view === 'runs' ? line.id : undefined });
  };
  useFocus(element);
  useListKeys(element, lines, position, setCursor, open);

  return (
    <>
      {(unseen > 0 || list.isBehind.value) && (
        <p class="arrived" role="status">
          <button type="button" class="button" onClick={() => element.current?.scrollTo({ top: 0 })}>
            <Icon name="up" /> {list.isBehind.value ? 'Many new lines' : plural(unseen, 'new line')}
          </button>
        </p>
      )}
      <div
        ref={element}
        class="list-rows"
        role="grid"
        aria-label={view === 'traces' ? 'Traces' : 'Runs'}
        aria-rowcount={list.hasMore ? -1 : lines.length + 1}
        aria-activedescendant={position >= first && position < end ? `line-${cursor}` : undefined}
        tabIndex={0}
        aria-busy={list.isLoading.value}
      >
        <Head view={view} />
        <div class="rows-space" style={{ height: `${lines.length * ROW_HEIGHT}px` }} role="presentation">
          <div class="rows-in-sight" style={{ transform: `translateY(${first * ROW_HEIGHT}px)` }} role="rowgroup">
            {lines.slice(first, end).map((line, offset) => (
              <ListRow
                key={line.id}
                line={line}
                row={first + offset + 2}
                nowMs={nowMs}
                isSelected={line.id === cursor}
                open={open}
                place={{ trace: line.trace_id, run: view === 'runs' ? line.id : undefined }}
              />
            ))}
          </div>
        </div>
        {lines.length === 0 && <p class="loading">Loading…</p>}
      </div>
    </>
  );
}

function useKeptPlace(
  element: RefObject<HTMLElement | null>,
  place: string,
  list: RunList,
  cursor: string | undefined,
  setCursor: (cursor: string | undefined) => void,
): void {
  const last = useRef(cursor);
  last.current = cursor;
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null) return;
    if (left?.place === place) {
      scrolled.scrollTop = left.scrollTop;
      setCursor(left.cursor);
    }
    return () => {
      left = { place, ...list.read, cursor: last.current, scrollTop: scrolled.scrollTop };
    };
  }, []);
}

/**
 * Lines that arrive above do not move what is being read: the list is scrolled on by their height. Gives how many of them
 * have not been seen.
 */
function useStillLines(element: RefObject<HTMLElement | null>, list: RunList, isAtTop: boolean): number {
  const [unseen, setUnseen] = useState(0);
  const arrived = list.arrived.value;
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null || arrived.count === 0 || scrolled.scrollTop === 0) return;
    scrolled.scrollTop += arrived.count * ROW_HEIGHT;
    setUnseen((before) => before + arrived.count);
  }, [arrived]);
  useEffect(() => {
    if (isAtTop) setUnseen(0);
  }, [isAtTop]);
  return unseen;
}

function useListKeys(
  element: RefObject<HTMLElement | null>,
  lines: readonly Line[],
  position: number,
  setCursor: (cursor: string | undefined) => void,
  open: (line: Line) => void,
): void {
  const moveTo = (row: number): void => {
    const to = Math.max(0, Math.min(lines.length - 1, row));
    setCursor(lines[to]?.id);
    const scrolled = element.current;
    if (scrolled !== null) scrolled.scrollTop = scrollTopFor(to, scrolled.scrollTop, scrolled.clientHeight, ROW_HEIGHT);
  };
  const move = (by: number) => (): void => moveTo(position + by);
  const page = Math.max(1, Math.floor((element.current?.clientHeight ?? 0) / ROW_HEIGHT) - 1);
  const line = lines[position];
  useKeys({
    j: move(1),
    ArrowDown: move(1),
    k: move(-1),
    ArrowUp: move(-1),
    PageDown: move(page),
    PageUp: move(-page),
    Home: () => moveTo(0),
    End: () => moveTo(lines.length - 1),
    Enter: line === undefined ? undefined : () => open(line),
    c: line === undefined ? undefined : () => compare(line.id, line.name),
    Escape: () => setCursor(undefined),
  });
}

function Head({ view }: { view: 'traces' | 'runs' }): JSX.Element {
  return (
    <div class="list-row list-head" role="row" aria-rowindex={1}>
      <span role="columnheader">Status</span>
      <span role="columnheader">Name</span>
      <span role="columnheader" class="preview">
        Input → output
      </span>
      <SortHeader by="start_time" label="Started" />
      <SortHeader by="latency" label="Latency" />
      <SortHeader by="tokens" label="Tokens" />
      <SortHeader by="cost" label="Cost" />
      <span role="columnheader" class="number">
        {view === 'traces' ? 'Runs' : 'Type'}
      </span>
      <span role="columnheader" class="wide-only">
        {view === 'traces' ? 'Feedback' : 'Model'}
      </span>
      <span role="columnheader" class="wide-only">
        Tags
      </span>
    </div>
  );
}

function SortHeader({ by, label }: { by: SortKey; label: string }): JSX.Element {
  const { sort, order } = address.value;
  const isSorted = sort === by;
  const next: Partial<Address> = { sort: by, order: isSorted && order === 'descending' ? 'ascending' : 'descending' };
  return (
    <span role="columnheader" class="number" aria-sort={isSorted ? order : 'none'}>
      <button type="button" class="sort" onClick={() => go(next, { replace: true })}>
        {label}
        {isSorted && <Icon name={order === 'descending' ? 'down' : 'up'} />}
      </button>
    </span>
  );
}
