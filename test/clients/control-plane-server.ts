import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEPLOYMENT_CREATE, DEPLOYMENT_PATCH } from '#src/clients/control-plane/schemas.ts';
import { type Spelling, SpellingTable } from '#src/clients/control-plane/spelling.ts';
import { parseRequest } from '#src/clients/schema.ts';
import { closeServer, listen } from '../support/listen.ts';
import { requestBody } from '../support/request-body.ts';
import { ObjectStore } from './object-store.ts';

type Json = Record<string, unknown>;

export interface ControlPlaneServerOptions {
  /** The names of the service for the names of the interface. */
  readonly spelling?: Spelling;
  /** Prefix of the paths of the interface, such as `/api-host`. */
  readonly prefix?: string;
  /** By default, no key is required. */
  readonly apiKey?: string | undefined;
  /** A call without this workspace receives 403. */
  readonly tenantId?: string;
  /** Whether the path of upload-url has a version. */
  readonly isUploadVersioned?: boolean;
}

export interface SeenCall {
  readonly method: string;
  /** Path without the prefix. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface TestRevision {
  readonly id: string;
  readonly resource: Json;
  /** The first status is the current status. Each request removes it, except the last. */
  statuses: string[];
}

export interface TestDeployment {
  readonly resource: Json & { id: string };
  /** The latest revision is first. */
  readonly revisions: TestRevision[];
}

type Answer = (request: IncomingMessage, response: ServerResponse, call: SeenCall) => void;

/** An error response in the format of FastAPI. */
class Refusal {
  readonly status: number;
  readonly detail: unknown;

  constructor(status: number, detail: unknown) {
    this.status = status;
    this.detail = detail;
  }
}

const NORMAL = ['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'];

/**
 * A control plane in memory, which accepts only requests that the interface allows. Its upload store has another
 * origin. Each request for a revision advances its status.
 */
export class ControlPlaneServer {
  readonly calls: SeenCall[] = [];
  readonly deployments: Map<string, TestDeployment> = new Map();
  readonly listeners: Map<string, Json> = new Map();
  readonly integrations: Json[] = [{ id: randomUUID(), installation_id: 7, name: 'acme' }];
  /** The store for uploads. */
  readonly store: ObjectStore = new ObjectStore();
  /** Statuses of new revisions. */
  statuses: readonly string[] = NORMAL;
  readonly #options: ControlPlaneServerOptions;
  readonly #spelling: SpellingTable;
  readonly #answers: { readonly pattern: RegExp; readonly answer: Answer }[] = [];
  readonly #server: Server = createServer((request, response) => this.#serve(request, response));

  constructor(options: ControlPlaneServerOptions = {}) {
    this.#options = options;
    this.#spelling = new SpellingTable(options.spelling ?? {});
  }

  static async start(options: ControlPlaneServerOptions = {}): Promise<ControlPlaneServer> {
    const server = new ControlPlaneServer(options);
    await server.store.start();
    await listen(server.#server);
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#options.prefix ?? ''}`;
  }

  /** Number of open connections. */
  async connections(): Promise<number> {
    return new Promise((resolve) => this.#server.getConnections((_, count) => resolve(count)));
  }

  /** Handles the next call whose `METHOD /path` matches. */
  next(pattern: RegExp, answer: Answer): void {
    this.#answers.push({ pattern, answer });
  }

  /** Returns the number of matching calls. */
  count(pattern: RegExp): number {
    return this.calls.filter(({ method, path }) => pattern.test(`${method} ${path}`)).length;
  }

  /** Creates a revision without a call, as a push does. */
  push(deploymentId: string): TestRevision {
    const deployment = this.deployments.get(deploymentId) as TestDeployment;
    return this.#revise(deployment, deployment.resource.source_revision_config as Json, deployment.resource.source);
  }

  async close(): Promise<void> {
    await this.store.close();
    await closeServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await requestBody(request);
    if (bytes === undefined) return;
    const url = new URL(request.url ?? '/', this.url);
    const { prefix = '' } = this.#options;
    const text = bytes.toString('utf8');
    const method = request.method ?? '';
    const path = url.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : `outside${url.pathname}`;
    const call: SeenCall = { method, path, query: url.searchParams, headers: request.headers, body: parsed(text) };
    this.calls.push(call);
    if (this.#answered(`${method} ${path}`, request, response, call)) return;
    try {
      this.#authenticate(call);
      const [status, body] = this.#route(call);
      send(response, status, body);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      send(response, thrown.status, { detail: thrown.detail });
    }
  }

  #answered(text: string, request: IncomingMessage, response: ServerResponse, call: SeenCall): boolean {
    const index = this.#answers.findIndex(({ pattern }) => pattern.test(text));
    if (index < 0) return false;
    this.#answers.splice(index, 1)[0]?.answer(request, response, call);
    return true;
  }

  #authenticate({ headers }: SeenCall): void {
    const { apiKey, tenantId } = this.#options;
    if (apiKey !== undefined && headers['x-api-key'] !== apiKey) throw new Refusal(401, 'Invalid API key.');
    if (tenantId !== undefined && headers['x-tenant-id'] !== tenantId) {
      throw new Refusal(403, 'This API key requires workspace specification.');
    }
  }

  #route(call: SeenCall): [status: number, body: unknown] {
    const { method, path } = call;
    const [version, group, id, below, revision, action, ...more] = path.split('/').slice(1);
    const route = `${method} ${[version, group, id && '*', below, revision && '*', action, ...more].filter(Boolean).join('/')}`;
    switch (route) {
      case 'POST v2/deployments':
        return [201, this.#create(call.body)];
      case 'GET v2/deployments':
        return [200, this.#list(call)];
      case 'GET v2/deployments/*':
        return [200, this.#shown(this.#deployment(id))];
      case 'PATCH v2/deployments/*':
        return [200, this.#patch(this.#deployment(id), call.body)];
      case 'DELETE v2/deployments/*':
        this.deployments.delete(this.#deployment(id).resource.id);
        return [204, undefined];
      case 'GET v2/deployments/*/revisions':
        return [200, this.#revisions(this.#deployment(id), call.query)];
      case 'GET v2/deployments/*/revisions/*':
        return [200, this.#look(this.#revision(id, revision))];
      case 'POST v2/deployments/*/revisions/*/redeploy': {
        const deployment = this.#deployment(id);
        const { resource } = this.#revision(id, revision);
        this.#revise(deployment, resource.source_revision_config as Json, resource.source);
        return [200, this.#shown(deployment)];
      }
      case 'POST v2/deployments/*/upload-url':
        if (this.#options.isUploadVersioned === false) throw new Refusal(404, 'Not Found');
        return [200, this.#uploadUrl(this.#deployment(id))];
      default:
        return this.#otherRoute(route, call, [version, group, id]);
    }
  }

  #otherRoute(route: string, call: SeenCall, [version, group, id]: (string | undefined)[]): [number, unknown] {
    const git = this.#spelling.wireName('git_host');
    if (version === 'v1' && group === 'integrations' && id === git) {
      if (route === 'GET v1/integrations/*/install') return [200, this.integrations];
    }
    // The interface lists this path without a version.
    if (this.#options.isUploadVersioned === false && version === 'deployments' && id === 'upload-url') {
      return [200, this.#uploadUrl(this.#deployment(group))];
    }
    if (route === 'GET v2/listeners') return [200, page([...this.listeners.values()], call.query)];
    throw new Refusal(404, 'Not Found');
  }

  #create(body: unknown): Json {
    this.#check(DEPLOYMENT_CREATE, body);
    const given = body as Json;
    const deployment: TestDeployment = {
      resource: {
        ...EMPTY.Deployment,
        secrets: [],
        ...given,
        source_config: { ...EMPTY.SourceConfig, ...(given.source_config as Json) },
        source_revision_config: this.#revisionConfig(given.source_revision_config as Json),
        id: randomUUID(),
        tenant_id: this.#options.tenantId ?? randomUUID(),
        created_at: now(),
        updated_at: now(),
        status: 'AWAITING_DATABASE',
        is_managed_deep_agent: false,
        deployment_tier: given.deployment_tier ?? 'SERVERLESS_S',
        // A later version of the service may add a field.
        region: 'eu',
      },
      revisions: [],
    };
    this.deployments.set(deployment.resource.id, deployment);
    this.#revise(deployment, deployment.resource.source_revision_config as Json, given.source);
    return this.#shown(deployment);
  }

  #patch(deployment: TestDeployment, body: unknown): Json {
    this.#check(DEPLOYMENT_PATCH, body);
    const given = body as Json;
    const { source_config, source_revision_config, revision_source, ...rest } = given;
    const { resource } = deployment;
    const path = (source_revision_config as Json | null)?.source_tarball_path;
    if (typeof path === 'string' && !this.store.issued.has(path))
      throw new Refusal(400, 'Unknown source_tarball_path.');
    const isGiven = ([, value]: [string, unknown]): boolean => value !== null;
    Object.assign(resource, Object.fromEntries(Object.entries(rest).filter(isGiven)), { updated_at: now() });
    resource.source_config = { ...(resource.source_config as Json), ...(source_config as Json) };
    const revision = Object.fromEntries(Object.entries((source_revision_config as Json) ?? {}).filter(isGiven));
    const makesOne =
      Object.keys(revision).length > 0 || given.secrets || (source_config as Json | undefined)?.resource_spec;
    if (makesOne) {
      const config = this.#revisionConfig({ ...(resource.source_revision_config as Json), ...revision });
      resource.source_revision_config = config;
      this.#revise(deployment, config, revision_source ?? resource.source);
    }
    return this.#shown(deployment);
  }

  #revise(deployment: TestDeployment, config: Json, source: unknown): TestRevision {
    const id = randomUUID();
    const resource = { id, created_at: now(), updated_at: now(), source, source_revision_config: config };
    const revision = { id, resource, statuses: [...this.statuses] };
    deployment.revisions.unshift(revision);
    deployment.resource.latest_revision_id = id;
    return revision;
  }

  #look(revision: TestRevision): Json {
    const status = revision.statuses.length > 1 ? revision.statuses.shift() : revision.statuses[0];
    return { ...revision.resource, status };
  }

  #revisions(deployment: TestDeployment, query: URLSearchParams): Json {
    const found = deployment.revisions.map(({ resource, statuses: [status] }) => ({ ...resource, status }));
    return page(found, query);
  }

  #list({ query }: SeenCall): Json {
    const found = [...this.deployments.values()].map((deployment) => this.#shown(deployment));
    return page(
      found.filter(({ name }) => String(name).includes(query.get('name_contains') ?? '')),
      query,
    );
  }

  #uploadUrl(deployment: TestDeployment): Json {
    const path = `uploads/${deployment.resource.id}/${randomUUID()}.tar.gz`;
    return { upload_url: this.store.issue(path), object_path: path };
  }

  /** Responds as the service does, with a list of the invalid fields. */
  #check(schema: typeof DEPLOYMENT_CREATE, body: unknown): void {
    const { errors } = parseRequest(schema, this.#spelling.fromWire(body), ['body']);
    if (errors.length === 0) return;
    // A field of another source is a 400.
    if (errors.every(({ msg }) => msg.startsWith('Only for')))
      throw new Refusal(400, errors.map(({ msg }) => msg).join());
    throw new Refusal(422, errors);
  }

  #revisionConfig(given: Json): Json {
    const empty = this.#spelling.toWire({ source_revision_config: EMPTY.SourceRevisionConfig });
    return { ...empty.source_revision_config, ...given };
  }

  #shown({ resource, revisions }: TestDeployment): Json {
    const active = revisions.find(({ statuses }) => statuses[0] === 'DEPLOYED')?.id ?? null;
    const config = resource.source_config as Json;
    const custom_url = config.custom_url ?? (active && `https://${resource.name}.agents.example`);
    return { ...resource, active_revision_id: active, source_config: { ...config, custom_url } };
  }

  #deployment(id: string | undefined): TestDeployment {
    checkUuid('deployment_id', id);
    const found = this.deployments.get(String(id));
    if (found === undefined) throw new Refusal(404, `Deployment ID ${id} not found.`);
    return found;
  }

  #revision(deploymentId: string | undefined, id: string | undefined): TestRevision {
    checkUuid('revision_id', id);
    const found = this.#deployment(deploymentId).revisions.find((revision) => revision.id === id);
    if (found === undefined) throw new Refusal(404, `Revision ID ${id} not found.`);
    return found;
  }
}

/** Fields of responses that may be null. */
const EMPTY = {
  Deployment: nulls('secret_references latest_revision_id active_revision_id image_version deployment_tier'),
  SourceConfig: nulls(
    'integration_id repo_url deployment_type build_on_push custom_url resource_spec listener_id listener_config install_command build_command',
  ),
  SourceRevisionConfig: nulls('repo_ref graph_config_path image_uri source_tarball_path repo_commit_sha'),
};

function nulls(fields: string): Json {
  return Object.fromEntries(fields.split(' ').map((field) => [field, null]));
}

function page(items: readonly unknown[], query: URLSearchParams): Json {
  const limit = Number(query.get('limit') ?? 20);
  const offset = Number(query.get('offset') ?? 0);
  const loc = (name: string): Json[] => [{ loc: ['query', name], msg: 'Input is out of range', type: 'value_error' }];
  if (!(limit >= 1 && limit <= 100)) throw new Refusal(422, loc('limit'));
  if (!(offset >= 0)) throw new Refusal(422, loc('offset'));
  const resources = items.slice(offset, offset + limit);
  return { resources, offset: offset + resources.length };
}

function checkUuid(name: string, id: string | undefined): void {
  if (/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id ?? '')) return;
  throw new Refusal(422, [
    { loc: ['path', name], msg: 'Input should be a valid UUID', type: 'uuid_parsing', input: id },
  ]);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': randomUUID() });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function now(): string {
  return new Date().toISOString();
}
