import type { RemovalTarget } from '../domain/removal.ts';
import { HttpError } from '../http/http-error.ts';
import { countsOf } from '../http/removal-jobs.ts';
import { type Call, idOf, type Route, type RouteResponse } from '../http/route.ts';
import { refuseUnknownParameters } from '../http/validation.ts';

const PATHS: readonly (readonly [path: string, kind: RemovalTarget['kind']])[] = [
  ['/query/runs/:id', 'run'],
  ['/query/traces/:id', 'trace'],
  ['/query/threads/:id', 'thread'],
  ['/query/users/:id', 'user'],
  ['/query/projects/:id', 'project'],
];

export const removalRoutes: readonly Route[] = [
  ...PATHS.map(([path, kind]) => adminRoute('DELETE', path, (call) => remove(call, kind))),
  adminRoute('GET', '/query/jobs', async ({ jobs, scope }) => ok({ items: await jobs.jobs(scope) })),
  adminRoute('GET', '/query/jobs/:id', async (call) => ok(await call.jobs.job(call.scope, idOf(call)))),
  adminRoute('DELETE', '/query/jobs/:id', async (call) => ok(await call.jobs.cancel(call.scope, idOf(call)))),
];

function adminRoute(method: Route['method'], path: string, handle: Route['handle']): Route {
  return { method, path, admission: 'admin', handle };
}

function ok(body: object | undefined): RouteResponse {
  if (body === undefined) throw new HttpError(404, 'The job is not stored');
  return { status: 200, body };
}

/**
 * Deletes data if the parameter `confirm` equals the id in the path. Otherwise responds with status 409 and the number of
 * runs that the request would delete. If the deletion takes longer than a second, responds with status 202 and the job.
 */
async function remove(call: Call, kind: RemovalTarget['kind']): Promise<RouteResponse> {
  const { store, scope, search, parameters, jobs } = call;
  refuseUnknownParameters(search, ['confirm']);
  const given = parameters.id ?? '';
  const target = { kind, id: kind === 'run' || kind === 'trace' ? idOf(call) : given };
  if (search.get('confirm') !== given) {
    const removal = await store.removable(scope, target);
    if (removal.runs === 0) throw unknown(target);
    const detail = `This deletes ${countsOf(removal)}: to confirm, repeat the request with the id as \`confirm\``;
    return { status: 409, body: { detail, ...removal } };
  }
  const job = await jobs.remove(scope, target);
  const { runs, traces, state, id } = job;
  if (state === 'running') return { status: 202, headers: { location: `/query/jobs/${id}` }, body: { job } };
  if (runs === 0) throw unknown(target);
  return { status: 200, body: { runs, traces } };
}

function unknown({ kind, id }: RemovalTarget): HttpError {
  return new HttpError(404, `The ${kind} ${id} is not stored`);
}
