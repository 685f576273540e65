import type { Attachment } from '../../../run/record.ts';
import { isInScope, type TracedRun } from '../../domain/assemble.ts';
import type { Feedback } from '../../domain/feedback.ts';
import type { PriceList } from '../../domain/prices.ts';
import type { RunQuery, Scope } from '../../domain/query.ts';
import { isOfProject, projectOf } from '../../domain/run-values.ts';
import { PAYLOAD_FIELDS, type PayloadField, type RunDetails } from '../../domain/run-view.ts';
import { outlineOf, summaryOf } from '../../domain/summary.ts';
import { inOrder } from '../../domain/tree.ts';
import { type Parsed, within } from '../../filter/run-filter.ts';
import { all } from '../../filter/sql.ts';
import { attachmentInfos, readAttachment } from './attachments.ts';
import { conditionOf } from './conditions.ts';
import { type ClickHouse, inParts, integer, type Sql, sql, string, uuid, uuids } from './connection.ts';
import { type Group, readGroups } from './groups.ts';
import { MESSAGE_COLUMNS, type MessageRow, type PayloadRow, payloadsIn, readMessages, runOf } from './messages.ts';
import { searchConditions } from './search.ts';

/** Returns the groups that may contain runs of a trace. */
export async function groupsOfTrace(db: ClickHouse, tenant: string, traceId: string): Promise<string[]> {
  return [...new Set([traceId, ...(await groupsOfRun(db, tenant, traceId))])];
}

/** Returns the groups that contain messages of a run. */
export async function groupsOfRun(db: ClickHouse, tenant: string, runId: string): Promise<string[]> {
  const rows = await db.rows<{ grp: string }>(
    sql('SELECT DISTINCT grp FROM run_ids WHERE tenant = ? AND id = ?', string(tenant), uuid(runId)),
  );
  return rows.map(({ grp }) => grp);
}

/** A visible run within the scope, and its group. */
interface FoundRun {
  readonly group: Group;
  readonly traced: TracedRun;
}

async function findRun(db: ClickHouse, scope: Scope, runId: string, prices: PriceList): Promise<FoundRun | undefined> {
  const groups = await readGroups(db, scope.tenant, await groupsOfRun(db, scope.tenant, runId), prices);
  const found = groups.flatMap((group) =>
    group.traces.flatMap(({ runs }) => runs.map((traced): FoundRun => ({ group, traced }))),
  );
  return found.find(({ traced }) => traced.id === runId && isInScope(scope, traced));
}

/** Returns a trace's visible runs within the scope, in order. */
export function visibleRuns(groups: readonly Group[], scope: Scope, traceId: string): TracedRun[] {
  const traces = groups.flatMap((group) => group.traces.filter(({ id }) => id === traceId));
  const runs = inOrder(traces.flatMap((trace) => trace.runs)).map(({ run }) => run);
  return runs.filter((run) => isInScope(scope, run));
}

/** See `QueryStore.outline`. */
export async function readOutline(db: ClickHouse, scope: Scope, traceId: string, prices: PriceList): Promise<string[]> {
  const groups = await readGroups(db, scope.tenant, await groupsOfTrace(db, scope.tenant, traceId), prices);
  return visibleRuns(groups, scope, traceId).map(({ summary }) => JSON.stringify(outlineOf(summary)));
}

/** See `QueryStore.details`. */
export async function readDetails(
  db: ClickHouse,
  scope: Scope,
  runId: string,
  prices: PriceList,
): Promise<RunDetails | undefined> {
  const found = await findRun(db, scope, runId, prices);
  if (found === undefined) return undefined;
  const { run, summary, trace, costSource } = found.traced;
  const { error, extra } = run.fields;
  const [sizes, infos, feedbackOfGroup] = await Promise.all([
    payloadSizes(db, scope.tenant, found),
    attachmentInfos(db, scope.tenant, [runId]),
    feedbackIn(db, scope.tenant, found.group.grps),
  ]);
  const attachments = infos.get(runId);
  const feedback = feedbackOfGroup.filter(({ run_id }) => run_id === runId);
  return {
    ...summary,
    ...costSource,
    dotted_order: inOrder(trace.runs).find(({ run: { id } }) => id === runId)?.order ?? '',
    payload_sizes: sizes,
    ...(error && { error }),
    ...(extra && { extra }),
    ...(attachments && { attachments }),
    ...(feedback.length > 0 && { feedback }),
  };
}

/** See `QueryStore.projectsOf`. Reads the messages, because a run may not be in the table `runs` yet. */
export async function readProjectsOf(db: ClickHouse, scope: Scope, runIds: readonly string[]): Promise<string[]> {
  const { tenant, project } = scope;
  const places = await db.rows<{ id: string; grps: string[] }>(
    sql(
      'SELECT id, groupArray(grp) AS grps FROM run_ids WHERE tenant = ? AND id IN (?) GROUP BY id',
      string(tenant),
      uuids(runIds),
    ),
  );
  const messages = await readMessages<MessageRow>(db, tenant, places, MESSAGE_COLUMNS);
  const found = [...messages].flatMap(([id, rows]) => summaryOf(id, id, runOf(id, rows).run.fields, {}) ?? []);
  const own = found.filter((summary) => project === undefined || isOfProject(summary, project));
  return [...new Set(own.map(projectOf))];
}

async function payloadSizes(
  db: ClickHouse,
  tenant: string,
  { group, traced }: FoundRun,
): Promise<RunDetails['payload_sizes']> {
  const rows = await db.rows<Readonly<Record<PayloadField, number>>>(
    sql(
      `SELECT length(m.inputs) AS inputs, length(m.outputs) AS outputs, length(m.events) AS events FROM messages AS m
        WHERE tenant = ? AND grp IN (?) AND id = ? ORDER BY kind, received_us`,
      string(tenant),
      uuids(group.grps),
      uuid(traced.id),
    ),
  );
  const sizes: RunDetails['payload_sizes'] = {};
  for (const row of rows) for (const field of PAYLOAD_FIELDS) if (row[field] > 0) sizes[field] = row[field];
  return sizes;
}

/** Returns the feedback on the runs of these groups, in order of arrival. Includes feedback on deleted runs. */
export async function feedbackIn(db: ClickHouse, tenant: string, grps: readonly string[]): Promise<Feedback[]> {
  const rows = await db.rows<{ json: string }>(
    sql(
      'SELECT json FROM feedback FINAL WHERE tenant = ? AND grp IN (?) ORDER BY n',
      string(tenant),
      uuids([...new Set(grps)]),
    ),
  );
  return rows.map(({ json }) => JSON.parse(json));
}

/** See `QueryStore.payload`. */
export async function readPayload(
  db: ClickHouse,
  scope: Scope,
  runId: string,
  field: PayloadField,
  prices: PriceList,
): Promise<string | undefined> {
  const found = await findRun(db, scope, runId, prices);
  if (found === undefined) return undefined;
  const [row] = await db.rows<{ text: string }>(
    sql(
      `SELECT ${field} AS text FROM messages WHERE tenant = ? AND grp IN (?) AND id = ? AND ${field} != ''
        ORDER BY kind DESC, received_us DESC LIMIT 1`,
      string(scope.tenant),
      uuids(found.group.grps),
      uuid(runId),
    ),
  );
  return row?.text;
}

/** See `QueryStore.attachment`. */
export async function findAttachment(
  db: ClickHouse,
  scope: Scope,
  runId: string,
  name: string,
  prices: PriceList,
): Promise<Attachment | undefined> {
  const found = await findRun(db, scope, runId, prices);
  return found && (await readAttachment(db, scope.tenant, runId, name));
}

/** Number of trace ids per query. */
const PAGE_TRACES = 20_000;
/** Number of traces per query when reading runs without their payloads. */
const READ_TRACES = 100;
/** Number of runs per query when reading payloads. */
const READ_RUNS = 50;

/** A trace and the ids of its runs that match a query. */
interface MatchingTrace {
  readonly grps: readonly string[];
  readonly trace: string;
  readonly first_us: number;
  readonly ids: readonly string[];
}

/** See `QueryStore.runs`. */
export async function* readRuns(
  db: ClickHouse,
  scope: Scope,
  query: Parsed<RunQuery>,
  prices: PriceList,
): AsyncGenerator<string> {
  const filter = within(scope, query.filter);
  const search = await searchConditions(db, scope.tenant, filter, 'runs');
  const condition = all([conditionOf(scope.tenant, filter), ...search]);
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let page: readonly MatchingTrace[] = [];
  do {
    page = await matchingTraces(db, condition, page.at(-1), Math.min(left, PAGE_TRACES));
    for (let at = 0; at < page.length && left > 0; at += READ_TRACES) {
      const part = page.slice(at, at + READ_TRACES);
      for await (const runs of inParts(part, (traces) => runsOfTraces(db, scope.tenant, traces, prices))) {
        const wanted = runs.slice(0, left);
        left -= wanted.length;
        for (let from = 0; from < wanted.length; from += READ_RUNS) {
          const texts = inParts(wanted.slice(from, from + READ_RUNS), (some) => runTexts(db, scope.tenant, some));
          for await (const some of texts) yield* some;
        }
      }
    }
  } while (left > 0 && page.length === PAGE_TRACES);
}

async function matchingTraces(
  db: ClickHouse,
  condition: Sql,
  after: MatchingTrace | undefined,
  limit: number,
): Promise<MatchingTrace[]> {
  const { sql: having, params } =
    after === undefined ? sql('1') : sql('(first_us, trace) > (?, ?)', integer(after.first_us), uuid(after.trace));
  return await db.rows<MatchingTrace>({
    sql: `SELECT groupUniqArrayArray(runs.grps) AS grps, trace, min(start_us) AS first_us, groupArray(id) AS ids
      FROM runs FINAL WHERE ${condition.sql} GROUP BY trace HAVING ${having} ORDER BY first_us, trace LIMIT ?`,
    params: [...condition.params, ...params, integer(limit)],
  });
}

interface OrderedRun {
  readonly grps: readonly string[];
  readonly run: TracedRun;
  readonly order: string;
}

/** Returns the matching runs of traces, in order. Omits runs that were deleted since the first query. */
async function runsOfTraces(
  db: ClickHouse,
  tenant: string,
  matching: readonly MatchingTrace[],
  prices: PriceList,
): Promise<OrderedRun[]> {
  const grps = [...new Set(matching.flatMap((trace) => trace.grps))];
  const groups = await readGroups(db, tenant, grps, prices);
  const byTrace = new Map(groups.flatMap((group) => group.traces.map((trace) => [trace.id, { group, trace }])));
  return matching.flatMap(({ trace: traceId, ids }) => {
    const found = byTrace.get(traceId);
    if (found === undefined) return [];
    const wanted = new Set(ids);
    const ordered = inOrder(found.trace.runs).filter(({ run }) => wanted.has(run.id));
    return ordered.map(({ run, order }) => ({ grps: found.group.grps, run, order }));
  });
}

/** Returns each run as JSON, with its payloads. */
async function runTexts(db: ClickHouse, tenant: string, runs: readonly OrderedRun[]): Promise<string[]> {
  const ids = runs.map(({ run }) => run.id);
  const [byRun, infos] = await Promise.all([
    readMessages<PayloadRow>(
      db,
      tenant,
      runs.map(({ grps, run: { id } }) => ({ id, grps })),
      'id, kind, received_us, inputs, outputs, events',
    ),
    attachmentInfos(db, tenant, ids),
  ]);
  return runs.map(({ run: { run, summary, parentId }, order: dotted_order }) => {
    const attachments = infos.get(run.id);
    const record = {
      ...run.fields,
      id: run.id,
      trace_id: summary.trace_id,
      dotted_order,
      ...(parentId && { parent_run_id: parentId }),
      ...(attachments && { attachments }),
    };
    const texts = { inputs: '{}', ...payloadsIn(byRun.get(run.id) ?? []) };
    const payloads = Object.entries(texts).map(([field, text]) => `,"${field}":${text}`);
    return `${JSON.stringify(record).slice(0, -1)}${payloads.join('')}}`;
  });
}
