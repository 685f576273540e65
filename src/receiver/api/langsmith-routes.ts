import { exactJson, parseExact } from '../../payload/fields.ts';
import { pagePath } from '../../run/page-path.ts';
import { parseDottedOrder } from '../../run/time.ts';
import { type Feedback, figuresOf } from '../domain/feedback.ts';
import { projectOf } from '../domain/run-values.ts';
import type { RunSummary, StoredRun } from '../domain/run-view.ts';
import { ALL_RUNS, among } from '../filter/run-filter.ts';
import { HttpError } from '../http/http-error.ts';
import { jsonPieces } from '../http/json-pieces.ts';
import { type Call, idOf, type Route, type RouteResponse, readJson } from '../http/route.ts';
import { refuseUnknownParameters, requiredObject } from '../http/validation.ts';
import { itemsOfPage, PAGE_PARAMETERS } from './feedback-routes.ts';
import { sessionIdOf, sessionsOf, sessionWithId } from './langsmith-projects.ts';
import { readLangSmithQuery } from './langsmith-query.ts';
import { checkedPage } from './query-routes.ts';
import { readRunQuery } from './run-query.ts';

/** HTTP routes that LangSmith clients use to read runs and projects. */
export const langSmithRoutes: readonly Route[] = [
  { method: 'POST', path: '/runs/query', handle: queryRuns },
  // `PATCH /runs/:run_id` has the same path, so the parameter has the same name.
  { method: 'GET', path: '/runs/:run_id', handle: readRun },
  { method: 'GET', path: '/sessions', handle: listSessions },
  { method: 'GET', path: '/sessions/:id', handle: readSession },
];

const RUNS_AT_ONCE = 10;

async function queryRuns(call: Call): Promise<RouteResponse> {
  const { store, scope } = call;
  const body = requiredObject(await readJson(call));
  if (Object.keys(body).every((field) => field === 'trace' || field === 'limit')) {
    const query = readRunQuery(body);
    return { status: 200, content: () => jsonPieces({}, 'runs', store.runs(scope, query)) };
  }
  const { query, select } = await readLangSmithQuery(body, call);
  const { items, next = null } = await checkedPage(store.list(scope, query), ['body', 'cursor']);
  return { status: 200, content: () => jsonPieces({ cursors: { next } }, 'runs', runTexts(call, items, select)) };
}

async function readRun(call: Call): Promise<RouteResponse> {
  const id = idOf(call, 'run_id');
  // LangSmith clients may send the project and the start time, with which LangSmith finds the run sooner.
  refuseUnknownParameters(call.search, ['session_id', 'start_time', 'exclude_s3_stored_attributes']);
  const run = await call.store.details(call.scope, id);
  for await (const content of runTexts(call, run === undefined ? [] : [run], undefined))
    return { status: 200, content };
  throw new HttpError(404, `The run ${id} is not stored`);
}

const SESSION_PARAMETERS = ['id', 'name', 'name_contains', 'include_stats', 'reference_free', ...PAGE_PARAMETERS];

async function listSessions({ store, scope, search }: Call): Promise<RouteResponse> {
  refuseUnknownParameters(search, SESSION_PARAMETERS);
  const [ids, names, part] = [search.getAll('id'), search.getAll('name'), search.get('name_contains')];
  // No project of the receiver belongs to a dataset.
  const all = search.get('reference_free') === 'false' ? [] : await sessionsOf({ store, scope });
  const found = all.filter(
    ({ id, name }) =>
      (ids.length === 0 || ids.includes(id)) &&
      (names.length === 0 || names.includes(name)) &&
      (part === null || name.toLowerCase().includes(part.toLowerCase())),
  );
  return { status: 200, body: itemsOfPage(found, search) };
}

async function readSession(call: Call): Promise<RouteResponse> {
  const id = idOf(call);
  refuseUnknownParameters(call.search, ['include_stats']);
  const session = await sessionWithId(id, call);
  if (session === undefined) throw new HttpError(404, `No stored run belongs to the project ${id}`);
  return { status: 200, body: session };
}

/** Yields runs in the given order as JSON texts. Runs that were deleted since they were listed are left out. */
async function* runTexts({ store, scope }: Call, items: readonly RunSummary[], select: readonly string[] | undefined) {
  for (let at = 0; at < items.length; at += RUNS_AT_ONCE) {
    const some = items.slice(at, at + RUNS_AT_ONCE);
    const ids = some.map(({ id }) => id);
    const filter = { ...ALL_RUNS, conditions: [among('run', ids)] };
    const runs = new Map<string, StoredRun>();
    for await (const text of store.runs(scope, { filter })) {
      const run: StoredRun = parseExact(text);
      runs.set(run.id, run);
    }
    const hasFeedback = select === undefined || select.includes('feedback_stats');
    const traceIds = new Set(some.map(({ trace_id }) => trace_id));
    const feedback = hasFeedback ? await store.feedback(scope, [...traceIds]) : [];
    for (const summary of some) {
      const run = runs.get(summary.id);
      if (run !== undefined) yield exactJson(selected(langSmithRun(run, summary, feedback), select));
    }
  }
}

function selected(run: Readonly<Record<string, unknown>>, select: readonly string[] | undefined): object {
  if (select === undefined) return run;
  return Object.fromEntries(Object.entries(run).filter(([field]) => field === 'id' || select.includes(field)));
}

function langSmithRun(
  run: StoredRun,
  { status, thread, usage, first_token_time }: RunSummary,
  feedback: readonly Feedback[],
): Record<string, unknown> {
  const { id, trace_id: traceId } = run;
  return {
    ...run,
    status,
    session_id: sessionIdOf(projectOf(run)),
    parent_run_ids: (parseDottedOrder(run.dotted_order) ?? []).slice(0, -1).map((segment) => segment.id),
    app_path: pagePath({ id, traceId }),
    ...(thread !== undefined && { thread_id: thread }),
    ...(first_token_time !== undefined && { first_token_time }),
    total_tokens: usage?.total_tokens ?? 0,
    prompt_tokens: usage?.input_tokens ?? 0,
    completion_tokens: usage?.output_tokens ?? 0,
    total_cost: usage?.total_cost ?? null,
    feedback_stats: statsOf(feedback.filter((one) => one.run_id === id)),
  };
}

function statsOf(feedback: readonly Feedback[]): Record<string, { n: number; avg: number | null }> {
  const figures = figuresOf(feedback).map(
    ({ key, count, average_score: avg = null }) => [key, { n: count, avg }] as const,
  );
  return Object.fromEntries(figures);
}
