import { exactJson, parseExact, withValues } from '../../../../payload/fields.ts';
import { canonicalId } from '../../../../run/time.ts';
import type { Feedback } from '../../../domain/feedback.ts';
import { grouped } from '../../../domain/grouped.ts';
import { spanKey } from '../../../domain/identity.ts';
import { mapInTurns } from '../../../domain/in-turns.ts';
import type { RunQuery, Scope } from '../../../domain/query/query.ts';
import { decidedProjects } from '../../../domain/run-values.ts';
import {
  type CostSource,
  PAYLOAD_FIELDS,
  type PayloadField,
  type RunDetails,
  type RunOutline,
  type RunSummary,
} from '../../../domain/run-view.ts';
import { outlineOfSummary, wholeTexts } from '../../../domain/summary.ts';
import { isInScope } from '../../../domain/trace/assemble.ts';
import { inOrder, type TreeNode } from '../../../domain/trace/tree.ts';
import { type Parsed, withinProject } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import {
  type ClickHouse,
  inParts,
  integer,
  type Query,
  type Sql,
  sql,
  string,
  strings,
  uuidParam,
  uuids,
} from '../connection.ts';
import { inTracesOf } from '../joins.ts';
import {
  byPrecedence,
  MESSAGE_COLUMNS,
  type MessageRow,
  mergedRun,
  type PayloadRow,
  payloadsIn,
  readMessages,
  type WholeMessageRow,
} from '../messages.ts';
import { attachmentInfos, readAttachment } from './attachments.ts';
import { ofMeantTraces, rowCondition } from './conditions.ts';
import { searchConditions } from './search.ts';

/** Returns the groups that contain messages of a run. Usually, there is at most one. */
export async function groupsOf(db: ClickHouse, tenant: string, runId: string): Promise<string[]> {
  const rows = await db.rows<{ group_id: string }>(
    sql`SELECT DISTINCT group_id FROM run_ids
      WHERE tenant = ${string(tenant)} AND toUInt128(id) = toUInt128(${uuidParam(runId)}) AND is_trace = 0`,
  );
  return rows.map(({ group_id }) => group_id);
}

export interface RunRow {
  readonly id: string;
  readonly trace: string;
  /** The group that contains the messages of the trace. */
  readonly group_id: string;
  readonly start_us: number;
  readonly summary: string;
  readonly dotted_order: string;
}

interface DetailedRow extends RunRow {
  readonly previews: string;
  readonly cost_source: string;
}

/**
 * `FINAL` reads every version of the rows that an index finds, also if the index does not find the later versions. The
 * default depends on the version of ClickHouse.
 */
const WITH_INDEXES = sql('SETTINGS use_skip_indexes_if_final = 1, use_skip_indexes_if_final_exact_mode = 1');

export async function readRow(db: ClickHouse, scope: Scope, runId: string): Promise<DetailedRow | undefined> {
  const [row] = await db.rows<DetailedRow>(
    sql`SELECT id, trace, group_id, start_us, summary, previews, dotted_order, cost_source FROM runs FINAL
      WHERE tenant = ${string(scope.tenant)} AND id = ${uuidParam(runId)} ${WITH_INDEXES}`,
  );
  return row !== undefined && isInScope(scope, { summary: summaryIn(row) }) ? row : undefined;
}

function summaryIn({ id, trace, summary }: RunRow): RunSummary & Pick<RunOutline, 'tools'> {
  return { id, trace_id: trace, ...JSON.parse(summary) };
}

function nodeOf({ id, start_us, dotted_order }: Omit<PlacedRun, 'parent'>, parent: string | undefined): TreeNode {
  return { id, parentId: parent || undefined, startUs: start_us, order: dotted_order || undefined };
}

export const readOutline: Query<'outline'> = async (db, scope, traceId) => {
  const rows = await db.rows<RunRow>(
    sql`SELECT id, trace, group_id, start_us, summary, dotted_order FROM runs FINAL
      WHERE tenant = ${string(scope.tenant)} AND ${ofMeantTraces(scope.tenant, [traceId])} ${WITH_INDEXES}`,
  );
  const runs = await mapInTurns(rows, (row) => {
    const summary = summaryIn(row);
    return { ...nodeOf(row, summary.parent_run_id), summary };
  });
  const shown = inOrder(runs).filter(({ run }) => isInScope(scope, run));
  return await mapInTurns(shown, ({ run: { summary } }) => JSON.stringify(outlineOfSummary(summary, summary.tools)));
};

export const readDetails: Query<'details'> = async (db, scope, runId) => {
  const row = await readRow(db, scope, runId);
  if (row === undefined) return undefined;
  const [messages, infos, feedback] = await Promise.all([
    readMessages<MessageRow & SizeRow>(db, scope.tenant, [row], sql`${MESSAGE_COLUMNS}, ${SIZES}`),
    attachmentInfos(db, scope.tenant, [runId]),
    feedbackIn(db, scope.tenant, [row.group_id]),
  ]);
  const own = messages.get(runId) ?? [];
  const { fields } = mergedRun(runId, own).run;
  const { error, extra, dotted_order } = fields;
  const attachments = infos.get(runId);
  const ofRun = feedback.filter(({ run_id }) => run_id === runId);
  const costSource: CostSource = JSON.parse(row.cost_source);
  const { tools: _, ...summary } = summaryIn(row);
  return {
    ...summary,
    ...wholeTexts(fields),
    ...JSON.parse(row.previews),
    ...costSource,
    dotted_order: row.dotted_order || dotted_order || '',
    payload_sizes: payloadSizes(own),
    ...(error && { error }),
    ...(extra && { extra }),
    ...(attachments && { attachments }),
    ...(ofRun.length > 0 && { feedback: ofRun }),
  };
};

/** See `QueryStore.projectsOf`. Reads the messages, because a run may not be in the table `runs` yet. */
export const readProjectsOf: Query<'projectsOf'> = async (db, scope, runIds) => {
  const { tenant } = scope;
  const places = await db.rows<{ id: string; group_id: string }>(
    sql`SELECT DISTINCT id, group_id FROM run_ids
      WHERE tenant = ${string(tenant)} AND toUInt128(id) IN ${idsIn(runIds)} AND is_trace = 0`,
  );
  const messages = await readMessages<MessageRow>(db, tenant, places, MESSAGE_COLUMNS);
  return decidedProjects(
    scope,
    [...messages].map(([id, rows]) => mergedRun(id, rows).run.fields),
  );
};

export const readMergedRuns: Query<'mergedRuns'> = async (db, { tenant }, runs) => {
  const ids = runs.filter((run) => typeof run === 'string');
  const spans = runs.filter((run) => typeof run !== 'string');
  const ofTenant = sql`tenant = ${string(tenant)}`;
  const traceIds = idsIn([...new Set(spans.map(({ traceId }) => canonicalId(traceId)))]);
  const spanIds = strings(spans.map(({ spanId }) => spanId));
  const found = await db.rows<{ id: string; group_id: string }>(
    sql`SELECT DISTINCT id, group_id FROM run_ids WHERE ${ofTenant} AND is_trace = 0
      AND (toUInt128(id) IN ${idsIn(ids)} OR id IN (SELECT id FROM messages WHERE ${ofTenant} AND toUInt128(group_id) IN (
          SELECT toUInt128(group_id) FROM run_ids WHERE ${ofTenant} AND toUInt128(id) IN ${traceIds} AND is_trace = 1)
        AND has(${spanIds}, JSONExtractString(searched, 'extra', 'metadata', 'otel', 'span_id'))))`,
  );
  if (found.length === 0) return [];
  const messages = await readMessages<WholeMessageRow>(db, tenant, found, WHOLE_MESSAGE);
  const keys = new Set(spans.map(spanKey));
  return [...messages].flatMap(([id, rows]) => {
    const { run } = mergedRun(id, rows);
    if (!ids.includes(id) && !keys.has(run.identity.span ?? '')) return [];
    const payloads = withValues(payloadsIn(rows), (text) => parseExact(`${text}`));
    return [{ id, fields: { ...run.fields, ...payloads } }];
  });
};

const WHOLE_MESSAGE = sql`${MESSAGE_COLUMNS}, inputs, outputs, events`;

function idsIn(ids: readonly string[]): Sql {
  return sql`(SELECT toUInt128(arrayJoin(${uuids(ids)})))`;
}

type SizeRow = { readonly [Field in PayloadField as `${Field}_size`]: number };
const SIZES = sql(PAYLOAD_FIELDS.map((field) => `length(${field}) AS ${field}_size`).join(', '));

function payloadSizes(rows: readonly (MessageRow & SizeRow)[]): RunDetails['payload_sizes'] {
  const sizes: RunDetails['payload_sizes'] = {};
  for (const row of rows.toSorted(byPrecedence)) {
    for (const field of PAYLOAD_FIELDS) if (row[`${field}_size`] > 0) sizes[field] = row[`${field}_size`];
  }
  return sizes;
}

/** Returns the feedback on the runs of these groups, in order of arrival. Includes feedback on deleted runs. */
export async function feedbackIn(db: ClickHouse, tenant: string, groups: readonly string[]): Promise<Feedback[]> {
  const ofTenant = sql`tenant = ${string(tenant)}`;
  const inTraces = inTracesOf('group_id', ofTenant, groups);
  const rows = await db.rows<{ json: string }>(
    sql`SELECT json FROM feedback FINAL WHERE ${ofTenant} AND ${inTraces} ORDER BY n`,
  );
  return rows.map(({ json }) => parseExact(json));
}

export const readPayload: Query<'payload'> = async (db, scope, runId, field) => {
  const row = await readRow(db, scope, runId);
  if (row === undefined) return undefined;
  const messages = await readMessages<PayloadRow>(db, scope.tenant, [row], sql(`id, kind, received_us, ${field}`));
  return messages
    .get(runId)
    ?.toSorted(byPrecedence)
    .findLast((message) => message[field] !== '')?.[field];
};

export const findAttachment: Query<'attachment'> = async (db, scope, runId, name) => {
  const row = await readRow(db, scope, runId);
  return row && (await readAttachment(db, scope.tenant, runId, name));
};

const PAGE_TRACES = 20_000;
/** Number of traces per query when reading runs without their payloads. */
const READ_TRACES = 2_000;
/** Number of runs in the first query for payloads, and at most. */
const FIRST_RUNS = 200;
const READ_RUNS = 2_000;
/** Length of the text that a query for payloads should return. */
const READ_LENGTH = 8 * 1024 * 1024;

/** A trace and the ids of its runs that match a query. */
interface MatchingTrace {
  readonly trace: string;
  readonly first_us: number;
  readonly ids: readonly string[];
}

export async function* readRuns(db: ClickHouse, scope: Scope, query: Parsed<RunQuery>): AsyncGenerator<string> {
  let size = FIRST_RUNS;
  const pieces = async function* (): AsyncGenerator<string[]> {
    for await (const runs of matchingRuns(db, scope, query)) {
      for (let at = 0, end = 0; at < runs.length; at = end) {
        end = Math.min(runs.length, at + size);
        let length = 0;
        for await (const texts of inParts(runs.slice(at, end), (some) => runTexts(db, scope.tenant, some))) {
          for (const text of texts) length += text.length;
          yield texts;
        }
        size = Math.min(READ_RUNS, Math.ceil(((end - at) * READ_LENGTH) / length));
      }
    }
  };
  for await (const texts of ahead(pieces())) yield* texts;
}

/** Requests the next item of a source while the caller uses the one before. */
async function* ahead<Item>(source: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let next = source.next();
  for (let { done, value } = await next; done !== true; { done, value } = await next) {
    next = source.next();
    // Its rejection is thrown when the caller asks for this item, if ever.
    next.catch(() => undefined);
    yield value;
  }
}

/** Yields the runs that match a query, without their payloads. */
async function* matchingRuns(db: ClickHouse, scope: Scope, query: Parsed<RunQuery>) {
  const filter = withinProject(scope, query.filter);
  const search = await searchConditions(db, scope.tenant, filter, 'runs');
  const condition = all([rowCondition(scope.tenant, filter), ...search]);
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let page: readonly MatchingTrace[] = [];
  do {
    page = await matchingTraces(db, condition, page.at(-1), Math.min(left, PAGE_TRACES));
    for (let at = 0; at < page.length && left > 0; at += READ_TRACES) {
      const part = page.slice(at, at + READ_TRACES);
      for await (const runs of inParts(part, (traces) => runsOfTraces(db, scope, traces))) {
        const wanted = runs.slice(0, left);
        left -= wanted.length;
        yield inStoredOrder(wanted);
      }
    }
  } while (left > 0 && page.length === PAGE_TRACES);
}

async function matchingTraces(db: ClickHouse, condition: Sql, after: MatchingTrace | undefined, limit: number) {
  const isAfter =
    after === undefined ? sql('1') : sql`(first_us, trace) > (${integer(after.first_us)}, ${uuidParam(after.trace)})`;
  return await db.rows<MatchingTrace>(
    sql`SELECT trace, min(start_us) AS first_us, groupArray(id) AS ids FROM runs FINAL WHERE ${condition}
      GROUP BY trace HAVING ${isAfter} ORDER BY first_us, trace LIMIT ${integer(limit)}`,
  );
}

/** A run as a node of its trace, without its summary. */
interface PlacedRun extends Pick<RunRow, 'id' | 'trace' | 'group_id' | 'start_us' | 'dotted_order'> {
  readonly parent: string;
}

/** Returns the matching runs of traces, in order. Omits runs that were deleted since the first query. */
async function runsOfTraces(db: ClickHouse, { tenant }: Scope, matching: readonly MatchingTrace[]) {
  const ofTraces = sql`tenant = ${string(tenant)} AND trace IN (${uuids(matching.map(({ trace }) => trace))})`;
  // The sort key begins with the start time, so that ClickHouse reads only the part of the table between these times.
  const rows = await db.rows<PlacedRun>(
    sql`WITH (SELECT (min(start_us), max(start_us)) FROM runs WHERE ${ofTraces}) AS times
      SELECT id, trace, group_id, start_us, dotted_order, JSONExtractString(summary, 'parent_run_id') AS parent
      FROM runs FINAL WHERE ${ofTraces} AND start_us BETWEEN times.1 AND times.2`,
  );
  const nodes = rows.map((row) => ({ ...nodeOf(row, row.parent), row }));
  const ordered = inOrder(nodes).map(({ run: { row }, order: dotted_order }): PlacedRun => ({ ...row, dotted_order }));
  const byTrace = grouped(ordered, ({ trace }) => trace);
  return matching.flatMap(({ trace, ids }) => {
    const wanted = new Set(ids);
    return (byTrace.get(trace) ?? []).filter(({ id }) => wanted.has(id));
  });
}

/** Sorts traces as the table `messages` is sorted, so that queries for their payloads read few of its granules. */
function inStoredOrder(runs: readonly PlacedRun[]): PlacedRun[] {
  const traces = [...grouped(runs, ({ trace }) => trace).values()];
  const groupOf = ([first]: readonly PlacedRun[]): string => first?.group_id ?? '';
  return traces.sort((a, b) => (groupOf(a) < groupOf(b) ? -1 : groupOf(a) > groupOf(b) ? 1 : 0)).flat();
}

async function runTexts(db: ClickHouse, tenant: string, runs: readonly PlacedRun[]): Promise<string[]> {
  const runIds = runs.map(({ id }) => id);
  const [byRun, infos] = await Promise.all([
    readMessages<WholeMessageRow>(db, tenant, runs, WHOLE_MESSAGE),
    attachmentInfos(db, tenant, runIds),
  ]);
  return runs.map(({ id, trace, parent, dotted_order }) => {
    const own = byRun.get(id) ?? [];
    const attachments = infos.get(id);
    const record = {
      ...mergedRun(id, own).run.fields,
      id,
      trace_id: trace,
      dotted_order,
      ...(parent && { parent_run_id: parent }),
      ...(attachments && { attachments }),
    };
    const texts = { inputs: '{}', ...payloadsIn(own) };
    const payloads = Object.entries(texts).map(([field, text]) => `,"${field}":${text}`);
    return `${exactJson(record).slice(0, -1)}${payloads.join('')}}`;
  });
}
