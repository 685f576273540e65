import { type Signal, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks';
import type { ListPage } from '../../receiver/domain/query/query.ts';
import type { TraceOutcome, TraceSummary } from '../../receiver/domain/run-view.ts';
import { problemOf } from '../data/api.ts';
import { onChanges } from '../data/changes.ts';
import { Refresh } from '../data/live-value.ts';

/** A row of the list. In a list of traces, `trace` contains the totals, and `outcome` what became of the trace. */
export type Line = Omit<TraceSummary, 'trace' | 'outcome'> & Partial<Pick<TraceSummary, 'trace' | 'outcome'>>;

export function shownOutcome({ outcome, status }: Pick<Line, 'outcome' | 'status'>): TraceOutcome {
  return outcome ?? status;
}

/** An item of a list. `trace_id` is empty if an item does not belong to one trace. */
interface ListItem {
  readonly id: string;
  readonly trace_id: string;
}

type ReadPage<Item> = (query: URLSearchParams, signal?: AbortSignal) => Promise<ListPage<Item>>;

const PAGE = 100;
/** Maximum number of runs to read again when their trace has changed. */
const TRACE_RUNS_MAX = 1_000;
/** Maximum number of rows while the user is at the top of the list. A longer list is cut to its first page. */
const LINES_MAX = 2_000;

/**
 * A list that loads more pages as the user scrolls, and new rows as they arrive. A visible row is read again if its
 * trace has changed. A closed list keeps its rows and can be opened again.
 */
export class RunList<Item extends ListItem = Line> {
  readonly lines: Signal<readonly Item[]> = signal([]);
  readonly problem: Signal<string | undefined> = signal(undefined);
  readonly isLoading: Signal<boolean> = signal(true);
  /** Number of rows that the last update added at the top of the list. */
  readonly arrived: Signal<{ readonly count: number }> = signal({ count: 0 });
  /** Whether more than one page of new rows has arrived. The new rows are loaded when the user returns to the top. */
  readonly isBehind: Signal<boolean> = signal(false);
  readonly selected: Signal<string | undefined> = signal(undefined);
  /** Ids of the traces or runs that the user picks. Undefined unless the list shows checkboxes. */
  readonly picked: Signal<ReadonlySet<string> | undefined> = signal(undefined);
  /** Scroll position of the list when it was closed. */
  scrollTop = 0;
  #visible: readonly Item[] = [];
  #isAtTop = true;
  readonly #readPage: ReadPage<Item>;
  readonly #createQuery: () => URLSearchParams;
  #query = new URLSearchParams();
  #refresh: Refresh | undefined;
  /** Ids of changed traces whose rows must be read again. */
  readonly #changed = new Set<string>();
  #unsubscribe: (() => void) | undefined;
  #next: string | undefined;
  #growing: Promise<void> | undefined;

  /**
   * `createQuery` is called each time the list is opened. The function converts relative times to absolute times, so
   * all pages of results use the same time range.
   */
  constructor(readPage: ReadPage<Item>, createQuery: () => URLSearchParams) {
    this.#readPage = readPage;
    this.#createQuery = createQuery;
  }

  open(): void {
    this.#query = this.#createQuery();
    const refresh = new Refresh((signal) => this.#reread(signal));
    this.#refresh = refresh;
    this.#unsubscribe = onChanges((traceIds) => {
      for (const id of traceIds ?? this.lines.value.map(({ trace_id }) => trace_id)) this.#changed.add(id);
      refresh.request();
    });
    refresh.request();
  }

  close(): void {
    this.#unsubscribe?.();
    this.#refresh?.close();
    this.arrived.value = { count: 0 };
    this.problem.value = undefined;
    this.isLoading.value = true;
  }

  get hasMore(): boolean {
    return this.#next !== undefined;
  }

  /** Reads the next page, unless a page is already being read. */
  grow(): void {
    if (this.#next === undefined || this.#growing !== undefined) return;
    this.#growing = this.#grow(this.#next).finally(() => {
      this.#growing = undefined;
    });
  }

  /** Sets the visible rows. Stale rows are read again. */
  see(lines: readonly Item[], isAtTop: boolean): void {
    this.#visible = lines;
    this.#isAtTop = isAtTop;
    const isStale = lines.some(({ trace_id }) => this.#changed.has(trace_id));
    if (isStale || (isAtTop && this.isBehind.value)) this.#refresh?.request();
  }

  async #grow(cursor: string): Promise<void> {
    try {
      const page = await this.#read({ cursor });
      // The list was cut during the read, so adding this page would leave a gap.
      if (this.#next !== cursor) return;
      this.#next = page.next;
      const known = new Set(this.lines.value.map(({ id }) => id));
      this.lines.value = [...this.lines.value, ...page.items.filter(({ id }) => !known.has(id))];
    } catch (error) {
      this.problem.value = problemOf(error) ?? this.problem.value;
    }
  }

  /** Reads the first page again, and the visible rows that have changed. */
  async #reread(signal: AbortSignal): Promise<void> {
    try {
      const head = await this.#read({}, signal);
      this.#putFirst(head);
      await this.#rereadVisible(new Set(head.items.map(({ id }) => id)), signal);
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = problemOf(error) ?? this.problem.value;
    }
    if (!signal.aborted) this.isLoading.value = false;
  }

  /** Replaces the beginning of the list with the first page. Rows that no longer match the filter disappear. */
  #putFirst({ items, next }: ListPage<Item>): void {
    const lines = this.lines.value;
    const last = items.at(-1)?.id;
    const reach = next === undefined ? -1 : lines.findLastIndex(({ id }) => id === last);
    this.isBehind.value = !this.#isAtTop && next !== undefined && reach === -1;
    if (this.isBehind.value) return;
    const fresh = new Set(items.map(({ id }) => id));
    const isCut = reach === -1 || (this.#isAtTop && lines.length > LINES_MAX);
    const rest = isCut ? [] : lines.slice(reach + 1).filter(({ id }) => !fresh.has(id));
    const firstKnown = lines[0]?.id;
    const before = items.findIndex(({ id }) => id === firstKnown);
    if (rest.length === 0) this.#next = next;
    this.arrived.value = { count: Math.max(0, before) };
    this.lines.value = [...items, ...rest];
  }

  async #rereadVisible(fresh: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const old = this.lines.value.filter(({ id }) => !fresh.has(id));
    const isOld = new Set(old.map(({ trace_id }) => trace_id));
    for (const id of this.#changed) if (!isOld.has(id)) this.#changed.delete(id);
    for (const { id, trace_id } of this.#visible) {
      if (fresh.has(id) || !this.#changed.delete(trace_id)) continue;
      try {
        this.#replace(trace_id, await this.#read({ trace_id, limit: `${TRACE_RUNS_MAX}` }, signal));
      } catch (error) {
        this.#changed.add(trace_id);
        throw error;
      }
    }
  }

  /** Replaces the rows of a trace. Removes rows that are missing from a response without a next page. */
  #replace(traceId: string, { items, next }: ListPage<Item>): void {
    const byId = new Map(items.map((line) => [line.id, line]));
    this.lines.value = this.lines.value.flatMap((line) =>
      line.trace_id === traceId ? (byId.get(line.id) ?? (next === undefined ? [] : line)) : line,
    );
  }

  #read(more: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<ListPage<Item>> {
    const query = new URLSearchParams([...this.#query, ['limit', `${PAGE}`]]);
    for (const [name, value] of Object.entries(more)) query.set(name, value);
    return this.#readPage(query, signal);
  }
}

/** The last list of each view. */
const kept = new Map<string, { readonly key: string; readonly list: unknown }>();

/**
 * Returns the list of a view, and opens it while the component is mounted. If the key is the same as before, the list
 * still has its rows and its scroll position.
 */
export function useRunList<Item extends ListItem>(
  view: string,
  key: string,
  create: () => RunList<Item>,
): RunList<Item> {
  const list = useMemo(() => {
    const last = kept.get(view);
    const found = last?.key === key ? (last.list as RunList<Item>) : create();
    kept.set(view, { key, list: found });
    return found;
  }, [key]);
  useEffect(() => {
    list.open();
    return () => list.close();
  }, [list]);
  return list;
}

export function useRestoredScroll(element: RefObject<HTMLElement | null>, list: { scrollTop: number }): void {
  useLayoutEffect(() => {
    const scrolled = element.current;
    if (scrolled === null) return;
    scrolled.scrollTop = list.scrollTop;
    return () => {
      list.scrollTop = scrolled.scrollTop;
    };
  }, [list]);
}
