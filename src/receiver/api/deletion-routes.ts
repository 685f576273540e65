import { diagnostics } from '../../base/diagnostics.ts';
import { visible } from '../../base/text.ts';
import { countsText, DELETION_KINDS } from '../domain/deletion.ts';
import type { DeletionTarget } from '../domain/query.ts';
import { HttpError } from '../http/http-error.ts';
import { type Call, idOf, type Route, type RouteResponse } from '../http/route.ts';
import { refuseUnknownParameters } from '../http/validation.ts';

export const deletionRoutes: readonly Route[] = DELETION_KINDS.map((kind) => ({
  method: 'DELETE',
  path: `/query/${kind}s/:id`,
  admission: 'admin',
  handle: (call) => remove(call, kind),
}));

/**
 * Deletes traces if the parameter `confirm` equals the id in the path. Otherwise responds with status 409 and the number of
 * runs that the request would delete.
 */
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
  const data = `the ${kind} ${visible(target.id)} of the tenant ${scope.tenant}`;
  diagnostics.warn(`a client deletes ${data}: ${countsText(counts)}`);
  return { status: 200, body: counts };
}
