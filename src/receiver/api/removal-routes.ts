import { diagnostics } from '../../base/diagnostics.ts';
import { visible } from '../../base/text.ts';
import type { Removal, RemovalTarget } from '../domain/removal.ts';
import { HttpError } from '../http/http-error.ts';
import { type Call, idOf, type Route, type RouteResponse } from '../http/route.ts';
import { refuseUnknownParameters } from '../http/validation.ts';

const PATHS: readonly (readonly [path: string, kind: RemovalTarget['kind']])[] = [
  ['/query/runs/:id', 'run'],
  ['/query/traces/:id', 'trace'],
  ['/query/threads/:id', 'thread'],
  ['/query/users/:id', 'user'],
  ['/query/projects/:id', 'project'],
];

export const removalRoutes: readonly Route[] = PATHS.map(([path, kind]) => ({
  method: 'DELETE',
  path,
  admission: 'admin',
  handle: (call) => remove(call, kind),
}));

/**
 * Deletes data if the parameter `confirm` equals the id in the path. Otherwise responds with status 409 and the number of
 * runs that the request would delete.
 */
async function remove(call: Call, kind: RemovalTarget['kind']): Promise<RouteResponse> {
  const { store, scope, search, parameters } = call;
  refuseUnknownParameters(search, ['confirm']);
  const given = parameters.id ?? '';
  const target = { kind, id: kind === 'run' || kind === 'trace' ? idOf(call) : given };
  if (search.get('confirm') !== given) {
    const removal = await store.removable(scope, target);
    if (removal.runs === 0) throw unknown(target);
    const detail = `This deletes ${countsOf(removal)}: to confirm, repeat the request with the id as \`confirm\``;
    return { status: 409, body: { detail, ...removal } };
  }
  const removal = await store.remove(scope, target);
  if (removal.runs === 0) throw unknown(target);
  const data = `${kind} ${visible(target.id)} of the tenant ${scope.tenant}`;
  diagnostics.warn(`the receiver deleted the ${data}: ${countsOf(removal)}`);
  return { status: 200, body: removal };
}

function unknown({ kind, id }: RemovalTarget): HttpError {
  return new HttpError(404, `The ${kind} ${id} is not stored`);
}

function countsOf({ runs, traces }: Removal): string {
  return `${runs} run${runs === 1 ? '' : 's'} of ${traces} trace${traces === 1 ? '' : 's'}`;
}
