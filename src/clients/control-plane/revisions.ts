import type { Check } from '../../base/options.ts';
import { type CallOptions, TRUTH } from '../client-options.ts';
import { type Endpoint, endpoints } from '../endpoint.ts';
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

const STATUSES: Check = [
  'a list of statuses',
  (value) => Array.isArray(value) && value.every((status) => typeof status === 'string' && /^\w+$/.test(status)),
];

const CALLS = endpoints('revisions', {
  list: [
    'GET /v2/deployments/{deployment_id:uuid}/revisions',
    {
      options: {
        ...LIST_OPTIONS,
        status: [STATUSES, 'status', (statuses: string[]) => statuses.join()],
        remoteReconciled: [TRUTH, 'remote_reconciled'],
      },
    },
  ],
  get: ['GET /v2/deployments/{deployment_id:uuid}/revisions/{revision_id:uuid}'],
  redeploy: ['POST /v2/deployments/{deployment_id:uuid}/revisions/{revision_id:uuid}/redeploy'],
});

export const REDEPLOY: Endpoint = CALLS.redeploy;

/** `/v2/deployments/{deployment_id}/revisions`. */
export class Revisions {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  /** Lists the latest revision first. */
  list(deploymentId: string, options?: ListRevisionsOptions): PageList<Revision> {
    return this.#api.list(CALLS.list, { ids: [deploymentId], options });
  }

  async get(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Revision> {
    return this.#api.call(CALLS.get, { ids: [deploymentId, revisionId], options });
  }

  /** Deploys a revision again. `latest_revision_id` of the result is the revision to wait for. */
  async redeploy(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(REDEPLOY, { ids: [deploymentId, revisionId], options });
  }
}
