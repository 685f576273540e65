import { type Signal, signal } from '@preact/signals';
import type { Page } from '../../receiver/query/query.ts';
import type { TraceSummary } from '../../receiver/store/run-view.ts';
import { api, problemOf } from '../data/api.ts';
import { onChanges } from '../data/changes.ts';
import { Refresh } from '../data/refresh.ts';

/** A line of either list: of traces with what the whole trace comes to, of runs without. */
export type Line = Omit<TraceSummary, 'trace'> & Partial<Pick<TraceSummary, 'trace'>>;

/** What a list has read, up to where it would go on. */
export interface ReadLines {
  readonly lines: readonly Line[];
  readonly next: string | undefined;
}

/** Lines of a page. */
const PAGE = 100;
/** Runs of a trace that are read at once when lines of theirs have changed. */
const RUNS_REREAD = 1_000;
/** Lines beyond which a list whose beginning is read is cut to it: what arrives in a day fits no page. */
const LINES_KEPT = 2_000;

/**
 * A list that grows at its end as it is scrolled, and at its beginning as things happen. What has been read is not asked
 * for again, apart from lines whose traces have changed, once they are in sight.
 */
export class RunList {
  readonly lines: Signal<readonly Line[]> = signal([]);
  readonly problem: Signal<string | undefined> = signal(undefined);
  readonly isLoading: Signal<boolean> = signal(true);
  /** How many lines the last refresh has put before those that were there. */
  readonly arrived: Signal<{ readonly count: number }> = signal({ count: 0 });
  /** Whether so much has arrived that it does not join on to what is being read, which stays until the top is seen. */
  readonly isBehind: Signal<boolean> = signal(false);
  #inSight: readonly Line[] = [];
  #isAtTop = true;
  readonly #isOfTraces: boolean;
  readonly #query: URLSearchParams;
  readonly #refresh: Refresh;
  /** Traces of lines that have to be read again. */
  readonly #changed = new Set<string>();
  readonly #ending = new AbortController();
  readonly #unsubscribe: () => void;
  #next: string | undefined;
  #growing: Promise<void> | undefined;

  /** `before` is what an earlier list of the same query had read. */
  constructor(view: 'traces' | 'runs', query: URLSearchParams, before?: ReadLines) {
    this.#isOfTraces = view === 'traces';
    this.#query = query;
    this.lines.value = before?.lines ?? [];
    this.#next = before?.next;
    this.#refresh = new Refresh((signal) => this.#reread(signal));
    this.#unsubscribe = onChanges((traceIds) => {
      for (const id of traceIds ?? this.lines.value.map(({ trace_id }) => trace_id)) this.#changed.add(id);
      this.#refresh.ask();
    });
    this.#refresh.ask();
  }

  get read(): ReadLines {
    return { lines: this.lines.value, next: this.#next };
  }

  get hasMore(): boolean {
    return this.#next !== undefined;
  }

  /** Reads the next page, once at a time. */
  grow(): void {
    if (this.#next === undefined || this.#growing !== undefined) return;
    this.#growing = this.#grow(this.#next).finally(() => {
      this.#growing = undefined;
    });
  }

  /** To be told of what is in sight: it is read again if it has to be. */
  see(lines: readonly Line[], isAtTop: boolean): void {
    this.#inSight = lines;
    this.#isAtTop = isAtTop;
    const isStale = lines.some(({ trace_id }) => this.#changed.has(trace_id));
    if (isStale || (isAtTop && this.isBehind.value)) this.#refresh.ask();
  }

  end(): void {
    this.#unsubscribe();
    this.#refresh.end();
    this.#ending.abort();
  }

  async #grow(cursor: string): Promise<void> {
    try {
      const page = await this.#read({ cursor }, this.#ending.signal);
      // The list ends elsewhere by now: what comes after would be missing between.
      if (this.#next !== cursor) return;
      this.#next = page.next;
      const known = new Set(this.lines.value.map(({ id }) => id));
      this.lines.value = [...this.lines.value, ...page.items.filter(({ id }) => !known.has(id))];
    } catch (error) {
      this.problem.value = problemOf(error) ?? this.problem.value;
    }
  }

  /** The first page, and what is in sight and has changed. */
  async #reread(signal: AbortSignal): Promise<void> {
    try {
      const head = await this.#read({}, signal);
      this.#putFirst(head);
      await this.#rereadInSight(new Set(head.items.map(({ id }) => id)), signal);
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = problemOf(error) ?? this.problem.value;
    }
    this.isLoading.value = false;
  }

  /** The page takes the place of what it reaches over, so that lines which no longer belong to it are gone. */
  #putFirst({ items, next }: Page<Line>): void {
    const lines = this.lines.value;
    const last = items.at(-1)?.id;
    const reach = next === undefined ? -1 : lines.findLastIndex(({ id }) => id === last);
    this.isBehind.value = !this.#isAtTop && next !== undefined && reach === -1;
    if (this.isBehind.value) return;
    const fresh = new Set(items.map(({ id }) => id));
    const isCut = reach === -1 || (this.#isAtTop && lines.length > LINES_KEPT);
    const rest = isCut ? [] : lines.slice(reach + 1).filter(({ id }) => !fresh.has(id));
    const firstKnown = lines[0]?.id;
    const before = items.findIndex(({ id }) => id === firstKnown);
    if (rest.length === 0) this.#next = next;
    this.arrived.value = { count: Math.max(0, before) };
    this.lines.value = [...items, ...rest];
  }

  async #rereadInSight(fresh: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const old = this.lines.value.filter(({ id }) => !fresh.has(id));
    const isOld = new Set(old.map(({ trace_id }) => trace_id));
    for (const id of this.#changed) if (!isOld.has(id)) this.#changed.delete(id);
    for (const { id, trace_id } of this.#inSight) {
      if (fresh.has(id) || !this.#changed.delete(trace_id)) continue;
      try {
        this.#replace(trace_id, await this.#read({ trace_id, limit: `${RUNS_REREAD}` }, signal));
      } catch (error) {
        this.#changed.add(trace_id);
        throw error;
      }
    }
  }

  /** Lines that are not there any more are gone, as far as the page tells. */
  #replace(traceId: string, { items, next }: Page<Line>): void {
    const byId = new Map(items.map((line) => [line.id, line]));
    this.lines.value = this.lines.value.flatMap((line) =>
      line.trace_id === traceId ? (byId.get(line.id) ?? (next === undefined ? [] : line)) : line,
    );
  }

  #read(more: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Page<Line>> {
    const query = new URLSearchParams([...this.#query, ['limit', `${PAGE}`]]);
    for (const [name, value] of Object.entries(more)) query.set(name, value);
    return this.#isOfTraces ? api.traces(query, signal) : api.runs(query, signal);
  }
}
