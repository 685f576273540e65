import { type Signal, signal } from '@preact/signals';
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { useKeys } from './keys.ts';

const narrow = matchMedia('(max-width: 760px)');

/** Whether the screen is narrow, as in the media queries of the style sheets. */
export const isNarrow: Signal<boolean> = signal(narrow.matches);
narrow.addEventListener('change', () => {
  isNarrow.value = narrow.matches;
});

/** The range of rows of a scrolled list that are in the DOM. */
interface RowWindow {
  readonly first: number;
  /** Index after the last row. */
  readonly end: number;
}

/** Number of extra rows above and below the visible rows. Extra rows prevent gaps during short scrolls. */
const MARGIN_ROWS = 6;

/** A container for `count` rows of equal height. `children` contains the rows that start at index `first`. */
export function Rows(props: {
  count: number;
  rowHeight: number;
  first: number;
  role?: 'rowgroup' | 'presentation';
  children: ComponentChildren;
}): JSX.Element {
  const { count, rowHeight, first, role = 'presentation', children } = props;
  return (
    <div class="rows" style={{ height: `${count * rowHeight}px` }} role="presentation">
      <div style={{ transform: `translateY(${first * rowHeight}px)` }} role={role}>
        {children}
      </div>
    </div>
  );
}

/** Returns the rows to render in a scrolled element. Renders the component again only when they change. */
export function useRowWindow(element: RefObject<HTMLElement | null>, rowHeight: number, count: number): RowWindow {
  const [place, setPlace] = useState({ scrollTop: 0, height: 0 });
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null) return;
    const measure = (): void => {
      // Round down to whole rows, so that shorter scrolls do not render again.
      const scrollTop = Math.floor(scrolled.scrollTop / rowHeight) * rowHeight;
      const height = scrolled.clientHeight;
      setPlace((last) => (last.scrollTop === scrollTop && last.height === height ? last : { scrollTop, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(scrolled);
    scrolled.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      scrolled.removeEventListener('scroll', measure);
    };
  }, [element, rowHeight]);
  const top = Math.floor(Math.max(0, place.scrollTop) / rowHeight);
  const end = Math.min(count, top + Math.ceil(place.height / rowHeight) + 1 + MARGIN_ROWS);
  return { first: Math.max(0, Math.min(top, count) - MARGIN_ROWS), end };
}

/** Registers keys that move the selection between rows. `select` receives an index between 0 and `count - 1`. */
export function useRowKeys(
  element: RefObject<HTMLElement | null>,
  rowHeight: number,
  count: number,
  position: number,
  select: (row: number) => void,
): void {
  const moveTo = (row: number): void => select(Math.max(0, Math.min(count - 1, row)));
  const down = (): void => moveTo(position + 1);
  const up = (): void => moveTo(position - 1);
  const page = (): number => Math.max(1, Math.floor((element.current?.clientHeight ?? 0) / rowHeight) - 1);
  useKeys({
    j: down,
    ArrowDown: down,
    k: up,
    ArrowUp: up,
    PageDown: () => moveTo(position + page()),
    PageUp: () => moveTo(position - page()),
    Home: () => moveTo(0),
    End: () => moveTo(count - 1),
  });
}

/** Rows of which one is selected with keys, and opened with Enter or a click. */
export type OpenRows<Item> = ReturnType<typeof useOpenRows<Item>>;

/** Returns the index of the selected row, or -1, the id of its element, and a function for the attributes of rows. */
export function useOpenRows<Item>(options: {
  readonly element: RefObject<HTMLElement | null>;
  readonly items: readonly Item[];
  readonly idOf: (item: Item) => string;
  readonly selected: Signal<string | undefined>;
  readonly rowHeight: number;
  readonly open: (item: Item) => void;
}) {
  const { element, items, idOf, selected, rowHeight, open } = options;
  const position = items.findIndex((item) => idOf(item) === selected.value);
  const item = items[position];
  const select = (next: Item | undefined): void => {
    selected.value = next && idOf(next);
  };
  const openRow = (opened: Item): void => {
    select(opened);
    open(opened);
  };
  useRowKeys(element, rowHeight, items.length, position, (row) => {
    select(items[row]);
    scrollToRow(element.current, row, rowHeight, HEAD_HEIGHT);
  });
  useKeys({ Enter: item && (() => openRow(item)), Escape: item && (() => select(undefined)) });
  const attributesOf = (one: Item) => ({
    id: elementIdOf(idOf(one)),
    class: one === item ? 'opens selected' : 'opens',
    'aria-selected': one === item,
    onClick: onRow(() => openRow(one)),
  });
  return { position, activeId: item && elementIdOf(idOf(item)), attributesOf };
}

/** Returns a listener for clicks on a row, except for those on its links and controls. */
export function onRow(act: () => void): (event: MouseEvent) => void {
  return ({ target }) => {
    if (!(target instanceof Element && target.closest('a, button, input'))) act();
  };
}

/** Returns the id of the element of a row. Spaces separate the ids in an attribute. */
export function elementIdOf(id: string): string {
  return `line-${id.replaceAll(/\s/g, '_')}`;
}

/** Height of the head of a list, which stays at the top of the scrolled element. */
const HEAD_HEIGHT = 28;

export function scrollToRow(element: HTMLElement | null, row: number, rowHeight: number, headHeight = 0): void {
  if (element === null || row < 0) return;
  const top = row * rowHeight;
  const lowest = top + rowHeight + headHeight - element.clientHeight;
  element.scrollTop = top < element.scrollTop ? top : Math.max(element.scrollTop, lowest);
}
