/** Rows of one height that are in sight, and some on either side, out of any number. */
export interface RowWindow {
  readonly first: number;
  /** The row after the last one. */
  readonly end: number;
}

/** Rows beyond what is in sight, so that a short way of scrolling shows nothing empty. */
const MARGIN_ROWS = 6;

export function rowWindow(scrollTop: number, height: number, rowHeight: number, count: number): RowWindow {
  const top = Math.floor(Math.max(0, scrollTop) / rowHeight);
  const end = Math.min(count, top + Math.ceil(height / rowHeight) + 1 + MARGIN_ROWS);
  return { first: Math.max(0, Math.min(top, count) - MARGIN_ROWS), end };
}

/** Where to scroll so that a row is in sight, by the shortest way. */
export function scrollTopFor(row: number, scrollTop: number, height: number, rowHeight: number): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  return Math.max(scrollTop, top + rowHeight - height);
}
