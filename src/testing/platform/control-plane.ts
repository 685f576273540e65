import { randomUUID } from 'node:crypto';
import { RunspanError } from '../../base/errors.ts';
import { shown } from '../../base/text.ts';
import {
  createsRevision,
  type DeploymentCreate,
  type DeploymentPatch,
  type DeploymentSource,
  type SourceConfig,
  type SourceRevisionConfig,
} from '../../clients/control-plane/deployment.ts';
import { DELETE_MANY, DEPLOYMENTS, type DeploymentCalls } from '../../clients/control-plane/deployments.ts';
import {
  type Integration,
  type Integrations,
  integrationEndpoints,
  type Repository,
} from '../../clients/control-plane/integrations.ts';
import {
  LISTENERS,
  type Listener,
  type ListenerCreate,
  type ListenerPatch,
  type Listeners,
} from '../../clients/control-plane/listeners.ts';
import { REVISIONS, type RevisionStatus, type Revisions } from '../../clients/control-plane/revision.ts';
import { DEPLOYMENT_RULES, revisionFieldsOf } from '../../clients/control-plane/schemas.ts';
import { SpellingTable } from '../../clients/control-plane/spelling.ts';
import { UNVERSIONED_UPLOAD_URL, UPLOAD_URL } from '../../clients/control-plane/upload/source-upload.ts';
import { isUuid, parseRequest } from '../../clients/schema.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route, RouteResponse } from '../../receiver/http/route.ts';
import { withoutNulls } from '../../receiver/http/validation.ts';
import type { PlatformOptions } from '../create-platform.ts';
import {
  type DeploymentFields,
  newCommit,
  normalStatuses,
  now,
  PlatformDeployment,
  PlatformRevision,
  Progress,
} from './deployments.ts';
import {
  type EndpointCall,
  endpointRoute,
  endpointRoutes,
  type Handlers,
  type RouteSettings,
  refuseErrors,
} from './endpoint-routes.ts';
import { ObjectStore } from './object-store.ts';
import type { Requests } from './requests.ts';
import { completeResources } from './resource-limits.ts';
import { page, Resources } from './resources.ts';

export interface ControlPlaneSettings extends Required<Pick<PlatformOptions, 'hosting' | 'statusMs' | 'spelling'>> {
  readonly requests: Requests;
  /** Returns the base URL of the platform. */
  readonly url: () => string;
  /** Uploaded objects by object path. */
  readonly uploads: Map<string, Uint8Array>;
}

/** Deployments and their revisions, in memory. */
export class PlatformControlPlane {
  readonly routes: readonly Route[];
  readonly #settings: ControlPlaneSettings;
  readonly #spelling: SpellingTable;
  readonly #objects: ObjectStore;
  readonly #deployments = new Resources<PlatformDeployment>('Deployment');
  readonly #listeners = new Resources<Listener>('Listener');
  readonly #integrations: readonly Integration[] = [{ id: randomUUID(), installation_id: 1, name: 'acme' }];
  #statuses: readonly RevisionStatus[] | undefined;

  constructor(settings: ControlPlaneSettings) {
    const { requests, spelling, uploads, url } = settings;
    this.#settings = settings;
    this.#spelling = new SpellingTable(spelling);
    this.#objects = new ObjectStore(uploads, url);
    const named = (body: unknown): unknown => this.#spelling.fromWire(body);
    const routes: RouteSettings = { requests, named, refusal: statusOf };
    const issueUrl = ({ tenant, ids }: EndpointCall): RouteResponse => this.#uploadUrl(tenant, ids.deployment_id);
    this.routes = [
      ...endpointRoutes(DEPLOYMENTS, this.#deploymentHandlers, routes),
      endpointRoute(DELETE_MANY, (call) => this.#deleteMany(call), routes),
      endpointRoute(UPLOAD_URL, issueUrl, routes),
      endpointRoute(UNVERSIONED_UPLOAD_URL, issueUrl, routes),
      ...endpointRoutes(REVISIONS, this.#revisionHandlers, routes),
      ...endpointRoutes(LISTENERS, this.#listenerHandlers, routes),
      ...endpointRoutes(integrationEndpoints(this.#spelling), this.#integrationHandlers, routes),
      this.#objects.route,
    ];
  }

  setStatuses(statuses: readonly RevisionStatus[]): void {
    if (statuses.length === 0)
      throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected `statuses` to be a non-empty list, got []');
    this.#statuses = [...statuses];
  }

  push(deploymentId: string): string {
    const deployment = this.#deployments.find(undefined, deploymentId);
    if (deployment === undefined) {
      const message = `Expected \`deploymentId\` to be the id of a deployment, got ${shown(deploymentId)}`;
      throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
    }
    return this.#revise(deployment, deployment.fields.source, deployment.revisions[0]?.config ?? {});
  }

  /** Returns whether a deployment of a workspace has an active revision, so that its agent server responds. */
  isDeployed(tenant: string, deploymentId: string): boolean {
    return this.#deployments.find(tenant, deploymentId)?.active !== undefined;
  }

  readonly #deploymentHandlers: Handlers<DeploymentCalls> = {
    create: ({ tenant, body }) => {
      const { source_revision_config, ...fields } = withoutNulls(body as DeploymentCreate);
      const { source, source_config } = fields;
      this.#checkHosting(source);
      this.#checkReferences(tenant, source_config);
      checkObjectPath(source_revision_config);
      const given = { ...fields, source_config: completed(source_config) };
      const deployment = new PlatformDeployment(tenant, given, this.#settings.statusMs);
      this.#deployments.set(tenant, deployment);
      this.#revise(deployment, source, source_revision_config);
      return { ...this.#shown(deployment), status: 201 };
    },
    get: (call) => this.#shown(this.#deploymentOf(call)),
    list: ({ tenant, search }) => {
      const filters = [...search].filter(([name]) => Object.hasOwn(FILTERS, name));
      const isWanted = (one: Fields): boolean => filters.every(([name, text]) => FILTERS[name]?.(one, text) !== false);
      const found = this.#deployments.of(tenant).filter((one) => isWanted(one.toResponse('')));
      return page(found, search, (deployment) => this.#shown(deployment).body);
    },
    update: (call) => {
      const deployment = this.#deploymentOf(call);
      this.#patch(deployment, call.body as DeploymentPatch);
      return this.#shown(deployment);
    },
    delete: ({ tenant, ids }) => {
      this.#deployments.delete(tenant, ids.deployment_id ?? '');
      return { status: 204, content: '' };
    },
  };

  readonly #revisionHandlers: Handlers<Revisions> = {
    list: (call) => {
      const statuses = call.search.get('status')?.split(',');
      const { revisions } = this.#deploymentOf(call);
      const found = revisions.filter(({ progress }) => statuses?.includes(progress.current) ?? true);
      return page(found, call.search, (revision) => this.#shownRevision(revision));
    },
    get: (call) => ({ status: 200, body: this.#shownRevision(this.#revisionOf(call)) }),
    redeploy: (call) => {
      const deployment = this.#deploymentOf(call);
      const { source, config } = this.#revisionOf(call);
      this.#revise(deployment, source, config, config.repo_commit_sha);
      return this.#shown(deployment);
    },
  };

  readonly #listenerHandlers: Handlers<Listeners> = {
    list: ({ tenant, search }) => page(this.#listeners.of(tenant), search, (listener) => listener),
    get: ({ tenant, ids }) => ({ status: 200, body: this.#listeners.get(tenant, ids.listener_id) }),
    create: ({ tenant, body }) => {
      const given = body as ListenerCreate;
      if (this.#listeners.of(tenant).some(({ compute_id }) => compute_id === given.compute_id))
        throw new HttpError(409, `Listener with compute_id ${given.compute_id} already exists.`);
      const listener = { version: null, ...given, id: randomUUID(), created_at: now(), updated_at: now() };
      this.#listeners.set(tenant, listener);
      return { status: 201, body: listener };
    },
    update: ({ tenant, ids, body }) => {
      const patch = withoutNulls(body as ListenerPatch);
      const listener = this.#listeners.get(tenant, ids.listener_id);
      const compute_config = { ...listener.compute_config, ...patch.compute_config };
      const changed = { ...listener, ...patch, compute_config, updated_at: now() };
      this.#listeners.set(tenant, changed);
      return { status: 200, body: changed };
    },
    delete: ({ tenant, ids }) => {
      this.#listeners.delete(tenant, ids.listener_id ?? '');
      return { status: 204, content: '' };
    },
  };

  readonly #integrationHandlers: Handlers<Integrations> = {
    list: () => ({ status: 200, body: this.#integrations }),
    repositories: ({ ids }) => {
      const { id } = this.#integrationOf(ids.integration_id, 404);
      return { status: 200, body: [{ host_integration_id: id, ...REPOSITORY }] };
    },
  };

  /** Changes a deployment, unless the result breaks a rule. A patch alone does not tell, for example, its source. */
  #patch(deployment: PlatformDeployment, patch: DeploymentPatch): void {
    const { revision_source, source_config, source_revision_config, ...rest } = withoutNulls(patch);
    const { fields, revisions } = deployment;
    const source = revision_source ?? fields.source;
    this.#checkHosting(source);
    const changed = changedConfig(fields.source_config, source_config ?? {});
    const allowed = revisionFieldsOf(source);
    const earlier = Object.entries(revisions[0]?.config ?? {}).filter(([field]) => allowed.includes(field));
    const config = { ...Object.fromEntries(earlier), ...withoutNulls(source_revision_config ?? {}) };
    const result = { ...fields, ...rest, source_config: changed } as DeploymentFields;
    const body = { ...result, revision_source: source, source_revision_config: config };
    refuseErrors(parseRequest(DEPLOYMENT_RULES, body, ['body']).errors, statusOf);
    checkObjectPath(source_revision_config, deployment);
    deployment.fields = result;
    if (createsRevision(patch)) this.#revise(deployment, source, config);
  }

  #revise(
    deployment: PlatformDeployment,
    source: DeploymentSource,
    config: SourceRevisionConfig,
    commit: string | null = newCommit(),
  ): string {
    const tarball = config.source_tarball_path ?? undefined;
    const isBuilt = revisionFieldsOf(source).includes('graph_config_path');
    const normal = normalStatuses(isBuilt, tarball === undefined || this.#objects.has(tarball));
    const progress = new Progress(this.#statuses ?? normal, this.#settings.statusMs);
    const repo_commit_sha = source === 'git_host' ? commit : null;
    const revision = new PlatformRevision(source, { ...config, repo_commit_sha }, progress);
    deployment.revise(revision);
    return revision.id;
  }

  #deleteMany({ tenant, search }: EndpointCall): RouteResponse {
    const given = [...new Set(search.getAll('deployment_ids'))];
    if (given.length < 1 || given.length > DELETED_MAX || !given.every(isUuid)) {
      const msg = `Expected 1 to ${DELETED_MAX} UUIDs`;
      throw new HttpError(422, [{ loc: ['query', 'deployment_ids'], msg, type: 'list_type' }]);
    }
    const deleted = given.filter((id) => this.#deployments.find(tenant, id) !== undefined);
    const failed = given.filter((id) => !deleted.includes(id));
    if (deleted.length === 0) throw new HttpError(404, `Deployment ID ${failed.join(', ')} not found.`);
    for (const id of deleted) this.#deployments.delete(tenant, id);
    return { status: failed.length === 0 ? 200 : 207, body: { deleted, failed } };
  }

  #uploadUrl(tenant: string, deploymentId: string | undefined): RouteResponse {
    const deployment = this.#deployments.get(tenant, deploymentId);
    const issued = this.#objects.issue(deployment.id);
    deployment.uploadPaths.add(issued.object_path);
    return { status: 200, body: issued };
  }

  #checkHosting(source: string): void {
    const { hosting } = this.#settings;
    if ((source === 'external_container') === (hosting === 'self-hosted')) return;
    const where = hosting === 'cloud' ? 'self-hosted' : 'cloud-hosted';
    throw new HttpError(400, `source: ${source} is only for ${where} deployments`);
  }

  #checkReferences(tenant: string, { integration_id, listener_id, listener_config }: SourceConfig): void {
    if (integration_id) this.#integrationOf(integration_id, 400);
    const listener = listener_id ? this.#listeners.get(tenant, listener_id, 400) : undefined;
    const namespace = listener_config?.k8s_namespace;
    if (namespace && listener?.compute_type !== 'k8s')
      throw new HttpError(400, 'source_config.listener_config.k8s_namespace: Only for listeners of compute type k8s');
  }

  #integrationOf(id: string | undefined, status: number): Integration {
    const found = this.#integrations.find((integration) => integration.id === id?.toLowerCase());
    if (found === undefined) throw new HttpError(status, `Integration ID ${id} not found.`);
    return found;
  }

  #deploymentOf({ tenant, ids }: EndpointCall): PlatformDeployment {
    return this.#deployments.get(tenant, ids.deployment_id);
  }

  #revisionOf(call: EndpointCall): PlatformRevision {
    const { revision_id: id } = call.ids;
    const found = this.#deploymentOf(call).revisions.find((revision) => revision.id === id?.toLowerCase());
    if (found === undefined) throw new HttpError(404, `Revision ID ${id} not found.`);
    return found;
  }

  #shown(deployment: PlatformDeployment): RouteResponse {
    const body = deployment.toResponse(`${this.#settings.url()}/agents/${deployment.id}`);
    deployment.progress.shown();
    return { status: 200, body: this.#spelling.toWire(body) };
  }

  #shownRevision(revision: PlatformRevision): unknown {
    const body = revision.toResponse();
    revision.progress.shown();
    return this.#spelling.toWire(body);
  }
}

const DELETED_MAX = 100;

const REPOSITORY: Repository = {
  id: 1,
  name: 'agent',
  owner: 'acme',
  url: 'https://git.example/acme/agent',
  default_branch: 'main',
};

type Fields = ReturnType<PlatformDeployment['toResponse']>;

/** Query parameters of a list of deployments. No deployment has tags. */
const FILTERS: Readonly<Record<string, (deployment: Fields, text: string) => boolean>> = {
  name_contains: ({ name }, text) => name.includes(text),
  status: ({ status }, text) => status === text,
  tag_value_ids: () => false,
  image_version: ({ image_version }, text) => image_version === text,
  deployment_type: ({ source_config }, text) => source_config.deployment_type === text,
  deployment_ids: ({ id }, text) => text.toLowerCase().split(',').includes(id),
};

/** A field of another source is a 400. Other invalid fields are a 422. */
function statusOf(messages: readonly string[]): number {
  return messages.every((message) => message.startsWith('Only for')) ? 400 : 422;
}

/** Throws an HTTP 400 error for a source whose path was not issued to this deployment. */
function checkObjectPath(config: SourceRevisionConfig | null | undefined, deployment?: PlatformDeployment): void {
  const path = config?.source_tarball_path;
  if (!path || deployment?.uploadPaths.has(path) === true) return;
  throw new HttpError(400, 'source_revision_config.source_tarball_path: Expected a path from upload-url');
}

function completed(config: SourceConfig): SourceConfig {
  const { resource_spec } = config;
  return { ...config, ...(resource_spec && { resource_spec: completeResources(resource_spec) }) };
}

/** A resource specification replaces the earlier one. */
function changedConfig(earlier: SourceConfig, given: SourceConfig): SourceConfig {
  const patch = withoutNulls(given);
  const listener_config = { ...earlier.listener_config, ...patch.listener_config };
  return { ...earlier, ...completed(patch), ...(patch.listener_config && { listener_config }) };
}
