import type { CallOptions } from '../client-options.ts';
import { TRUTH } from '../client-options.ts';
import type { Endpoint } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { type ControlPlaneApi, LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';
import type { Deployment } from './deployment.ts';
import type { Revision, RevisionStatus } from './revision.ts';

/** Which revisions to list. */
export interface ListRevisionsOptions extends ListOptions {
  /** Only revisions with one of these statuses. */
  status?: readonly RevisionStatus[];
  remoteReconciled?: boolean;
}

const PATH = '/v2/deployments/{deployment_id:uuid}/revisions';

const ENDPOINTS = {
  list: {
    name: 'revisions.list',
    method: 'GET',
    path: PATH,
    options: {
      ...LIST_OPTIONS,
      status: [['a list of statuses', areStatuses], 'status', (statuses: string[]) => statuses.join()],
      remoteReconciled: [TRUTH, 'remote_reconciled'],
    },
  },
  get: { name: 'revisions.get', method: 'GET', path: `${PATH}/{revision_id:uuid}` },
} satisfies Record<string, Endpoint>;

export const REDEPLOY: Endpoint = {
  name: 'revisions.redeploy',
  method: 'POST',
  path: `${PATH}/{revision_id:uuid}/redeploy`,
};

/** `/v2/deployments/{deployment_id}/revisions`. */
export class Revisions {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  /** Lists the latest revision first. */
  list(deploymentId: string, options?: ListRevisionsOptions): PageList<Revision> {
    return this.#api.list(ENDPOINTS.list, { ids: [deploymentId], options });
  }

  async get(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Revision> {
    return this.#api.call(ENDPOINTS.get, { ids: [deploymentId, revisionId], options });
  }

  /** Deploys a revision again. `latest_revision_id` of the result is the revision to wait for. */
  async redeploy(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(REDEPLOY, { ids: [deploymentId, revisionId], options });
  }
}

function areStatuses(value: unknown): boolean {
  return Array.isArray(value) && value.every((status) => typeof status === 'string' && /^\w+$/.test(status));
}
