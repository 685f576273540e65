import { exactJson, parseExact } from '../../../../payload/fields.ts';
import type { Attachment } from '../../../../run/record.ts';
import type { Feedback } from '../../../domain/feedback.ts';
import { spanKey } from '../../../domain/identity.ts';
import type { ListQuery, RunQuery, Scope } from '../../../domain/query/query.ts';
import { deletionOf } from '../../../domain/retention/deletion.ts';
import { projectSummaries } from '../../../domain/run-values.ts';
import { type AttachmentInfo, PAYLOAD_FIELDS } from '../../../domain/run-view.ts';
import { type StoredRunFacts, wholeTexts } from '../../../domain/summary.ts';
import { inOrder, ordersOf, type TreeNode } from '../../../domain/trace/tree.ts';
import {
  ALL_RUNS,
  equal,
  inProject,
  type Parsed,
  type RunFilter,
  valuesIn,
  withinProject,
} from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import type { StoredKey } from '../../key-store.ts';
import { type RevokedToken, type Store, StoreError } from '../../store.ts';
import { countsIn } from '../deletion.ts';
import { idBytes, idText, type SqliteConnection, type SqlValue } from '../file/database.ts';
import { copyTo, type StoreOwner } from '../file/file.ts';
import { SqliteKeys } from '../keys.ts';
import { parsedPayloads, payloadInRow, payloadSizes } from '../payloads.ts';
import { rowFields, runAt, SELECT_RUNS, type SelectedRun } from '../run-row.ts';
import { EndedError } from '../threads/thread-pool.ts';
import { defineFilterFunctions, IS_GOING_ON, SqlFilter } from './conditions.ts';
import {
  type Condition,
  isKept,
  isSessionId,
  ofProject,
  outlineIn,
  RUN_SORTS,
  rowsOfPage,
  suggestionsIn,
  summaryIn,
  traceSorts,
  tracesWith,
} from './lists.ts';
import { SqliteSearch } from './search.ts';
import { statisticsIn } from './statistics.ts';
import { type TimeLimit, timeLimitOf } from './time-limit.ts';
import { threadSummaryIn, threadsIn, traceSummaryIn } from './trace-lists.ts';

/** Key of a run, and its derived `dotted_order` if no message contains one. */
type RunKey = readonly [n: number, derivedOrder: string | undefined];

/** A method of the store, in the thread that runs it. */
type Read<Name extends keyof Store> = (...args: Parameters<Store[Name]>) => Awaited<ReturnType<Store[Name]>>;

export class SqliteReader {
  readonly #connection: SqliteConnection;
  readonly #search: SqliteSearch;
  readonly #keys: SqliteKeys;
  readonly #ended: Int32Array | undefined;
  #limit: TimeLimit = timeLimitOf('', true);
  #endMs = Number.POSITIVE_INFINITY;
  #ending: StoreError | undefined;
  /** Returns the process that has the store open for writing, or undefined if there is none. */
  readonly owner: () => StoreOwner | undefined;

  /** `ended` is undefined in the thread for quick queries. Otherwise, see `ConnectionOptions`. */
  constructor(connection: SqliteConnection, owner: () => StoreOwner | undefined, ended?: Int32Array) {
    this.#ended = ended;
    this.#connection = connection;
    this.owner = owner;
    const check = (): void => this.#check();
    this.#search = new SqliteSearch(connection, check);
    this.#keys = new SqliteKeys(connection);
    defineFilterFunctions(connection, check);
  }

  /** Calls a method within its time limit. Throws a `StoreError` if the method must end. */
  async limited<Result>(name: string, call: () => Result): Promise<Awaited<Result>> {
    this.#limit = timeLimitOf(name, this.#ended === undefined);
    this.#endMs = this.#limit.now() + this.#limit.maxMs;
    this.#ending = undefined;
    try {
      return await call();
    } catch (error) {
      if (this.#ending === undefined) throw error;
      this.#connection.forgetStatements();
      // Not each engine preserves the error that a function of SQL throws.
      throw this.#ending;
    }
  }

  /** Throws if the query must end. Long queries call this for some of their rows. */
  #check(): void {
    if (this.#ended !== undefined && Atomics.load(this.#ended, 0) === 1) {
      this.#ending = new EndedError();
    } else if (this.#limit.now() >= this.#endMs) {
      this.#ending = new StoreError('busy', this.#limit.problem, 10);
    }
    if (this.#ending !== undefined) throw this.#ending;
  }

  key(id: string): StoredKey | undefined {
    return this.#keys.key(id);
  }

  unindexedRuns(): number {
    return this.#connection.number('SELECT count(*) FROM unindexed');
  }

  /** Returns the keys of matching runs, grouped by trace, parents before children. */
  runKeys(scope: Scope, query: Parsed<RunQuery>): RunKey[] {
    const { sql, params } = this.#conditionOf(scope, query.filter);
    const select = `SELECT n, trace FROM runs WHERE ${sql}`;
    const rows = this.#connection.all<{ n: number; trace: number }>(select, ...params);
    const found = new Set(rows.map(({ n }) => n));
    const traces = [...new Set(rows.map(({ trace }) => trace))].map((trace) => {
      this.#check();
      return inOrder(this.#nodes(trace)).filter(({ run }) => found.has(run.n));
    });
    traces.sort(([a], [b]) => ((a?.order ?? '') < (b?.order ?? '') ? -1 : 1));
    const keys = traces.flat().map(({ run, order }): RunKey => [run.n, run.order === undefined ? order : undefined]);
    return keys.slice(0, query.limit);
  }

  /** Returns runs as JSON texts. Omits runs that have been deleted. */
  runTexts(_: Scope, keys: readonly RunKey[]): string[] {
    return keys.flatMap(([n, order]) => {
      this.#check();
      const row = runAt(this.#connection, n);
      if (row === undefined || row.hidden !== null) return [];
      const record = {
        ...rowFields(row),
        id: idText(row.id),
        trace_id: idText(row.trace_id),
        ...(order !== undefined && { dotted_order: order }),
        ...this.#attachments(n),
      };
      const payloads = PAYLOAD_FIELDS.map((field) => {
        const text = payloadInRow(this.#connection, n, field) ?? (field === 'inputs' ? '{}' : undefined);
        return text === undefined ? '' : `,"${field}":${text}`;
      });
      return [`${exactJson(record).slice(0, -1)}${payloads.join('')}}`];
    });
  }

  readonly attachment: Read<'attachment'> = (scope, runId, name) => {
    const select = 'SELECT mime_type AS mimeType, bytes FROM attachments WHERE run = ? AND name = ?';
    const n = this.#find(scope, runId)?.n ?? null;
    const row = this.#connection.one<Omit<Attachment, 'name'>>(select, n, name);
    return row && { name, ...row };
  };

  readonly projects: Read<'projects'> = (scope, range) => {
    const { sql, params } = this.#conditionOf(scope, { ...ALL_RUNS, range });
    const select = 'SELECT project, count(*) AS traces, max(start_us) AS last_us FROM runs';
    return projectSummaries(this.#connection.all(`${select} WHERE is_root = 1 AND ${sql} GROUP BY project`, ...params));
  };

  readonly traces: Read<'traces'> = (scope, query) => {
    const tenant = this.#tenant(scope);
    const filter = withinProject(scope, query.filter);
    const conditions = this.#rootConditions(tenant, filter);
    const from = `runs ${this.#rootIndex(tenant, filter, query)} JOIN traces ON traces.n = runs.trace`;
    const { items, ...page } = rowsOfPage(this.#connection, query, from, conditions, traceSorts(filter.isLimited));
    return { items: items.map((row) => traceSummaryIn(this.#connection, row, filter.isLimited)), ...page };
  };

  readonly threads: Read<'threads'> = (scope, query) => {
    const tenant = this.#tenant(scope);
    return threadsIn(
      this.#connection,
      query,
      this.#rootConditions(tenant, withinProject(scope, query.filter)),
      (thread) => {
        const turns = withinProject(scope, {
          ...ALL_RUNS,
          projects: query.filter.projects,
          conditions: [equal('thread', thread)],
        });
        return threadSummaryIn(this.#connection, thread, this.#rootConditions(tenant, turns), turns.isLimited);
      },
    );
  };

  readonly list: Read<'list'> = (scope, query) => {
    const conditions = this.#conditionsOf(this.#tenant(scope), withinProject(scope, query.filter));
    const { items, ...page } = rowsOfPage(this.#connection, query, 'runs', conditions, RUN_SORTS);
    return { items: items.map((row) => summaryIn(this.#connection, row)), ...page };
  };

  readonly outline: Read<'outline'> = (scope, traceId) => {
    const { sql, params } = this.#conditionOf(scope, { ...ALL_RUNS, conditions: [equal('trace', traceId)] });
    const outlines = new Map<number, string>();
    for (const row of this.#connection.each<SelectedRun>(`${SELECT_RUNS} WHERE ${sql}`, ...params)) {
      outlines.set(row.n, JSON.stringify(outlineIn(row)));
    }
    const nodes = outlines.size === 0 ? [] : this.#nodes(this.#trace(this.#tenant(scope), traceId) ?? -1);
    return inOrder(nodes).flatMap(({ run }) => outlines.get(run.n) ?? []);
  };

  readonly details: Read<'details'> = (scope, runId) => {
    const row = this.#find(scope, runId);
    if (row === undefined) return undefined;
    const fields = rowFields(row);
    const { error, extra } = fields;
    const { cost }: StoredRunFacts = JSON.parse(row.facts ?? '{}');
    const feedback = this.#feedbackWhere('run = ? ORDER BY feedback.n', row.n);
    return {
      ...summaryIn(this.#connection, row),
      ...wholeTexts(fields),
      ...cost,
      dotted_order: this.#orderOf(row),
      payload_sizes: payloadSizes(this.#connection, row.n),
      ...(error && { error }),
      ...(extra && { extra }),
      ...this.#attachments(row.n),
      ...(feedback.length > 0 && { feedback }),
    };
  };

  readonly projectsOf: Read<'projectsOf'> = (scope, runIds) => {
    const tenant = this.#tenant(scope);
    const inScope = scope.project === undefined ? [] : [ofProject(this.#connection, tenant, scope.project)];
    const { sql, params } = all([isKept('runs'), ...inScope]);
    const ids = JSON.stringify(runIds.map((id) => id.replaceAll('-', '')));
    const rows = this.#connection.all<{ project: string | null }>(`${PROJECTS} WHERE ${sql}`, ids, tenant, ...params);
    return [...new Set(rows.flatMap(({ project }) => project ?? []))];
  };

  readonly payload: Read<'payload'> = (scope, runId, field) => {
    const run = this.#find(scope, runId);
    return run && payloadInRow(this.#connection, run.n, field);
  };

  readonly mergedRuns: Read<'mergedRuns'> = (scope, runs) => {
    const ids = runs.flatMap((run) => (typeof run === 'string' ? run.replaceAll('-', '') : []));
    const spans = runs.flatMap((run) => (typeof run === 'string' ? [] : spanKey(run)));
    const keys = [ids, spans].map((texts) => JSON.stringify(texts));
    const rows = this.#connection.all<SelectedRun>(MERGED, this.#tenant(scope), ...keys);
    return rows.map((row) => {
      const payloads = parsedPayloads(this.#connection, row.n, PAYLOAD_FIELDS);
      return { id: idText(row.id), fields: { ...rowFields(row), ...payloads } };
    });
  };

  readonly statistics: Read<'statistics'> = (scope, query) => {
    const filter = withinProject(scope, query.filter);
    const conditions = all(this.#conditionsOf(this.#tenant(scope), filter));
    return statisticsIn(this.#connection, query, conditions, filter.isLimited);
  };

  readonly suggestions: Read<'suggestions'> = (scope, { project, ...query }) =>
    suggestionsIn(this.#connection, query, this.#conditionOf(scope, inProject(project)));

  readonly feedback: Read<'feedback'> = (scope, traceIds) => {
    const tenant = this.#tenant(scope);
    const { sql, params } = this.#conditionOf(scope, ALL_RUNS);
    const traces = traceIds.flatMap((id) => this.#trace(tenant, id) ?? []);
    const condition = `feedback.trace IN (SELECT value FROM json_each(?)) AND ${sql} ORDER BY created_at, feedback.n`;
    return this.#feedbackWhere(condition, JSON.stringify(traces), ...params);
  };

  readonly feedbackWithId: Read<'feedbackWithId'> = (scope, id) => {
    const { sql, params } = this.#conditionOf(scope, ALL_RUNS);
    return this.#feedbackWhere(`feedback.id = ? AND ${sql} LIMIT 1`, id, ...params)[0];
  };

  readonly tokenSecrets: Read<'tokenSecrets'> = () => {
    const sql = 'SELECT secret, created_ms FROM token_secrets ORDER BY created_ms';
    const rows = this.#connection.all<{ secret: string; created_ms: number }>(sql);
    return rows.map(({ secret, created_ms: createdMs }) => ({ secret, createdMs }));
  };

  revokedTokens(scope: Scope): RevokedToken[] {
    const sql = 'SELECT id, revoked_ms FROM revoked_tokens WHERE tenant = ?';
    const rows = this.#connection.all<{ id: Uint8Array; revoked_ms: number }>(sql, this.#tenant(scope));
    return rows.map(({ id, revoked_ms: revokedMs }) => ({ id: idText(id), revokedMs }));
  }

  tenants(): string[] {
    return this.#connection.all<{ name: string }>('SELECT name FROM tenants ORDER BY n').map(({ name }) => name);
  }

  readonly tokensRevokedMs: Read<'tokensRevokedMs'> = (scope, ids) => {
    const sql = 'SELECT revoked_ms FROM revoked_tokens WHERE tenant = ? AND id = ?';
    const tenant = this.#tenant(scope);
    const times = ids.map((id) => this.#connection.number(sql, tenant, idBytes(id)));
    return times.some((ms) => ms > 0) ? Math.max(...times) : undefined;
  };

  readonly removable: Read<'removable'> = (scope, target) =>
    countsIn(this.#connection, this.#tenant(scope), deletionOf(scope, target), IS_GOING_ON);

  backup(path: string): void {
    copyTo(this.#connection, path);
  }

  #tenant({ tenant }: Scope): number {
    return this.#connection.one<{ n: number }>('SELECT n FROM tenants WHERE name = ?', tenant)?.n ?? -1;
  }

  #trace(tenant: number, id: string): number | undefined {
    const { sql, params } = tracesWith(tenant, [id]);
    return this.#connection.one<{ n: number }>(sql, ...params)?.n;
  }

  /** Returns a run if the run is visible and within the scope. */
  #find(scope: Scope, runId: string): SelectedRun | undefined {
    const row = this.#connection.one<SelectedRun>(BY_ID, this.#tenant(scope), idBytes(runId));
    return scope.project === undefined || [row?.project, row?.session_id].includes(scope.project) ? row : undefined;
  }

  #conditionOf(scope: Scope, filter: RunFilter): Condition {
    return all(this.#conditionsOf(this.#tenant(scope), withinProject(scope, filter)));
  }

  #conditionsOf(tenant: number, filter: RunFilter): Condition[] {
    const conditions = [...new SqlFilter(this.#connection, this.#search, tenant, filter).conditions(), IS_GOING_ON];
    return filter.search === undefined ? conditions : [...conditions, this.#search.condition(filter.search)];
  }

  /** Returns conditions for root runs. The search words may occur in any run of the trace. */
  #rootConditions(tenant: number, filter: RunFilter): Condition[] {
    const sqlFilter = new SqlFilter(this.#connection, this.#search, tenant, filter);
    const conditions = [{ sql: 'runs.is_root = 1', params: [] }, ...sqlFilter.conditions('traces'), IS_GOING_ON];
    if (filter.search === undefined) return conditions;
    const { sql, params } = all([...sqlFilter.inside('runs'), IS_GOING_ON, this.#search.condition(filter.search)]);
    return [...conditions, { sql: `runs.trace IN (SELECT runs.trace FROM runs WHERE ${sql})`, params }];
  }

  /** Makes SQLite use an index on root runs. Otherwise, the query planner might use an index on all runs. */
  #rootIndex(tenant: number, filter: RunFilter, { sort = 'start_time' }: Parsed<ListQuery>): string {
    const { projects, conditions, search } = filter;
    const isPlain = conditions.every((node) => 'field' in node && WITHOUT_INDEX.includes(node.field));
    if (!isPlain || search !== undefined || sort !== 'start_time') return '';
    if (valuesIn(filter, 'name')?.length === 1) return 'INDEXED BY roots_by_name';
    const [project] = projects;
    if (project === undefined || isSessionId(this.#connection, tenant, project)) return '';
    return 'INDEXED BY roots_by_project';
  }

  #nodes(trace: number): (TreeNode & { readonly n: number })[] {
    return this.#connection
      .all<{ n: number; id: Uint8Array; parent: Uint8Array | null; start_us: number; own: string | null }>(NODES, trace)
      .map(({ n, id, parent, start_us: startUs, own }) => {
        const parentId = parent === null ? undefined : idText(parent);
        return { n, id: idText(id), parentId, startUs, order: own ?? undefined };
      });
  }

  #orderOf({ id, tenant, trace }: SelectedRun): string {
    const path = new Map<string, TreeNode>();
    for (let bytes: Uint8Array | null = id; bytes !== null && !path.has(idText(bytes)); ) {
      const row: SelectedRun | undefined = this.#connection.one<SelectedRun>(BY_ID, tenant, bytes);
      if (row === undefined || row.trace !== trace) break;
      const { dotted_order: order, parent_run_id: parentId } = rowFields(row);
      path.set(idText(bytes), { id: idText(bytes), parentId, startUs: row.start_us ?? 0, order });
      bytes = order === undefined ? row.parent : null;
    }
    return ordersOf([...path.values()]).get(idText(id)) ?? '';
  }

  #attachments(n: number): { attachments?: AttachmentInfo[] } {
    const sql = 'SELECT name, mime_type, size FROM attachments WHERE run = ? ORDER BY n';
    const attachments = this.#connection.all<AttachmentInfo>(sql, n).map((row) => ({ ...row }));
    return attachments.length === 0 ? {} : { attachments };
  }

  #feedbackWhere(condition: string, ...params: SqlValue[]): Feedback[] {
    const sql = `SELECT json FROM feedback CROSS JOIN runs ON runs.n = feedback.run WHERE ${condition}`;
    const rows = this.#connection.all<{ json: string }>(sql, ...params);
    return rows.map(({ json }) => parseExact(json));
  }
}

/** Fields for which no index is better than an index on root runs. */
const WITHOUT_INDEX = 'name type outcome latency tokens cost cached root internal'.split(' ');

const BY_ID = `${SELECT_RUNS} WHERE runs.tenant = ? AND runs.id = ? AND start_us IS NOT NULL AND hidden.kind IS NULL`;
/** `UNION` because SQLite uses no index for `OR`. */
const MERGED = `${SELECT_RUNS} WHERE hidden.kind IS NULL AND runs.n IN (
  SELECT runs.n FROM json_each(?2) AS ids CROSS JOIN runs ON runs.tenant = ?1 AND runs.id = unhex(ids.value)
  UNION SELECT runs.n FROM json_each(?3) AS spans CROSS JOIN runs ON runs.tenant = ?1 AND runs.span = unhex(spans.value))`;
/** `CROSS JOIN` looks up each id. Otherwise, SQLite may scan all runs of the tenant. */
const PROJECTS = `SELECT coalesce(project, fields ->> '$.session_name', fields ->> '$.session_id') AS project
  FROM json_each(?) AS ids CROSS JOIN runs ON runs.tenant = ? AND runs.id = unhex(ids.value)
  CROSS JOIN details ON details.n = runs.n`;
const NODES = `SELECT runs.n AS n, id, parent, start_us, fields ->> '$.dotted_order' AS own
  FROM runs JOIN details ON details.n = runs.n WHERE trace = ? AND start_us IS NOT NULL AND ${IS_GOING_ON.sql}`;
