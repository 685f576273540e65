import { type Check, TRUE_OR_FALSE } from '../../config/checker.ts';
import type { BodySchema } from '../body.ts';
import { type CallOptions, TEXT_OPTION } from '../client-options.ts';
import { type Endpoint, endpoints, methodsOf, preparedCall, type Table } from '../endpoint.ts';
import { InvalidRequestError } from '../errors.ts';
import type { PageList } from '../page.ts';
import { isUuid, parseRequest, value } from '../schema.ts';
import { type ControlPlaneApi, LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';
import type { Deployment, DeploymentCreate, DeploymentPatch, DeploymentStatus, DeploymentType } from './deployment.ts';
import { changeAndWait, type Deployed, type Updated, type WaitOptions, waitUntilDeployed } from './deployment-wait.ts';
import { REVISIONS } from './revision.ts';
import { DEPLOYMENT_CREATE, DEPLOYMENT_PATCH } from './schemas.ts';
import {
  SourceUpload,
  type UploadConnection,
  type UploadedSource,
  type UploadSourceOptions,
  type UploadUrl,
} from './upload/source-upload.ts';

/** Selects the deployments to list. */
export interface ListDeploymentsOptions extends ListOptions {
  /** Returns only deployments whose name contains this text. */
  nameContains?: string;
  /** Returns only deployments with this status. */
  status?: DeploymentStatus;
  /** Filters deployments by the service's field `remote_reconciled`. */
  remoteReconciled?: boolean;
  /** Returns only deployments with one of these tag values. */
  tagValueIds?: readonly string[];
  /** Returns only deployments with this image version. */
  imageVersion?: string;
  /** Returns only deployments of this type. */
  deploymentType?: DeploymentType;
  /** Returns only deployments with one of these ids. */
  deploymentIds?: readonly string[];
}

/** Options of `Deployments.delete`. */
export interface DeleteDeploymentOptions extends CallOptions {
  /** Whether to also delete the deployment's tracing project. @default false */
  deleteTracingProject?: boolean;
}

/** Result of `deleteMany`. */
export interface DeletedDeployments {
  /** Whether some of the deployments could not be deleted. */
  readonly isPartial: boolean;
  /** Response of the service, in an unspecified format. */
  readonly response: unknown;
}

/** `/v2/deployments` */
export interface Deployments {
  /**
   * Creates a deployment and its first revision. The request is retried only if the service cannot have received it.
   */
  create(deployment: DeploymentCreate, options?: CallOptions): Promise<Deployment>;
  get(deploymentId: string, options?: CallOptions): Promise<Deployment>;
  list(options?: ListDeploymentsOptions): PageList<Deployment>;
  /** Updates a deployment. If the patch creates a revision, `latest_revision_id` changes (see `createsRevision`). */
  update(deploymentId: string, patch: DeploymentPatch, options?: CallOptions): Promise<Deployment>;
  delete(deploymentId: string, options?: DeleteDeploymentOptions): Promise<void>;
  /** Deletes up to 100 deployments with one request. */
  deleteMany(deploymentIds: readonly string[], options?: CallOptions): Promise<DeletedDeployments>;
  /**
   * Requests the path, and usually a URL, for uploading the source of an `internal_source` deployment. Keep `upload_url`
   * secret, because anyone who has the URL can upload.
   */
  uploadUrl(deploymentId: string, options?: CallOptions): Promise<UploadUrl>;
  /**
   * Uploads the source of an `internal_source` deployment: a directory without ignored files, or a `.tar.gz` file. To
   * deploy the source, pass the result to `update` as `source_revision_config`.
   */
  uploadSource(deploymentId: string, path: string | URL, options?: UploadSourceOptions): Promise<UploadedSource>;
  /**
   * Waits until a revision is deployed, by default the latest revision. Rejects with a RevisionError if the revision
   * fails, is replaced by a later revision or is not deployed in time. The error codes are `RUNSPAN_REVISION_FAILED`,
   * `RUNSPAN_REVISION_SUPERSEDED` and `RUNSPAN_TIMEOUT`. Broken connections and responses with status 429 or 5xx do not
   * end the wait.
   */
  waitUntilDeployed(deploymentId: string, options?: WaitOptions): Promise<Deployed>;
  /** Creates a deployment and waits for its first revision. */
  createAndWait(deployment: DeploymentCreate, options?: Omit<WaitOptions, 'revisionId'>): Promise<Deployed>;
  /** Updates a deployment. If the patch creates a revision, waits until the revision is deployed. */
  updateAndWait(
    deploymentId: string,
    patch: DeploymentPatch,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Updated>;
  /** Deploys a revision again and waits until the new revision is deployed. */
  redeployAndWait(
    deploymentId: string,
    revisionId: string,
    options?: Omit<WaitOptions, 'revisionId'>,
  ): Promise<Deployed>;
}

const DELETED_MAX = 100;

/** Schema for the ids of the deployments to delete. */
export const DELETED_IDS: BodySchema = value(
  `1 to ${DELETED_MAX} UUIDs`,
  (ids) => Array.isArray(ids) && ids.length > 0 && ids.length <= DELETED_MAX && ids.every(isUuid),
);

const IDS: Check = [
  'a list of ids',
  (value) => Array.isArray(value) && value.length > 0 && value.every(TEXT_OPTION[1]),
];
const join = (ids: readonly string[]): string => ids.join();

export type DeploymentCalls = Pick<Deployments, 'create' | 'get' | 'list' | 'update' | 'delete'>;

export const DEPLOYMENTS: Table<DeploymentCalls> = endpoints('deployments', {
  create: ['POST /v2/deployments', { body: DEPLOYMENT_CREATE }],
  get: ['GET /v2/deployments/{deployment_id:uuid}'],
  list: [
    'GET /v2/deployments',
    {
      response: 'pages',
      options: LIST_OPTIONS,
      query: {
        nameContains: [TEXT_OPTION],
        status: [TEXT_OPTION],
        remoteReconciled: [TRUE_OR_FALSE],
        tagValueIds: [IDS, join],
        imageVersion: [TEXT_OPTION],
        deploymentType: [TEXT_OPTION],
        deploymentIds: [IDS, join],
      },
    },
  ],
  update: ['PATCH /v2/deployments/{deployment_id:uuid}', { body: DEPLOYMENT_PATCH }],
  delete: [
    'DELETE /v2/deployments/{deployment_id:uuid}',
    { response: 'none', query: { deleteTracingProject: [TRUE_OR_FALSE] } },
  ],
});

export const DELETE_MANY: Endpoint = {
  name: 'deployments.deleteMany',
  method: 'DELETE',
  path: '/v2/deployments',
  response: 'any',
  query: { deploymentIds: [IDS] },
};

export function deploymentsOf(api: ControlPlaneApi, connection: UploadConnection): Deployments {
  const upload = new SourceUpload(api, connection);
  return {
    ...methodsOf<DeploymentCalls>(DEPLOYMENTS, api.call),
    deleteMany: async (deploymentIds, options) => deleteMany(api, deploymentIds, options),
    uploadUrl: async (deploymentId, options) => upload.url(deploymentId, options),
    uploadSource: async (deploymentId, path, options) => upload.send(deploymentId, path, options),
    waitUntilDeployed: async (deploymentId, options) => waitUntilDeployed(api, deploymentId, options),
    createAndWait: (body, options) => changeAndWait(api, 'createAndWait', DEPLOYMENTS.create, { body }, options),
    updateAndWait: (id, body, options) =>
      changeAndWait(api, 'updateAndWait', DEPLOYMENTS.update, { ids: [id], body }, options),
    redeployAndWait: (id, revisionId, options) =>
      changeAndWait(api, 'redeployAndWait', REVISIONS.redeploy, { ids: [id, revisionId] }, options),
  };
}

async function deleteMany(
  api: ControlPlaneApi,
  deploymentIds: readonly string[],
  options: CallOptions | undefined,
): Promise<DeletedDeployments> {
  const { errors } = parseRequest(DELETED_IDS, deploymentIds, ['query', 'deployment_ids']);
  if (errors.length > 0) throw new InvalidRequestError(DELETE_MANY.name, errors);
  const call = {
    ...preparedCall({ ...DELETE_MANY, query: {} }, { options }),
    query: { deployment_ids: deploymentIds },
  };
  const { status, data } = await api.traced(call);
  return { isPartial: status === 207, response: data };
}
