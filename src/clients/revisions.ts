import { type Checks, checkedOptions } from '../base/options.ts';
import { pathOf } from './call.ts';
import { type CallOptions, callOptionsOf } from './client-options.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import type { Deployment } from './deployment.ts';
import { type ListOptions, listChecks } from './list-options.ts';
import type { PageList } from './page.ts';
import { checkRequest } from './request-check.ts';
import type { Revision, RevisionStatus } from './revision.ts';

/** Which revisions are asked for. */
export interface ListRevisionsOptions extends ListOptions {
  /** Those of one of these. */
  status?: readonly RevisionStatus[];
  remoteReconciled?: boolean;
}

/** `/v2/deployments/{deployment_id}/revisions`. */
export class Revisions {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  /** The latest first. */
  list(deploymentId: string, options: ListRevisionsOptions = {}): PageList<Revision> {
    const name = 'revisions.list';
    return this.#api.list(() => {
      const told = { deployment_id: deploymentId };
      checkRequest(name, { path: told });
      const page = checkedOptions<ListRevisionsOptions>(`the options of ${name}`, options, revisionsChecks);
      const query = { status: page.status?.join(','), remote_reconciled: page.remoteReconciled };
      const path = pathOf('v2', 'deployments', deploymentId, 'revisions');
      return { page, call: { name, method: 'GET', path, query, told, answer: 'object', options: callOptionsOf(page) } };
    });
  }

  async get(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Revision> {
    const name = 'revisions.get';
    const told = { deployment_id: deploymentId, revision_id: revisionId };
    checkRequest(name, { path: told });
    const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId);
    return this.#api.call({ name, method: 'GET', path, told, answer: 'object', options });
  }

  /** Deploys a revision again; `latest_revision_id` of what it resolves with is the one to wait for. */
  async redeploy(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Deployment> {
    const name = 'revisions.redeploy';
    const told = { deployment_id: deploymentId, revision_id: revisionId };
    checkRequest(name, { path: told });
    const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId, 'redeploy');
    return this.#api.call({ name, method: 'POST', path, told, answer: 'object', options });
  }
}

const revisionsChecks: Checks<ListRevisionsOptions> = {
  ...listChecks,
  status: [
    'a list of statuses',
    (value) => Array.isArray(value) && value.every((status) => typeof status === 'string' && /^\w+$/.test(status)),
  ],
  remoteReconciled: ['true or false', (value) => typeof value === 'boolean'],
};
