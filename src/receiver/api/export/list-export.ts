import type { ExportQuery, RunQuery } from '../../domain/query/query.ts';
import { projectOf, timesOf } from '../../domain/run-values.ts';
import type { RunSummary, TraceSummary } from '../../domain/run-view.ts';
import { ALL_RUNS, among, type Parsed } from '../../filter/run-filter.ts';
import type { Reader } from '../../store/store.ts';
import { exportedLines } from './trace-export.ts';

/**
 * Yields runs or traces as text. With `jsonl`, each line is a complete run. With `otlp`, each line is an OTLP request. With
 * `csv`, each row has the fields of the list for a run or trace, latest start first.
 */
export function exported(
  reader: Reader,
  { list = 'runs', format, ...query }: Parsed<ExportQuery>,
): AsyncIterable<string> {
  if (format === 'csv') return csvOf(list, pagesOf(reader, list, query));
  const lines = list === 'runs' ? exportedLines(reader, query) : linesOfTraces(reader, query);
  return format === 'otlp' ? spansOf(lines) : lines;
}

/** Few exports need the encoder, so it is loaded at the first. */
async function* spansOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  const { otlpLines } = await import('./otlp-export.ts');
  yield* otlpLines(lines);
}

type Item = RunSummary & Partial<Pick<TraceSummary, 'trace'>>;

/** Number of traces whose runs are read with one query. */
const TRACES_AT_ONCE = 50;
/** Number of rows per page. Other queries wait while a page is read, so the pages are small. */
const PAGE_ITEMS = 250;

async function* pagesOf(
  { store, scope }: Reader,
  list: 'runs' | 'traces',
  { limit = Number.POSITIVE_INFINITY, ...query }: Parsed<RunQuery>,
  pageItems: number = PAGE_ITEMS,
): AsyncGenerator<readonly Item[]> {
  let cursor: string | undefined;
  for (let left = limit; left > 0; left -= pageItems) {
    const pageQuery = { ...query, limit: Math.min(left, pageItems), ...(cursor !== undefined && { cursor }) };
    const page = await (list === 'traces' ? store.traces(scope, pageQuery) : store.list(scope, pageQuery));
    yield page.items;
    cursor = page.next;
    if (cursor === undefined) return;
  }
}

async function* linesOfTraces(reader: Reader, query: Parsed<RunQuery>): AsyncGenerator<string> {
  for await (const traces of pagesOf(reader, 'traces', query, TRACES_AT_ONCE)) {
    const ids = traces.map(({ trace_id }) => trace_id);
    yield* exportedLines(reader, { filter: { ...ALL_RUNS, conditions: [among('trace', ids)] } });
  }
}

const COLUMNS =
  'start_time end_time latency_ms status name run_type model project user thread input_tokens output_tokens total_tokens total_cost cached_tokens cache_savings error tags inputs_preview outputs_preview id trace_id';
const TRACE_COLUMNS = `${COLUMNS} outcome runs errors feedback`;

/** Returns the values of the columns that differ from the fields of the item. */
function derivedValues(item: Item): Record<string, string | number | undefined> {
  const { tags, trace, usage } = item;
  const { latencyUs } = timesOf(item);
  const feedback = trace?.feedback?.map(({ key, count, average_score: score }) => `${key}: ${score ?? count}`);
  return {
    latency_ms: latencyUs && latencyUs / 1_000,
    project: projectOf(item),
    ...(trace === undefined ? usage : trace.usage),
    tags: tags?.join(', '),
    runs: trace?.runs,
    errors: trace?.errors,
    feedback: feedback?.join(', '),
  };
}

/** Yields CSV as described in RFC 4180. */
async function* csvOf(list: 'runs' | 'traces', pages: AsyncIterable<readonly Item[]>): AsyncGenerator<string> {
  const columns = (list === 'traces' ? TRACE_COLUMNS : COLUMNS).split(' ');
  const lineOf = (row: Readonly<Record<string, unknown>>) =>
    `${columns.map((name) => quoted(row[name])).join(',')}\r\n`;
  yield `${columns.join(',')}\r\n`;
  for await (const items of pages) yield items.map((item) => lineOf({ ...item, ...derivedValues(item) })).join('');
}

/** Spreadsheets evaluate a text that begins with one of these characters as a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

function quoted(value: unknown): string {
  if (typeof value !== 'string') return `${value ?? ''}`;
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
