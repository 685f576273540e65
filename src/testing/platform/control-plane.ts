import { randomUUID } from 'node:crypto';
import { RunspanError } from '../../base/errors.ts';
import { shown } from '../../base/text.ts';
import {
  createsRevision,
  type Deployment,
  type DeploymentPatch,
  type SourceConfig,
  type SourceRevisionConfig,
} from '../../clients/control-plane/deployment.ts';
import {
  DELETE_MANY,
  DELETED_IDS,
  DEPLOYMENTS,
  type DeploymentCalls,
} from '../../clients/control-plane/deployments.ts';
import { type Integrations, integrationEndpoints } from '../../clients/control-plane/integrations.ts';
import { LISTENERS, type Listener, type Listeners } from '../../clients/control-plane/listeners.ts';
import { REVISIONS, type RevisionStatus, type Revisions } from '../../clients/control-plane/revision.ts';
import { DEPLOYMENT_RULES, isAllowedFor } from '../../clients/control-plane/schemas.ts';
import { SpellingTable } from '../../clients/control-plane/spelling.ts';
import { UNVERSIONED_UPLOAD_URL, UPLOAD_URL } from '../../clients/control-plane/upload/source-upload.ts';
import type { ValidationError } from '../../clients/errors.ts';
import { parseRequest } from '../../clients/schema.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route, RouteResponse } from '../../receiver/http/route.ts';
import { withoutNulls } from '../../receiver/http/validation.ts';
import { now, PlatformDeployment, type PlatformRevision, statusesOf, withConfig } from './deployments.ts';
import {
  type EndpointCall,
  endpointRoute,
  endpointRoutes,
  type Handlers,
  NO_CONTENT,
  okResponse,
  refuseErrors,
} from './endpoint-routes.ts';
import { ObjectStore } from './object-store.ts';
import type { PlatformOptions } from './platform-options.ts';
import type { Requests } from './requests.ts';

export interface ControlPlaneSettings extends Required<Pick<PlatformOptions, 'hosting' | 'statusMs' | 'spelling'>> {
  readonly requests: Requests;
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
  readonly #deployments = new Map<string, PlatformDeployment>();
  /** Listeners with their workspaces. */
  readonly #listeners = new Map<Listener, string>();
  readonly #integration = { id: randomUUID(), installation_id: 1, name: 'acme' };
  #statuses: readonly RevisionStatus[] | undefined;

  constructor(settings: ControlPlaneSettings) {
    this.#settings = settings;
    this.#spelling = new SpellingTable(settings.spelling);
    this.#objects = new ObjectStore(settings.uploads);
    const { requests } = settings;
    const more = { requests, named: (body: unknown) => this.#named(body), refuse: this.#refuse };
    this.routes = [
      ...endpointRoutes(DEPLOYMENTS, this.#deploymentHandlers, more),
      endpointRoute(DELETE_MANY, (call) => this.#deleteMany(call), more),
      ...[UPLOAD_URL, UNVERSIONED_UPLOAD_URL].map((one) => endpointRoute(one, (call) => this.#uploadUrl(call), more)),
      ...endpointRoutes(REVISIONS, this.#revisionHandlers, more),
      ...endpointRoutes(LISTENERS, this.#listenerHandlers, more),
      ...endpointRoutes(integrationEndpoints(this.#spelling), this.#integrationHandlers, more),
      this.#objects.route,
    ];
  }

  setStatuses(statuses: readonly RevisionStatus[]): void {
    if (!Array.isArray(statuses) || !statuses.every((status) => /^[A-Z_]+$/.test(status)) || statuses.length === 0)
      throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected a list of statuses, got ${shown(statuses)}`);
    this.#statuses = [...statuses];
  }

  push(deploymentId: string): string {
    const deployment = this.#deployments.get(deploymentId);
    if (deployment === undefined)
      throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected the id of a deployment, got ${shown(deploymentId)}`);
    const { source } = deployment.resource;
    // A patch may have made a later revision of another source. A push builds the source of the deployment.
    const own = deployment.revisions.find(({ resource }) => resource.source === source) as PlatformRevision;
    const config = { ...own.resource.source_revision_config, repo_commit_sha: null };
    this.#checkRules(deployment.resource, source, config);
    return this.#revise(deployment, source, config);
  }

  /** Returns the name of a deployment with an active revision, whose agent server responds. */
  deployedName(tenant: string, deploymentId: string): string | undefined {
    return this.#deploymentsOf(tenant).find(({ id, active }) => id === deploymentId && active !== undefined)?.resource
      .name;
  }

  readonly #deploymentHandlers: Handlers<DeploymentCalls> = {
    create: ({ tenant, body }) => {
      const given = body as Deployment;
      this.#checkHosting(given.source);
      this.#checkReferences(tenant, given.source_config);
      this.#checkObjectPath(given.source_revision_config);
      const deployment = new PlatformDeployment(tenant, given, this.#settings.statusMs);
      this.#deployments.set(deployment.id, deployment);
      this.#revise(deployment, given.source, given.source_revision_config);
      return { status: 201, body: this.#shown(deployment) };
    },
    get: (call) => okResponse(this.#shown(this.#deployment(call))),
    list: ({ tenant, search }) => {
      const isWanted = ({ resource, status }: PlatformDeployment): boolean =>
        [...search].every(([name, text]) => FILTERS[name]?.({ ...resource, status }, text) ?? true);
      return page(this.#deploymentsOf(tenant).filter(isWanted), search, (deployment) => this.#shown(deployment));
    },
    update: (call) => {
      const deployment = this.#deployment(call);
      this.#patch(deployment, call.body as DeploymentPatch);
      return okResponse(this.#shown(deployment));
    },
    delete: (call) => {
      this.#deployments.delete(this.#deployment(call).id);
      return NO_CONTENT;
    },
  };

  readonly #revisionHandlers: Handlers<Revisions> = {
    list: (call) => {
      const statuses = call.search.get('status')?.split(',');
      const found = this.#deployment(call).revisions.filter(({ status }) => statuses?.includes(status) ?? true);
      return page(found, call.search, (revision) => this.#spelling.toWire(revision.shown()));
    },
    get: (call) => okResponse(this.#spelling.toWire(this.#revision(call).shown())),
    redeploy: (call) => {
      const deployment = this.#deployment(call);
      const { source, source_revision_config } = this.#revision(call).resource;
      this.#checkRules(deployment.resource, source, source_revision_config, 400);
      this.#revise(deployment, source, source_revision_config);
      return okResponse(this.#shown(deployment));
    },
  };

  readonly #listenerHandlers: Handlers<Listeners> = {
    list: ({ tenant, search }) => page(this.#listenersOf(tenant), search, (listener) => listener),
    get: (call) => okResponse(this.#listener(call)),
    create: ({ tenant, body }) => {
      const given = body as Listener;
      if (this.#listenersOf(tenant).some(({ compute_id }) => compute_id === given.compute_id))
        throw new HttpError(409, `Listener with compute_id ${given.compute_id} already exists.`);
      const listener = { version: null, ...given, id: randomUUID(), created_at: now(), updated_at: now() };
      this.#listeners.set(listener, tenant);
      return { status: 201, body: listener };
    },
    update: (call) => {
      const listener = this.#listener(call);
      const changed = { ...listener, ...withoutNulls(call.body as Partial<Listener>), updated_at: now() };
      this.#checkUse(call, listener, changed);
      return okResponse(Object.assign(listener, changed));
    },
    delete: (call) => {
      const listener = this.#listener(call);
      this.#checkUse(call, listener);
      this.#listeners.delete(listener);
      return NO_CONTENT;
    },
  };

  readonly #integrationHandlers: Handlers<Integrations> = {
    list: () => okResponse([this.#integration]),
    repositories: ({ ids }) => {
      const { id } = found('Integration', [this.#integration], ids.integration_id);
      return okResponse([{ host_integration_id: id, ...REPOSITORY }]);
    },
  };

  /** Changes a deployment, unless the result breaks a rule. A patch alone does not tell, for example, its source. */
  #patch(deployment: PlatformDeployment, patch: DeploymentPatch): void {
    const { revision_source, source_config, source_revision_config, ...rest } = withoutNulls(patch);
    const { resource } = deployment;
    const source = revision_source ?? resource.source;
    this.#checkHosting(source);
    this.#checkObjectPath(source_revision_config, deployment.id);
    const isKept = ([field]: [string, unknown]): boolean => isAllowedFor(source, `source_revision_config.${field}`);
    const config: SourceRevisionConfig = {
      ...Object.fromEntries(Object.entries(resource.source_revision_config).filter(isKept)),
      ...withoutNulls(source_revision_config ?? {}),
    };
    const result = { ...resource, ...rest, source_config: withConfig(resource.source_config, source_config ?? {}) };
    this.#checkRules(result as Deployment, source, config);
    deployment.resource = { ...(result as Deployment), updated_at: now() };
    if (createsRevision(patch)) this.#revise(deployment, source, config);
  }

  /** Throws an HTTP error if a deployment with this revision breaks a rule about several fields. */
  #checkRules(deployment: Deployment, source: string, config: SourceRevisionConfig, status?: number): void {
    const whole = { ...deployment, revision_source: source, source_revision_config: config };
    this.#refuse(parseRequest(DEPLOYMENT_RULES, whole, ['body']).errors, status);
  }

  /** Throws an HTTP error in the platform's own names. By default, a field of another source is a 400, others a 422. */
  readonly #refuse = (errors: readonly ValidationError[], status?: number): void => {
    const own = (name: string): string => this.#spelling.wireName(name);
    const named = errors.map(({ loc, msg, ...rest }) => ({
      ...rest,
      loc: loc.map((step, at) => (loc[at - 1] === 'source_revision_config' ? own(`${step}`) : step)),
      msg: msg.replaceAll(/\w+/g, own),
    }));
    refuseErrors(named, status ?? (errors.every(({ msg }) => msg.startsWith('Only for')) ? 400 : 422));
  };

  #revise(deployment: PlatformDeployment, source: string, config: SourceRevisionConfig): string {
    const { uploads, statusMs } = this.#settings;
    const tarball = config.source_tarball_path ?? undefined;
    const isBuilt = isAllowedFor(source, 'source_revision_config.graph_config_path');
    const statuses = this.#statuses ?? statusesOf(isBuilt, tarball === undefined || uploads.has(tarball));
    return deployment.revise(source, config, statuses, statusMs);
  }

  #deleteMany({ tenant, search }: EndpointCall): RouteResponse {
    const given = search.getAll('deployment_ids').map((id) => id.toLowerCase());
    refuseErrors(parseRequest(DELETED_IDS, given, ['query', 'deployment_ids']).errors);
    const own = this.#deploymentsOf(tenant).map(({ id }) => id);
    const failed = given.filter((id) => !own.includes(id));
    if (failed.length === given.length) throw new HttpError(404, `Deployment ID ${failed.join(', ')} not found.`);
    const deleted = [...new Set(given)].filter((id) => own.includes(id));
    for (const id of deleted) this.#deployments.delete(id);
    return { status: failed.length === 0 ? 200 : 207, body: { deleted, failed } };
  }

  #uploadUrl(call: EndpointCall): RouteResponse {
    const { path, target } = this.#objects.issue(this.#deployment(call).id);
    return okResponse({ object_path: path, upload_url: this.#settings.url() + target });
  }

  /** Throws an HTTP 400 error for a source whose path was not issued to this deployment. A new one has no paths. */
  #checkObjectPath(config: SourceRevisionConfig | null | undefined, deploymentId = ''): void {
    const path = config?.source_tarball_path;
    if (!path || this.#objects.isIssued(path, deploymentId)) return;
    throw new HttpError(400, 'source_revision_config.source_tarball_path: Expected a path from upload-url');
  }

  #checkHosting(source: string): void {
    const isSelfHosted = this.#settings.hosting === 'self-hosted';
    if ((source === 'external_container') === isSelfHosted) return;
    const own = this.#spelling.wireName(source);
    throw new HttpError(400, `source: ${own} is only for ${isSelfHosted ? 'cloud' : 'self-hosted'} deployments`);
  }

  #checkReferences(tenant: string, { integration_id, listener_id, listener_config }: SourceConfig): void {
    if (integration_id) found('Integration', [this.#integration], integration_id, 400);
    const listener = listener_id ? found('Listener', this.#listenersOf(tenant), listener_id, 400) : undefined;
    const place = 'source_config.listener_config.k8s_namespace';
    if (listener_config?.k8s_namespace && listener?.compute_type !== 'k8s')
      throw new HttpError(400, `${place}: Only for listeners of compute type k8s`);
    if (listener !== undefined && !reaches(listener, listener_config))
      throw new HttpError(400, `${place}: Expected a namespace of the listener`);
  }

  /** Throws an HTTP 409 error if a deployment uses the listener, and cannot use what it is changed to. */
  #checkUse({ tenant }: EndpointCall, { id }: Listener, changed?: Listener): void {
    const lost = this.#deploymentsOf(tenant).find(({ resource: { source_config: config } }) => {
      const isUser = config.listener_id?.toLowerCase() === id;
      return isUser && (changed === undefined || !reaches(changed, config.listener_config));
    });
    if (lost !== undefined) throw new HttpError(409, `Deployment ID ${lost.id} uses the listener.`);
  }

  #deploymentsOf(tenant: string): PlatformDeployment[] {
    return [...this.#deployments.values()].filter(({ resource }) => resource.tenant_id === tenant);
  }

  #listenersOf(tenant: string): Listener[] {
    return [...this.#listeners].flatMap(([listener, owner]) => (owner === tenant ? [listener] : []));
  }

  #deployment({ tenant, ids }: EndpointCall): PlatformDeployment {
    return found('Deployment', this.#deploymentsOf(tenant), ids.deployment_id);
  }

  #revision(call: EndpointCall): PlatformRevision {
    return found('Revision', this.#deployment(call).revisions, call.ids.revision_id);
  }

  #listener({ tenant, ids }: EndpointCall): Listener {
    return found('Listener', this.#listenersOf(tenant), ids.listener_id);
  }

  /** Translates a body to the names of the interface. A platform with its own names refuses those of the interface. */
  #named(body: unknown): unknown {
    if (JSON.stringify(this.#spelling.toWire(body)) === JSON.stringify(body)) return this.#spelling.fromWire(body);
    const msg = `Expected the platform's own names: ${Object.values(this.#settings.spelling).join(', ')}`;
    throw new HttpError(422, [{ loc: ['body'], msg, type: 'value_error' }]);
  }

  #shown(deployment: PlatformDeployment): Deployment {
    return this.#spelling.toWire(deployment.shownAt(`${this.#settings.url()}/agents/${deployment.id}`));
  }
}

const REPOSITORY = { id: 1, name: 'agent', owner: 'acme', url: 'https://git.example/agent', default_branch: 'main' };

/** Query parameters that select deployments. No deployment has tags. */
const FILTERS: Readonly<Record<string, (deployment: Deployment, text: string) => boolean>> = {
  name_contains: ({ name }, text) => name.includes(text),
  status: ({ status }, text) => status === text,
  tag_value_ids: () => false,
  image_version: ({ image_version }, text) => image_version === text,
  deployment_type: ({ source_config }, text) => source_config.deployment_type === text,
  deployment_ids: ({ id }, text) => text.toLowerCase().split(',').includes(id),
};

/** Whether a listener can deploy with this configuration. Without a list, it reaches every namespace. */
function reaches({ compute_config: { k8s_namespaces } }: Listener, config: SourceConfig['listener_config']): boolean {
  const namespace = config?.k8s_namespace;
  return !namespace || !k8s_namespaces || k8s_namespaces.includes(namespace);
}

/** Returns the item with this id. Throws an HTTP error, by default 404, if there is none. */
function found<Item extends { id: string }>(kind: string, items: readonly Item[], id = '', status = 404): Item {
  const item = items.find((one) => one.id === id.toLowerCase());
  if (item === undefined) throw new HttpError(status, `${kind} ID ${id} not found.`);
  return item;
}

function page<Item>(items: readonly Item[], search: URLSearchParams, view: (item: Item) => unknown): RouteResponse {
  const offset = Number(search.get('offset') ?? 0);
  const resources = items.slice(offset, offset + Number(search.get('limit') ?? 20)).map(view);
  return okResponse({ resources, offset: offset + resources.length });
}
