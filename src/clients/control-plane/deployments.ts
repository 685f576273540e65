import type { Check } from '../../base/options.ts';
import { type CallOptions, TEXT_OPTION, TRUTH } from '../client-options.ts';
import { callOf, endpoints } from '../endpoint.ts';
import { InvalidRequestError } from '../errors.ts';
import type { PageList } from '../page.ts';
import { isUuid } from '../schema.ts';
import { type ControlPlaneApi, LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';
import type { Deployment, DeploymentCreate, DeploymentPatch, DeploymentStatus, DeploymentType } from './deployment.ts';
import { type Deployed, DeploymentWait, type Updated, type WaitOptions } from './deployment-wait.ts';
import { DEPLOYMENT_CREATE, DEPLOYMENT_PATCH } from './schemas.ts';
import {
  SourceUpload,
  type UploadConnection,
  type UploadedSource,
  type UploadSourceOptions,
  type UploadUrl,
} from './source-upload.ts';

/** Which deployments to list. */
export interface ListDeploymentsOptions extends ListOptions {
  nameContains?: string;
  status?: DeploymentStatus;
  remoteReconciled?: boolean;
  /** Only deployments with one of these tag values. */
  tagValueIds?: readonly string[];
  imageVersion?: string;
  deploymentType?: DeploymentType;
  deploymentIds?: readonly string[];
}

export interface DeleteDeploymentOptions extends CallOptions {
  /**
   * Whether to delete the tracing project too.
   *
   * @default false
   */
  deleteTracingProject?: boolean;
}

/** Result of deleting several deployments. */
export interface DeletedDeployments {
  /** Whether some deployments were not deleted. */
  readonly isPartial: boolean;
  /** The response of the service. Its format is not specified. */
  readonly answer: unknown;
}

const DELETED_MAX = 100;

const IDS: Check = [
  'a list of ids',
  (value) => Array.isArray(value) && value.length > 0 && value.every(TEXT_OPTION[1]),
];
const join = (ids: readonly string[]): string => ids.join();

const CALLS = endpoints('deployments', {
  create: ['POST /v2/deployments', { body: DEPLOYMENT_CREATE }],
  get: ['GET /v2/deployments/{deployment_id:uuid}'],
  list: [
    'GET /v2/deployments',
    {
      options: {
        ...LIST_OPTIONS,
        nameContains: [TEXT_OPTION, 'name_contains'],
        status: [TEXT_OPTION, 'status'],
        remoteReconciled: [TRUTH, 'remote_reconciled'],
        tagValueIds: [IDS, 'tag_value_ids', join],
        imageVersion: [TEXT_OPTION, 'image_version'],
        deploymentType: [TEXT_OPTION, 'deployment_type'],
        deploymentIds: [IDS, 'deployment_ids', join],
      },
    },
  ],
  update: ['PATCH /v2/deployments/{deployment_id:uuid}', { body: DEPLOYMENT_PATCH }],
  delete: [
    'DELETE /v2/deployments/{deployment_id:uuid}',
    { response: 'none', options: { deleteTracingProject: [TRUTH, 'delete_tracing_project'] } },
  ],
  deleteMany: ['DELETE /v2/deployments', { response: 'any' }],
});

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

  /** Creates a deployment and its first revision. The request is repeated only if it cannot have arrived. */
  async create(deployment: DeploymentCreate, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(CALLS.create, { body: deployment, options });
  }

  async get(deploymentId: string, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(CALLS.get, { ids: [deploymentId], options });
  }

  list(options?: ListDeploymentsOptions): PageList<Deployment> {
    return this.#api.list(CALLS.list, { options });
  }

  /** Changes a deployment. If the patch creates a revision (`createsRevision`), `latest_revision_id` changes. */
  async update(deploymentId: string, patch: DeploymentPatch, options?: CallOptions): Promise<Deployment> {
    return this.#api.call(CALLS.update, { ids: [deploymentId], body: patch, options });
  }

  async delete(deploymentId: string, options?: DeleteDeploymentOptions): Promise<void> {
    return this.#api.call(CALLS.delete, { ids: [deploymentId], options });
  }

  /** Deletes up to 100 deployments with one request. */
  async deleteMany(deploymentIds: readonly string[], options?: CallOptions): Promise<DeletedDeployments> {
    const isValid = Array.isArray(deploymentIds) && deploymentIds.length > 0 && deploymentIds.every(isUuid);
    if (!isValid || deploymentIds.length > DELETED_MAX) {
      const errors = [
        { loc: ['query', 'deployment_ids'], msg: `Expected 1 to ${DELETED_MAX} UUIDs`, type: 'list_type' },
      ];
      throw new InvalidRequestError(CALLS.deleteMany.name, errors);
    }
    const call = { ...callOf(CALLS.deleteMany, { options }), query: { deployment_ids: deploymentIds } };
    const { status, data } = await this.#api.traced(call);
    return { isPartial: status === 207, answer: data };
  }

  /** Requests a URL for the source of an `internal_source` deployment. Anyone who has `upload_url` can use it. */
  async uploadUrl(deploymentId: string, options?: CallOptions): Promise<UploadUrl> {
    return this.#upload.url(deploymentId, options);
  }

  /**
   * Uploads the source of an `internal_source` deployment: a directory without its ignored files, or a `.tar.gz`. To
   * deploy the source, update the deployment with the result as `source_revision_config`.
   */
  async uploadSource(deploymentId: string, path: string | URL, options?: UploadSourceOptions): Promise<UploadedSource> {
    return this.#upload.send(deploymentId, path, options);
  }

  /**
   * Waits until a revision is deployed, by default the latest. Rejects with a RevisionError if the revision fails
   * (`RUNSPAN_REVISION_FAILED`), is replaced by a later revision (`RUNSPAN_REVISION_SUPERSEDED`) or is not deployed in
   * time (`RUNSPAN_TIMEOUT`). The wait continues after responses of 429 and 5xx and after broken connections.
   */
  async waitUntilDeployed(deploymentId: string, options?: WaitOptions): Promise<Deployed> {
    return this.#wait.untilDeployed(deploymentId, options);
  }

  /** Creates a deployment and waits for its first revision. */
  async createAndWait(deployment: DeploymentCreate, options?: Omit<WaitOptions, 'revisionId'>): Promise<Deployed> {
    return this.#wait.created(callOf(CALLS.create, { body: deployment }), options);
  }

  /** Updates a deployment and waits for the revision, if the patch creates one. */
  async updateAndWait(
    deploymentId: string,
    patch: DeploymentPatch,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Updated> {
    const call = callOf(CALLS.update, { ids: [deploymentId], body: patch });
    return this.#wait.updated(deploymentId, patch, call, options);
  }

  /** Deploys a revision again and waits for the revision that the service returns as the latest. */
  async redeployAndWait(
    deploymentId: string,
    revisionId: string,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Deployed> {
    return this.#wait.redeployed(deploymentId, revisionId, options);
  }
}
