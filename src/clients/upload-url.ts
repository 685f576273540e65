import { ApiError } from './api-error.ts';
import { pathOf } from './call.ts';
import type { CallOptions } from './client-options.ts';
import type { ControlPlaneApi, ControlPlaneCall } from './control-plane-api.ts';
import { checkRequest } from './request-check.ts';

/** Where a source can be sent. */
export interface UploadUrl {
  /** Whoever has it may use it. */
  upload_url: string;
  /** What `source_revision_config.source_tarball_path` takes when it is there. */
  object_path: string;
}

/**
 * Requests an upload address. The API documentation lists this path without a version, but states that every path has
 * one, so both forms are supported. The path that worked last is tried first. If the service does not know it, the
 * other path is tried.
 */
export async function uploadUrl(
  api: ControlPlaneApi,
  deploymentId: string,
  options: CallOptions | undefined,
): Promise<UploadUrl> {
  const name = 'deployments.uploadUrl';
  const told = { deployment_id: deploymentId };
  checkRequest(name, { path: told });
  const pathWith = (isVersioned: boolean): string =>
    pathOf(...(isVersioned ? ['v2'] : []), 'deployments', deploymentId, 'upload-url');
  const isVersioned = api.isUploadVersioned;
  const call: ControlPlaneCall = {
    name,
    method: 'POST',
    path: pathWith(isVersioned),
    told,
    answer: 'object',
    // A second address does no harm.
    isIdempotent: true,
    // The address is a credential: it is not recorded.
    outputs: () => ({}),
    options,
  };
  const answer = await api.traced<UploadUrl>(call).catch(async (thrown: unknown) => {
    if (!isUnknownPath(thrown, deploymentId)) throw thrown;
    const other = await api.traced<UploadUrl>({ ...call, path: pathWith(!isVersioned) });
    api.isUploadVersioned = !isVersioned;
    return other;
  });
  const { upload_url, object_path } = answer.data;
  if (typeof upload_url === 'string' && typeof object_path === 'string') return answer.data;
  throw api.invalid(call, answer, 'has no upload_url and object_path');
}

/** A 404 that is about the deployment names it. */
function isUnknownPath(thrown: unknown, deploymentId: string): boolean {
  if (!(thrown instanceof ApiError)) return false;
  return thrown.status === 405 || (thrown.status === 404 && !thrown.detail?.includes(deploymentId));
}
