import { ALL_TIMES, projectOf, timesOf } from '../store/run-filter.ts';
import type { RunSummary, TraceSummary } from '../store/run-view.ts';
import type { Scope, Store } from '../store/store.ts';
import type { ExportQuery, Ranged, RunQuery } from './query.ts';
import { exportedLines } from './trace-export.ts';

/**
 * Yields runs or traces as text. JSON lines contain one complete run each. CSV contains the fields of the list: one row
 * for each run or trace, latest start first.
 */
export function exported(
  store: Store,
  scope: Scope,
  { list = 'runs', format, ...query }: Ranged<ExportQuery>,
): AsyncIterable<string> {
  if (format === 'csv') return csvOf(list, pagesOf(store, scope, list, query));
  return list === 'runs' ? exportedLines(store, scope, query) : linesOfTraces(store, scope, query);
}

type Item = RunSummary & Partial<Pick<TraceSummary, 'trace'>>;

const PAGE_ITEMS = 1_000;

async function* pagesOf(
  store: Store,
  scope: Scope,
  list: 'runs' | 'traces',
  { limit = Number.POSITIVE_INFINITY, ...query }: Ranged<RunQuery>,
): AsyncGenerator<readonly Item[]> {
  let cursor: string | undefined;
  for (let left = limit; left > 0; left -= PAGE_ITEMS) {
    const pageQuery = { ...query, limit: Math.min(left, PAGE_ITEMS), ...(cursor !== undefined && { cursor }) };
    const page = await (list === 'traces' ? store.traces(scope, pageQuery) : store.list(scope, pageQuery));
    yield page.items;
    cursor = page.next;
    if (cursor === undefined) return;
  }
}

async function* linesOfTraces(store: Store, scope: Scope, query: Ranged<RunQuery>): AsyncGenerator<string> {
  for await (const traces of pagesOf(store, scope, 'traces', query)) {
    for (const { trace_id: traceId } of traces) yield* exportedLines(store, scope, { traceId, range: ALL_TIMES });
  }
}

type Cell = string | number | undefined;

type Column = readonly [name: string, cell: (item: Item) => Cell];

const COLUMNS: readonly Column[] = [
  ['start_time', ({ start_time }) => start_time],
  ['end_time', ({ end_time }) => end_time],
  ['latency_ms', latencyMsOf],
  ['status', ({ status }) => status],
  ['name', ({ name }) => name],
  ['run_type', ({ run_type }) => run_type],
  ['model', ({ model }) => model],
  ['project', projectOf],
  ['user', ({ user }) => user],
  ['thread', ({ thread }) => thread],
  ['input_tokens', (item) => usageOf(item).input_tokens],
  ['output_tokens', (item) => usageOf(item).output_tokens],
  ['total_tokens', (item) => usageOf(item).total_tokens],
  ['total_cost', (item) => usageOf(item).total_cost],
  ['error', ({ error }) => error],
  ['tags', ({ tags }) => tags?.join(', ')],
  ['inputs_preview', ({ inputs_preview }) => inputs_preview],
  ['outputs_preview', ({ outputs_preview }) => outputs_preview],
  ['id', ({ id }) => id],
  ['trace_id', ({ trace_id }) => trace_id],
];

const TRACE_COLUMNS: readonly Column[] = [
  ...COLUMNS,
  ['runs', ({ trace }) => trace?.runs],
  ['errors', ({ trace }) => trace?.errors],
  [
    'feedback',
    ({ trace }) =>
      trace?.feedback?.map(({ key, count, average_score: score }) => `${key}: ${score ?? count}`).join(', '),
  ],
];

/** Yields CSV as described in RFC 4180. */
async function* csvOf(list: 'runs' | 'traces', pages: AsyncIterable<readonly Item[]>): AsyncGenerator<string> {
  const columns = list === 'traces' ? TRACE_COLUMNS : COLUMNS;
  yield lineOf(columns.map(([name]) => name));
  for await (const items of pages) yield items.map((item) => lineOf(columns.map(([, cell]) => cell(item)))).join('');
}

function lineOf(cells: readonly Cell[]): string {
  return `${cells.map(quoted).join(',')}\r\n`;
}

/** Spreadsheets evaluate a text that begins with one of these characters as a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

function quoted(cell: Cell): string {
  if (typeof cell !== 'string') return `${cell ?? ''}`;
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function latencyMsOf(item: Item): number | undefined {
  const { latencyUs } = timesOf(item);
  return latencyUs === undefined ? undefined : latencyUs / 1_000;
}

function usageOf({ trace, usage }: Item): NonNullable<RunSummary['usage']> {
  return trace?.usage ?? usage ?? {};
}
