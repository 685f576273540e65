import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf, visible } from '../../base/text.ts';
import { mapInTurns } from '../domain/in-turns.ts';
import { pageByName } from '../domain/query/cursor.ts';
import type { DeletionTarget, ListPage, ThreadTurns } from '../domain/query/query.ts';
import { countsText, DELETION_KINDS } from '../domain/retention/deletion.ts';
import { PAYLOAD_FIELDS } from '../domain/run-view.ts';
import { ALL_TIMES, equal } from '../filter/run-filter.ts';
import { changeStream } from '../http/change-stream.ts';
import { HttpError, type Location } from '../http/http-error.ts';
import { jsonPieces } from '../http/json-pieces.ts';
import { type Call, get, idOf, type Route, type RouteResponse } from '../http/route.ts';
import { refuseUnknownParameters } from '../http/validation.ts';
import { cacheComparison } from './cache-comparison.ts';
import { exported } from './export/list-export.ts';
import { perfettoEvents } from './export/perfetto.ts';
import { savedTrace } from './export/saved-trace.ts';
import { exportPieces } from './export/trace-export.ts';
import { postFeedback } from './feedback-routes.ts';
import {
  readExportQuery,
  readListQuery,
  readProjectQuery,
  readStatisticsQuery,
  readSuggestionQuery,
  readThreadQuery,
  readTraceQuery,
  readTurnQuery,
} from './run-query.ts';
import { importTrace } from './trace-import.ts';

export const queryRoutes: readonly Route[] = [
  get('/query/projects', ({ store, scope, search }) => {
    const query = readProjectQuery(search);
    return pageResponse(store.projects(scope, ALL_TIMES).then((all) => pageByName(all, query)));
  }),
  get('/query/traces', ({ store, scope, search }) => pageResponse(store.traces(scope, readTraceQuery(search)))),
  get('/query/threads', ({ store, scope, search }) => pageResponse(store.threads(scope, readThreadQuery(search)))),
  get('/query/threads/:id', (call) => pageResponse(turnsOf(call))),
  get('/query/runs', ({ store, scope, search }) => pageResponse(store.list(scope, readListQuery(search)))),
  get('/query/traces/:id', async (call) => {
    const id = idOf(call);
    const { store, scope } = call;
    const [items, feedback] = await Promise.all([store.outline(scope, id), store.feedback(scope, [id])]);
    if (items.length === 0) throw unknown('trace', id);
    return { status: 200, content: () => jsonPieces({ feedback }, 'items', items) };
  }),
  get('/query/traces/:id/export', exportedTrace),
  get('/query/export', (call) => {
    const query = readExportQuery(call.search);
    const { list = 'runs', format = 'jsonl' } = query;
    const headers = {
      'content-type': format === 'csv' ? 'text/csv; charset=utf-8; header=present' : 'application/jsonl',
      'content-disposition': `attachment; filename="${list}.${format === 'otlp' ? 'otlp.jsonl' : format}"`,
    };
    return { status: 200, headers, content: () => exported(call, query) };
  }),
  {
    method: 'POST',
    path: '/query/import',
    admission: 'admin',
    handle: async (call) => ({ status: 200, body: await importTrace(call) }),
  },
  get('/query/runs/:id', (call) => runResponse(call, (id) => call.store.details(call.scope, id))),
  get('/query/runs/:id/cache', (call) => runResponse(call, (id) => cacheComparison(call, id))),
  get('/query/runs/:id/:field', async (call) => {
    const id = idOf(call);
    const field = PAYLOAD_FIELDS.find((one) => one === call.parameters.field);
    if (field === undefined) throw new HttpError(404, `No route matches /query/runs/${id}/${call.parameters.field}`);
    const content = await call.store.payload(call.scope, id, field);
    if (content === undefined) throw new HttpError(404, `Run ${id} is not stored, or has no ${field}`);
    return { status: 200, content };
  }),
  { method: 'POST', path: '/query/feedback', admission: 'write', handle: postFeedback },
  get('/query/statistics', async ({ store, scope, search }) => {
    return { status: 200, body: await store.statistics(scope, readStatisticsQuery(search)) };
  }),
  get('/query/suggestions', async ({ store, scope, search }) => {
    return { status: 200, body: { items: await store.suggestions(scope, readSuggestionQuery(search)) } };
  }),
  get('/query/changes', ({ request, store, scope, streams, access }) => {
    streams.add(scope, request.socket);
    const headers = { 'content-type': 'text/event-stream' };
    const isAdmitted = (): Promise<boolean> => access.isAdmitted(request, 'read');
    return { status: 200, headers, content: (ended) => changeStream(store, scope, ended, isAdmitted) };
  }),
  ...DELETION_KINDS.map(
    (kind): Route => ({
      method: 'DELETE',
      path: `/query/${kind}s/:id`,
      admission: 'admin',
      handle: (call) => remove(call, kind),
    }),
  ),
];

async function turnsOf({ store, scope, search, parameters: { id: thread = '' } }: Call): Promise<ThreadTurns> {
  const query = readTurnQuery(search);
  const filter = { ...query.filter, conditions: [equal('thread', thread)] };
  const [threads, turns] = await Promise.all([
    store.threads(scope, { filter }),
    store.traces(scope, { order: 'ascending', ...query, filter }),
  ]);
  const [summary] = threads.items;
  if (summary === undefined) throw unknown('thread', thread);
  return { summary, ...turns };
}

async function runResponse(call: Call, read: (id: string) => Promise<object | undefined>): Promise<RouteResponse> {
  const id = idOf(call);
  const body = await read(id);
  if (body === undefined) throw unknown('run', id);
  return { status: 200, body };
}

async function pageResponse(page: Promise<ListPage<unknown>>): Promise<RouteResponse> {
  return { status: 200, body: await checkedPage(page, ['query', 'cursor']) };
}

/** Returns a page of results. Throws an HTTP 422 error if the store rejects the cursor at `loc`. */
export async function checkedPage<Item>(page: Promise<ListPage<Item>>, loc: Location): Promise<ListPage<Item>> {
  try {
    return await page;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'RUNSPAN_INVALID_OPTION') throw error;
    throw new HttpError(422, [{ loc, msg: messageOf(error), type: 'value' }]);
  }
}

async function exportedTrace(call: Call): Promise<RouteResponse> {
  const id = idOf(call);
  const writer = WRITERS.get(call.search.get('format') ?? 'runspan');
  if (writer === undefined) {
    const msg = `Expected ${[...WRITERS.keys()].join(', ')}`;
    throw new HttpError(422, [{ loc: ['query', 'format'], msg, type: 'value' }]);
  }
  const pieces = await writer.write(call, id);
  if (pieces === undefined) throw unknown('trace', id);
  const disposition = `attachment; filename="trace-${id}.${writer.extension}"`;
  const headers = { ...writer.headers, 'content-disposition': disposition };
  return { status: 200, content: () => pieces, headers };
}

/** Deletes traces if `confirm` is the id in the path. Otherwise, responds with 409 and the number of their runs. */
async function remove(call: Call, kind: DeletionTarget['kind']): Promise<RouteResponse> {
  const { store, scope, search, parameters } = call;
  refuseUnknownParameters(search, ['confirm']);
  const given = parameters.id ?? '';
  const target = { kind, id: kind === 'trace' ? idOf(call) : given };
  if (search.get('confirm') !== given) {
    const counts = await store.removable(scope, target);
    if (counts.runs === 0) throw new HttpError(404, `The ${kind} ${target.id} is not stored`);
    const detail = `This deletes ${countsText(counts)}: to confirm, repeat the request with the id as \`confirm\``;
    return { status: 409, body: { detail, ...counts } };
  }
  const counts = await store.remove(scope, target);
  const place = scope.project === undefined ? '' : `, in the project ${visible(scope.project)}`;
  const data = `the ${kind} ${visible(target.id)} of the tenant ${scope.tenant}${place}`;
  diagnostics.warn(`a client deletes ${data}: ${countsText(counts)}`);
  return { status: 200, body: counts };
}

interface Writer {
  readonly extension: string;
  readonly headers?: RouteResponse['headers'];
  /** Returns undefined if the trace is unknown. */
  readonly write: (call: Call, traceId: string) => Promise<AsyncIterable<string> | undefined>;
}

const WRITERS: ReadonlyMap<string, Writer> = new Map(
  Object.entries<Writer>({
    runspan: { extension: 'json', write: exportPieces },
    perfetto: {
      extension: 'perfetto.json',
      write: async ({ store, scope }, traceId) => {
        const outline = await store.outline(scope, traceId);
        if (outline.length === 0) return undefined;
        const events = perfettoEvents(await mapInTurns(outline, (text) => JSON.parse(text)));
        return jsonPieces({ displayTimeUnit: 'ms' }, 'traceEvents', events);
      },
    },
    html: {
      extension: 'html',
      // The file's own policy applies to the saved file. In the receiver's origin, no content of a trace may run.
      headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': "sandbox; default-src 'none'" },
      write: savedTrace,
    },
  }),
);

function unknown(what: string, id: string): HttpError {
  return new HttpError(404, `The ${what} ${id} is not stored`);
}
