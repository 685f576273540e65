import { type Checks, checkedOptions } from '../base/options.ts';
import { pathOf } from './call.ts';
import { type CallOptions, callChecks, callOptionsOf } from './client-options.ts';
import type { ControlPlaneApi, ControlPlaneCall } from './control-plane-api.ts';
import type { Deployment, DeploymentCreate, DeploymentPatch, DeploymentStatus, DeploymentType } from './deployment.ts';
import { type Deployed, DeploymentWait, type Updated, type WaitOptions } from './deployment-wait.ts';
import { ifNotGone } from './gone.ts';
import { type ListOptions, listChecks } from './list-options.ts';
import type { PageList } from './page.ts';
import { checkRequest } from './request-check.ts';
import { SourceUpload, type UploadConnection, type UploadedSource, type UploadSourceOptions } from './source-upload.ts';
import { type UploadUrl, uploadUrl } from './upload-url.ts';
import { InvalidRequestError } from './validation-error.ts';

/** Which deployments are asked for. */
export interface ListDeploymentsOptions extends ListOptions {
  nameContains?: string;
  status?: DeploymentStatus;
  remoteReconciled?: boolean;
  /** Those with one of these values of tags. */
  tagValueIds?: readonly string[];
  imageVersion?: string;
  deploymentType?: DeploymentType;
  deploymentIds?: readonly string[];
}

export interface DeleteDeploymentOptions extends CallOptions {
  /**
   * Whether the tracing project goes with it.
   *
   * @default false
   */
  deleteTracingProject?: boolean;
}

/** What became of a deletion of several. */
export interface DeletedDeployments {
  /** Whether some are there still. */
  readonly isPartial: boolean;
  /** What the service tells of it; its form is not fixed. */
  readonly answer: unknown;
}

/** Deployments that one call may delete. */
const DELETED_MAX = 100;

/** `/v2/deployments`. */
export class Deployments {
  readonly #api: ControlPlaneApi;
  readonly #wait: DeploymentWait;
  readonly #upload: SourceUpload;

  /** @internal */
  constructor(api: ControlPlaneApi, connection: UploadConnection) {
    this.#api = api;
    this.#wait = new DeploymentWait(api);
    this.#upload = new SourceUpload(api, connection);
  }

  /** Makes a deployment and its first revision. It is never sent twice, unless it cannot have arrived. */
  async create(deployment: DeploymentCreate, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(creation(deployment, options));
  }

  async get(deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(of(deploymentId, { name: 'deployments.get', method: 'GET', options }));
  }

  list(options: ListDeploymentsOptions = {}): PageList<Deployment> {
    const name = 'deployments.list';
    return this.#api.list(() => {
      const page = checkedOptions<ListDeploymentsOptions>(`the options of ${name}`, options, deploymentsChecks);
      const query = {
        name_contains: page.nameContains,
        status: page.status,
        remote_reconciled: page.remoteReconciled,
        tag_value_ids: page.tagValueIds?.join(','),
        image_version: page.imageVersion,
        deployment_type: page.deploymentType,
        deployment_ids: page.deploymentIds?.join(','),
      };
      const path = '/v2/deployments';
      return { page, call: { name, method: 'GET', path, query, answer: 'object', options: callOptionsOf(page) } };
    });
  }

  /** Changes what is given, which may make a new revision (`createsRevision`): `latest_revision_id` is then another. */
  async update(deploymentId: string, patch: DeploymentPatch, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(change(deploymentId, patch, options));
  }

  async delete(deploymentId: string, options: DeleteDeploymentOptions = {}): Promise<void> {
    const name = 'deployments.delete';
    const checked = checkedOptions<DeleteDeploymentOptions>(`the options of ${name}`, options, deleteChecks);
    const query = { delete_tracing_project: checked.deleteTracingProject };
    const call = of(deploymentId, { name, method: 'DELETE', options: callOptionsOf(checked) });
    await this.#api.call({ ...call, query, answer: 'any' }).catch(ifNotGone);
  }

  /** Deletes up to 100 at once. */
  async deleteMany(deploymentIds: readonly string[], options?: CallOptions): Promise<DeletedDeployments> {
    const name = 'deployments.deleteMany';
    if (!Array.isArray(deploymentIds) || deploymentIds.length === 0 || deploymentIds.length > DELETED_MAX) {
      const msg = `Expected a list of 1 to ${DELETED_MAX} ids`;
      throw new InvalidRequestError(name, [{ loc: ['query', 'deployment_ids'], msg, type: 'list_type' }]);
    }
    checkRequest(name, { query: { deployment_ids: deploymentIds } });
    const query = { deployment_ids: deploymentIds };
    const path = '/v2/deployments';
    const answer = await this.#api.traced({ name, method: 'DELETE', path, query, answer: 'any', options });
    return { isPartial: answer.status === 207, answer: answer.data };
  }

  /** An address to which the source of an `internal_source` deployment can be sent. Whoever has `upload_url` may use it. */
  async uploadUrl(deploymentId: string, options?: CallOptions): Promise<UploadUrl> {
    return uploadUrl(this.#api, deploymentId, options);
  }

  /**
   * Sends the source of an `internal_source` deployment: a directory, without what its ignore files name, or a tarball that is packed
   * already (`.tar.gz`). What it resolves with goes into `source_revision_config` of an update, which deploys it.
   */
  async uploadSource(deploymentId: string, path: string | URL, options?: UploadSourceOptions): Promise<UploadedSource> {
    return this.#upload.send(deploymentId, path, options);
  }

  /**
   * Waits until a revision is deployed, by default the latest. Rejects with a RevisionError when it will not be
   * (`RUNSPAN_REVISION_FAILED`), when a later one has taken its place (`RUNSPAN_REVISION_SUPERSEDED`) and when the time is over
   * (`RUNSPAN_TIMEOUT`). Answers of 429 and 5xx and broken connections are waited out.
   */
  async waitUntilDeployed(deploymentId: string, options?: WaitOptions): Promise<Deployed> {
    return this.#wait.untilDeployed(deploymentId, options);
  }

  /** Creates a deployment, and waits for its first revision. */
  async createAndWait(deployment: DeploymentCreate, options?: Omit<WaitOptions, 'revisionId'>): Promise<Deployed> {
    return this.#wait.created(creation(deployment, undefined), options);
  }

  /** Updates a deployment, and waits for the revision where that makes one. */
  async updateAndWait(
    deploymentId: string,
    patch: DeploymentPatch,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Updated> {
    return this.#wait.updated(deploymentId, patch, change(deploymentId, patch, undefined), options);
  }

  /** Deploys a revision again, and waits for the latest revision, as the service tells it. */
  async redeployAndWait(
    deploymentId: string,
    revisionId: string,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Deployed> {
    return this.#wait.redeployed(deploymentId, revisionId, options);
  }
}

function creation(deployment: DeploymentCreate, options: CallOptions | undefined): ControlPlaneCall {
  const name = 'deployments.create';
  checkRequest(name, { body: deployment, resource: 'Deployment', mode: 'create' });
  const body = { ...deployment, secrets: deployment.secrets ?? [] };
  return { name, method: 'POST', path: '/v2/deployments', body, answer: 'object', options };
}

function change(deploymentId: string, patch: DeploymentPatch, options: CallOptions | undefined): ControlPlaneCall {
  const name = 'deployments.update';
  checkRequest(name, { path: { deployment_id: deploymentId }, body: patch, resource: 'Deployment', mode: 'patch' });
  return { ...of(deploymentId, { name, method: 'PATCH', options }), body: patch };
}

function of(deploymentId: string, call: Pick<ControlPlaneCall, 'name' | 'method' | 'options'>): ControlPlaneCall {
  const told = { deployment_id: deploymentId };
  checkRequest(call.name, { path: told });
  return { ...call, path: pathOf('v2', 'deployments', deploymentId), told, answer: 'object' };
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isTruth = (value: unknown): boolean => typeof value === 'boolean';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.length > 0 && value.every(isText);

const deploymentsChecks: Checks<ListDeploymentsOptions> = {
  ...listChecks,
  nameContains: ['text', isText],
  status: ['a status', isText],
  remoteReconciled: ['true or false', isTruth],
  tagValueIds: ['a list of ids', isTexts],
  imageVersion: ['text', isText],
  deploymentType: ['a type of deployments', isText],
  deploymentIds: ['a list of ids', isTexts],
};

const deleteChecks: Checks<DeleteDeploymentOptions> = {
  ...callChecks,
  deleteTracingProject: ['true or false', isTruth],
};
