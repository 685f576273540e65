import type { Attachment } from '../../../run/record.ts';
import { isoTimestamp } from '../../../run/time.ts';
import type { Feedback, FeedbackFigures, FeedbackToken } from '../../feedback/feedback.ts';
import type { Page, Ranged, Statistics, StatisticsQuery, TimeRange } from '../../query/query.ts';
import type { RunFilter } from '../run-filter.ts';
import { derivedOrder, inOrder, startUsOf, type TreeNode } from '../run-tree.ts';
import type { PayloadField, ProjectSummary, RunDetails, RunSummary, TraceSummary } from '../run-view.ts';
import { PAYLOAD_FIELDS } from '../run-view.ts';
import { all, type Condition, conditionsOf, defineFilterFunctions, isSessionId } from './conditions.ts';
import { idBytes, idText, type Row, type SqliteConnection } from './database.ts';
import { copyTo, type StoreOwner } from './file.ts';
import { FROM_DETAILS, LISTED, LISTED_COLUMNS, type ListedRow, outlineIn, summaryIn } from './listed-run.ts';
import { type PageQuery, RUN_SORTS, rowsOfPage, TRACE_SORTS } from './pages.ts';
import { payloadSizes, readPayload } from './payloads.ts';
import { fieldsOf, usageIn } from './run-row.ts';
import { SqliteSearch } from './search.ts';
import { statisticsIn } from './statistics.ts';

/** The key of a run, and its order if the run has none of its own. */
export type RunKey = readonly [n: number, derivedOrder: string | undefined];

/** Answers queries over a connection that only reads. */
export class SqliteReader {
  readonly #connection: SqliteConnection;
  readonly #search: SqliteSearch;
  /** Returns the process that has the store open to write. */
  readonly owner: () => StoreOwner | undefined;

  constructor(connection: SqliteConnection, owner: () => StoreOwner | undefined) {
    this.#connection = connection;
    this.owner = owner;
    this.#search = new SqliteSearch(connection);
    defineFilterFunctions(connection);
  }

  /** Returns the keys of matching runs: trace by trace, parents before children. */
  runKeys(tenant: string, filter: RunFilter, limit: number | undefined): RunKey[] {
    const { sql, values } = all(this.#conditionsOf(this.#tenant(tenant), filter));
    const rows = this.#connection.all<{ n: number; trace: number }>(
      `SELECT n, trace FROM runs WHERE ${sql}`,
      ...values,
    );
    const found = new Set(rows.map(({ n }) => n));
    const traces = [...new Set(rows.map(({ trace }) => trace))].map((trace) =>
      inOrder(this.#nodes(trace)).filter(({ run }) => found.has(run.n)),
    );
    traces.sort(([a], [b]) => ((a?.order ?? '') < (b?.order ?? '') ? -1 : 1));
    const keys = traces.flat().map(({ run, order }): RunKey => [run.n, run.order === undefined ? order : undefined]);
    return keys.slice(0, limit);
  }

  /** Returns runs as JSON text of records. Leaves out runs that have been deleted. */
  runTexts(keys: readonly RunKey[]): string[] {
    return keys.flatMap(([n, order]) => {
      const row = this.#connection.one<ListedRow>(LISTED, n);
      if (row === undefined) return [];
      const attachments = this.#attachments(n);
      const record = {
        ...fieldsOf(row, row.fields),
        id: idText(row.id),
        trace_id: idText(row.trace_id),
        ...(order === undefined ? {} : { dotted_order: order }),
        ...(attachments.length === 0 ? {} : { attachments }),
      };
      const payloads = PAYLOAD_FIELDS.map((field) => {
        const text = readPayload(this.#connection, n, field) ?? (field === 'inputs' ? '{}' : undefined);
        return text === undefined ? '' : `,"${field}":${text}`;
      });
      return [`${JSON.stringify(record).slice(0, -1)}${payloads.join('')}}`];
    });
  }

  attachment(tenant: string, projects: readonly string[], runId: string, name: string): Attachment | undefined {
    const run = this.#find(tenant, projects, runId);
    const row = this.#connection.one<{ mime_type: string; bytes: Uint8Array }>(
      'SELECT mime_type, bytes FROM attachments WHERE run = ? AND name = ?',
      run?.n ?? null,
      name,
    );
    return row && { name, mimeType: row.mime_type, bytes: row.bytes };
  }

  projects(tenant: string, filter: RunFilter): ProjectSummary[] {
    const { sql, values } = all(conditionsOf(this.#connection, this.#tenant(tenant), filter, 'runs.total_tokens'));
    const rows = this.#connection.all<{ project: string; traces: number; last_us: number }>(
      `SELECT project, count(*) AS traces, max(start_us) AS last_us FROM runs WHERE is_root = 1 AND ${sql} GROUP BY project`,
      ...values,
    );
    return rows
      .map(({ project, traces, last_us }) => ({ name: project, traces, last_start_time: isoTimestamp(last_us) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  traces(tenant: string, query: PageQuery): Page<TraceSummary> {
    const { search, ...filter } = query.filter;
    const tenantN = this.#tenant(tenant);
    const conditions = conditionsOf(this.#connection, tenantN, { ...filter, search }, 'traces.total_tokens');
    if (search !== undefined) {
      const { sql, values } = this.#search.condition(search);
      conditions.push({
        sql: `runs.trace IN (SELECT runs.trace FROM runs WHERE start_us IS NOT NULL AND (${sql}))`,
        values,
      });
    }
    const from = `runs ${this.#rootIndex(tenantN, query)} JOIN traces ON traces.n = runs.trace`;
    const { items, ...page } = rowsOfPage(
      this.#connection,
      query,
      from,
      [{ sql: 'runs.is_root = 1', values: [] }, ...conditions],
      TRACE_SORTS,
    );
    return {
      items: items.map((row) => ({ ...summaryIn(this.#connection, row), trace: this.#totals(row.trace) })),
      ...page,
    };
  }

  list(tenant: string, query: PageQuery): Page<RunSummary> {
    const conditions = this.#conditionsOf(this.#tenant(tenant), query.filter);
    const { items, ...page } = rowsOfPage(this.#connection, query, 'runs', conditions, RUN_SORTS);
    return { items: items.map((row) => summaryIn(this.#connection, row)), ...page };
  }

  /** Returns the runs of a trace as arrays in JSON, none much longer than may be parsed at once. */
  outline(tenant: string, filter: RunFilter): string[] {
    const tenantN = this.#tenant(tenant);
    const trace = this.#trace(tenantN, filter.traceId ?? '');
    if (trace === undefined) return [];
    const { sql, values } = all(this.#conditionsOf(tenantN, filter));
    const rows = this.#connection.each<ListedRow>(`SELECT ${LISTED_COLUMNS} ${FROM_DETAILS} WHERE ${sql}`, ...values);
    const outlines = new Map<number, string>();
    for (const row of rows) outlines.set(row.n, JSON.stringify(outlineIn(row)));
    return piecesOf(inOrder(this.#nodes(trace)).flatMap(({ run }) => outlines.get(run.n) ?? []));
  }

  details(tenant: string, projects: readonly string[], runId: string): RunDetails | undefined {
    const row = this.#find(tenant, projects, runId);
    if (row === undefined) return undefined;
    const { error, extra } = fieldsOf(row, row.fields);
    const attachments = this.#attachments(row.n);
    const feedback = this.#connection.all<{ json: string }>(
      'SELECT json FROM feedback WHERE run = ? ORDER BY n',
      row.n,
    );
    return {
      ...summaryIn(this.#connection, row),
      dotted_order: this.#orderOf(row),
      payload_sizes: payloadSizes(this.#connection, row.n),
      ...(error === undefined || error === '' ? {} : { error }),
      ...(extra === undefined ? {} : { extra }),
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(feedback.length === 0 ? {} : { feedback: feedback.map(({ json }) => JSON.parse(json)) }),
    };
  }

  payload(tenant: string, projects: readonly string[], runId: string, field: PayloadField): string | undefined {
    const run = this.#find(tenant, projects, runId);
    return run === undefined ? undefined : readPayload(this.#connection, run.n, field);
  }

  statistics(tenant: string, filter: RunFilter, query: Ranged<StatisticsQuery>): Statistics {
    const tenantN = this.#tenant(tenant);
    const isId = filter.projects.some((project) => isSessionId(this.#connection, tenantN, project));
    const conditionsFor = (range: TimeRange) => all(this.#conditionsOf(tenantN, { ...filter, range }));
    return statisticsIn(this.#connection, tenantN, filter, query, isId, conditionsFor);
  }

  /** Returns undefined if there has been no such change. */
  changes(tenant: string, after: number | undefined, limit: number): { seq: number; traceIds: string[] | undefined } {
    const seq = this.#connection.number("SELECT value FROM meta WHERE key = 'seq'");
    if (after === undefined) return { seq, traceIds: [] };
    if (after > seq) return { seq, traceIds: undefined };
    const tenantN = this.#tenant(tenant);
    const later = this.#connection.all<{ id: Uint8Array; seq: number }>(CHANGED, after, -1, tenantN, limit + 1);
    const last = later[limit - 1]?.seq;
    if (later.length <= limit || last === undefined) return { seq, traceIds: later.map(({ id }) => idText(id)) };
    // Traces of one change are returned together, because they share a cursor.
    const whole = this.#connection.all<{ id: Uint8Array }>(CHANGED, after, last, tenantN, -1);
    return { seq: last, traceIds: whole.map(({ id }) => idText(id)) };
  }

  feedback(tenant: string, traceId: string): Feedback[] {
    const trace = this.#trace(this.#tenant(tenant), traceId) ?? null;
    const sql = 'SELECT json FROM feedback WHERE trace = ? ORDER BY created_at, n';
    return this.#connection.all<{ json: string }>(sql, trace).map(({ json }) => JSON.parse(json));
  }

  token(tenant: string, id: string): FeedbackToken | undefined {
    const sql = 'SELECT json FROM tokens WHERE tenant = ? AND id = ?';
    const row = this.#connection.one<{ json: string }>(sql, this.#tenant(tenant), id);
    return row && JSON.parse(row.json);
  }

  tokens(tenant: string, runId: string): FeedbackToken[] {
    const sql = 'SELECT json FROM tokens WHERE tenant = ? AND run_id = ? ORDER BY n';
    const rows = this.#connection.all<{ json: string }>(sql, this.#tenant(tenant), idBytes(runId));
    return rows.map(({ json }) => JSON.parse(json));
  }

  backup(path: string): void {
    copyTo(this.#connection, path);
  }

  #tenant(name: string): number {
    return this.#connection.one<{ n: number }>('SELECT n FROM tenants WHERE name = ?', name)?.n ?? -1;
  }

  #trace(tenant: number, id: string): number | undefined {
    const sql = 'SELECT n FROM traces WHERE tenant = ? AND id = ?';
    return this.#connection.one<{ n: number }>(sql, tenant, idBytes(id))?.n;
  }

  /** Finds a visible run, in one of the projects if any are given. */
  #find(tenant: string, projects: readonly string[], runId: string): ListedRow | undefined {
    const row = this.#connection.one<ListedRow>(BY_ID, this.#tenant(tenant), idBytes(runId));
    const isInProjects = projects.every((project) => row?.project === project || row?.session_id === project);
    return isInProjects ? row : undefined;
  }

  #conditionsOf(tenant: number, filter: RunFilter): Condition[] {
    const conditions = conditionsOf(this.#connection, tenant, filter, 'runs.total_tokens');
    return filter.search === undefined ? conditions : [...conditions, this.#search.condition(filter.search)];
  }

  /** Selects the index of roots, because the planner may prefer that of all runs. */
  #rootIndex(tenant: number, { filter, sort }: PageQuery): string {
    const { projects, name, traceId, model, metadata, tags, search } = filter;
    const others = [traceId, model, search].some((value) => value !== undefined) || metadata.length + tags.length > 0;
    if (others || sort !== 'start_time') return '';
    if (name !== undefined) return 'INDEXED BY roots_by_name';
    const [project] = projects;
    if (project === undefined || isSessionId(this.#connection, tenant, project)) return '';
    return 'INDEXED BY roots_by_project';
  }

  /** The runs of a trace as a tree. */
  #nodes(trace: number): (TreeNode & { readonly n: number })[] {
    const rows = this.#connection.all<{
      n: number;
      id: Uint8Array;
      parent: Uint8Array | null;
      start_us: number;
      own: string | null;
    }>(NODES, trace);
    return rows.map(({ n, id, parent, start_us, own }) => ({
      n,
      id: idText(id),
      parentId: parent === null ? undefined : idText(parent),
      startUs: start_us,
      order: own ?? undefined,
    }));
  }

  /** The order of one run, derived from its ancestors. */
  #orderOf({ id, tenant, trace }: ListedRow): string {
    const path: TreeNode[] = [];
    for (let bytes: Uint8Array | null = id; bytes !== null; ) {
      const row: ListedRow | undefined = this.#connection.one<ListedRow>(BY_ID, tenant, bytes);
      if (row === undefined || row.trace !== trace || path.some((node) => node.id === idText(row.id))) break;
      const { dotted_order: order, start_time } = fieldsOf(row, row.fields);
      path.push({ id: idText(row.id), parentId: undefined, startUs: startUsOf(start_time), order });
      bytes = order === undefined ? row.parent : null;
    }
    const orders = path.reverse();
    return orders.reduce<string | undefined>((above, node) => node.order ?? derivedOrder(above, node), undefined) ?? '';
  }

  #totals(trace: number): TraceSummary['trace'] {
    const row = this.#connection.one<Row>('SELECT * FROM traces WHERE n = ?', trace) ?? {};
    const usage = usageIn(row);
    const feedback = this.#connection
      .all<{ key: string; count: number; score: number | null }>(FEEDBACK_FIGURES, trace)
      .map(
        ({ key, count, score }): FeedbackFigures => ({
          key,
          count,
          ...(score === null ? {} : { average_score: score }),
        }),
      );
    return {
      runs: row.runs as number,
      pending: row.pending as number,
      errors: row.errors as number,
      ...(row.end_us === null ? {} : { end_time: isoTimestamp(row.end_us as number) }),
      ...(usage === undefined ? {} : { usage }),
      ...(feedback.length === 0 ? {} : { feedback }),
    };
  }

  #attachments(n: number): { name: string; mime_type: string; size: number }[] {
    const sql = 'SELECT name, mime_type, size FROM attachments WHERE run = ? ORDER BY n';
    return this.#connection.all<{ name: string; mime_type: string; size: number }>(sql, n).map((row) => ({ ...row }));
  }
}

const BY_ID = `SELECT ${LISTED_COLUMNS} ${FROM_DETAILS} WHERE runs.tenant = ? AND runs.id = ? AND start_us IS NOT NULL`;
const NODES = `SELECT runs.n AS n, id, parent, start_us, fields ->> '$.dotted_order' AS own
  FROM runs JOIN details ON details.n = runs.n WHERE trace = ? AND start_us IS NOT NULL`;
const CHANGED = `SELECT id, seq FROM traces WHERE seq > ?1 AND (?2 < 0 OR seq <= ?2) AND +tenant = ?3 AND evicted = 0
  ORDER BY seq, n LIMIT ?4`;
const FEEDBACK_FIGURES = `SELECT key, count(*) AS count, avg(score) AS score
  FROM feedback JOIN runs ON runs.n = feedback.run
  WHERE feedback.trace = ? AND runs.start_us IS NOT NULL GROUP BY key ORDER BY key`;

/** Characters of JSON that the main thread parses at a time. */
const PIECE_LENGTH = 256 * 1024;

function piecesOf(texts: readonly string[]): string[] {
  const pieces: string[] = [];
  let piece: string[] = [];
  let length = 0;
  for (const text of texts) {
    piece.push(text);
    length += text.length;
    if (length < PIECE_LENGTH) continue;
    pieces.push(`[${piece.join(',')}]`);
    piece = [];
    length = 0;
  }
  if (piece.length > 0) pieces.push(`[${piece.join(',')}]`);
  return pieces;
}
