import { randomBytes, randomUUID } from 'node:crypto';
import type {
  Deployment,
  DeploymentCreate,
  DeploymentSource,
  SourceConfig,
  SourceRevisionConfig,
} from '../../clients/control-plane/deployment.ts';
import type { Revision, RevisionStatus } from '../../clients/control-plane/revision.ts';
import { monotonicNowMs } from '../../platform/timers.ts';

/** A sequence of statuses. The last one stays. */
export class Progress<Status extends string = RevisionStatus> {
  readonly #statuses: readonly Status[];
  readonly #statusMs: number;
  readonly #startedMs: number = monotonicNowMs();
  #shown = 0;

  /** Each status lasts `statusMs`. With 0, each lasts until a response has shown it. */
  constructor(statuses: readonly Status[], statusMs: number) {
    this.#statuses = statuses;
    this.#statusMs = statusMs;
  }

  get current(): Status {
    const passed = this.#statusMs === 0 ? this.#shown : (monotonicNowMs() - this.#startedMs) / this.#statusMs;
    return this.#statuses[Math.min(Math.floor(passed), this.#statuses.length - 1)] as Status;
  }

  /** Tells that a response shows the current status. */
  shown(): void {
    this.#shown += 1;
  }
}

const BUILD: readonly RevisionStatus[] = ['AWAITING_BUILD', 'BUILDING'];

/** Returns the statuses of a revision. An image is not built, and a source that was not uploaded cannot be built. */
export function normalStatuses(isBuilt: boolean, hasSource: boolean): readonly RevisionStatus[] {
  const queued: readonly RevisionStatus[] = ['CREATING', 'QUEUED', ...(isBuilt ? BUILD : [])];
  return hasSource ? [...queued, 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'] : [...queued, 'BUILD_FAILED'];
}

/** A revision of a deployment. It never changes, except for its status. */
export class PlatformRevision {
  readonly id: string = randomUUID();
  readonly source: DeploymentSource;
  readonly config: SourceRevisionConfig;
  readonly progress: Progress;
  readonly #createdAt: string = now();

  constructor(source: DeploymentSource, config: SourceRevisionConfig, progress: Progress) {
    this.source = source;
    this.config = { ...NO_REVISION_CONFIG, ...config };
    this.progress = progress;
  }

  toResponse(): Revision {
    const { id, source, config, progress } = this;
    const createdAt = this.#createdAt;
    const status = progress.current;
    return { id, created_at: createdAt, updated_at: createdAt, status, source, source_revision_config: config };
  }
}

/** The fields of a deployment that requests set. */
export type DeploymentFields = Omit<DeploymentCreate, 'source_revision_config'>;

/** A deployment of a workspace. */
export class PlatformDeployment {
  readonly id: string = randomUUID();
  readonly tenant: string;
  /** The latest revision is first. */
  readonly revisions: PlatformRevision[] = [];
  /** Paths to which the source of this deployment may be uploaded. */
  readonly uploadPaths: Set<string> = new Set();
  readonly progress: Progress<string>;
  #fields: DeploymentFields;
  readonly #createdAt: string = now();
  #updatedAt: string = this.#createdAt;

  constructor(tenant: string, fields: DeploymentFields, statusMs: number) {
    this.tenant = tenant;
    this.#fields = fields;
    this.progress = new Progress(['AWAITING_DATABASE', 'READY'], statusMs);
  }

  get fields(): DeploymentFields {
    return this.#fields;
  }

  set fields(fields: DeploymentFields) {
    this.#fields = fields;
    this.#updatedAt = now();
  }

  get active(): PlatformRevision | undefined {
    return this.revisions.find(({ progress }) => progress.current === 'DEPLOYED');
  }

  revise(revision: PlatformRevision): void {
    this.revisions.unshift(revision);
    this.#updatedAt = now();
  }

  /** Returns the deployment as a response shows it. `url` is the URL of its agent server. */
  toResponse(url: string): Deployment {
    const { id, tenant, revisions, active, progress } = this;
    const { source_config: given, ...fields } = this.#fields;
    const custom_url = given.custom_url ?? (active === undefined ? null : url);
    return {
      ...NO_FIELDS,
      ...fields,
      source_config: { ...NO_SOURCE_CONFIG, ...given, custom_url },
      source_revision_config: revisions[0]?.config ?? NO_REVISION_CONFIG,
      secrets: fields.secrets ?? [],
      id,
      tenant_id: tenant,
      created_at: this.#createdAt,
      updated_at: this.#updatedAt,
      status: progress.current,
      latest_revision_id: revisions[0]?.id ?? null,
      active_revision_id: active?.id ?? null,
      is_managed_deep_agent: false,
      deployment_tier: fields.deployment_tier ?? (given.deployment_type === 'prod' ? 'DEDICATED_S' : 'SERVERLESS_S'),
    };
  }
}

/** Returns the commit that a revision builds. */
export function newCommit(): string {
  return randomBytes(20).toString('hex');
}

export function now(): string {
  return new Date().toISOString();
}

const NO_FIELDS = { secret_references: null, image_version: null };

const NO_SOURCE_CONFIG: Required<SourceConfig> = {
  integration_id: null,
  repo_url: null,
  deployment_type: null,
  build_on_push: null,
  custom_url: null,
  resource_spec: null,
  listener_id: null,
  listener_config: null,
  install_command: null,
  build_command: null,
};

const NO_REVISION_CONFIG: Required<SourceRevisionConfig> = {
  repo_ref: null,
  graph_config_path: null,
  image_uri: null,
  source_tarball_path: null,
  repo_commit_sha: null,
};
