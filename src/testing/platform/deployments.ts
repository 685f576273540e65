import { randomBytes, randomUUID } from 'node:crypto';
import type { Deployment, SourceConfig, SourceRevisionConfig } from '../../clients/control-plane/deployment.ts';
import type { ResourceSpec } from '../../clients/control-plane/resource-spec.ts';
import type { RevisionStatus } from '../../clients/control-plane/revision.ts';
import { FROM_SERVER, NO_REVISION_CONFIG, NO_SOURCE_CONFIG, roundCores } from '../../clients/control-plane/schemas.ts';
import { monotonicNowMs } from '../../platform/timers.ts';
import { withoutNulls } from '../../receiver/http/validation.ts';

/** A resource whose status changes by itself. Each status lasts `statusMs`, and the last one stays. */
export class Staged<Resource extends { readonly id: string }> {
  resource: Resource;
  readonly #statuses: readonly string[];
  readonly #statusMs: number;
  readonly #startedMs = monotonicNowMs();
  #shown = 0;

  constructor(resource: Resource, statuses: readonly string[], statusMs: number) {
    this.resource = resource;
    this.#statuses = statuses;
    this.#statusMs = statusMs;
  }

  get id(): string {
    return this.resource.id;
  }

  get status(): string {
    const passed = this.#statusMs === 0 ? this.#shown : (monotonicNowMs() - this.#startedMs) / this.#statusMs;
    return this.#statuses[Math.min(Math.floor(passed), this.#statuses.length - 1)] ?? 'UNKNOWN';
  }

  /** Returns the resource for a response. If statuses last 0 ms, they change after each response. */
  shown(): Resource & { readonly status: string } {
    const { resource, status } = this;
    this.#shown += 1;
    return { ...resource, status };
  }
}

export type PlatformRevision = Staged<Pick<Deployment, 'id' | 'source' | 'source_revision_config'>>;

export class PlatformDeployment extends Staged<Deployment> {
  /** The latest revision is first. */
  readonly revisions: PlatformRevision[] = [];

  constructor(tenant_id: string, { source_config, ...given }: Deployment, statusMs: number) {
    const default_tier = source_config.deployment_type === 'prod' ? 'DEDICATED_S' : 'SERVERLESS_S';
    const added = { secret_references: null, image_version: null, secrets: [], deployment_tier: default_tier };
    const set = { id: randomUUID(), tenant_id, created_at: now(), updated_at: now(), is_managed_deep_agent: false };
    const config = withConfig(NO_SOURCE_CONFIG, source_config);
    super({ ...added, ...withoutNulls(given as Deployment), source_config: config, ...set }, DATABASE, statusMs);
  }

  get active(): PlatformRevision | undefined {
    return this.revisions.find(({ status }) => status === 'DEPLOYED');
  }

  revise(source: string, config: SourceRevisionConfig, statuses: readonly RevisionStatus[], statusMs: number): string {
    const commit = config.repo_commit_sha ?? randomBytes(20).toString('hex');
    const repo_commit_sha = source === 'git_host' ? commit : null;
    const source_revision_config = { ...NO_REVISION_CONFIG, ...config, repo_commit_sha };
    const id = randomUUID();
    const resource = { id, created_at: now(), updated_at: now(), source, source_revision_config };
    this.revisions.unshift(new Staged(resource, statuses, statusMs));
    Object.assign(this.resource, { latest_revision_id: id, source_revision_config, updated_at: now() });
    return id;
  }

  /** Returns the deployment for a response. `url` is the URL of its agent server. */
  shownAt(url: string): Deployment {
    const { resource, active } = this;
    const custom_url = resource.source_config.custom_url ?? (active === undefined ? null : url);
    const source_config = { ...resource.source_config, custom_url };
    return { ...this.shown(), source_config, active_revision_id: active?.resource.id ?? null };
  }
}

const DATABASE = ['AWAITING_DATABASE', 'READY'];

/** Returns the statuses of a revision. A source that was not uploaded cannot be built. */
export function statusesOf(isBuilt: boolean, hasSource: boolean): readonly RevisionStatus[] {
  const built: readonly RevisionStatus[] = isBuilt ? ['AWAITING_BUILD', 'BUILDING'] : [];
  const rest = hasSource ? ['AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'] : ['BUILD_FAILED'];
  return ['CREATING', 'QUEUED', ...built, ...rest];
}

/** Applies a request to a source configuration. A resource specification replaces the earlier one. */
export function withConfig(earlier: SourceConfig, given: SourceConfig): SourceConfig {
  const { resource_spec, listener_config, ...patch } = withoutNulls(given);
  return {
    ...earlier,
    ...patch,
    ...(resource_spec && { resource_spec: withDefaults(resource_spec) }),
    ...(listener_config && { listener_config: { ...earlier.listener_config, ...listener_config } }),
  };
}

/** Rounds CPU values to one decimal, and adds the values that a request leaves out. */
function withDefaults(given: ResourceSpec): ResourceSpec {
  const spec: Record<string, unknown> = withoutNulls({ ...given });
  const set = (field: string, value: unknown): void => {
    if (Number.isFinite(value)) spec[field] ??= value;
  };
  for (const field of Object.keys(spec)) if (field.includes('cpu')) spec[field] = roundCores(Number(spec[field]));
  for (const [field, ofServer] of Object.entries(FROM_SERVER)) set(field, spec[ofServer]);
  for (const part of ['', 'queue_', 'redis_', 'core_', 'db_']) {
    set(`${part}cpu_limit`, 2 * Number(spec[`${part}cpu`]));
    set(`${part}memory_limit_mb`, (part === 'redis_' ? 1 : 2) * Number(spec[`${part}memory_mb`]));
  }
  return spec;
}

export function now(): string {
  return new Date().toISOString();
}
