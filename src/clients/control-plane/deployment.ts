import { checkObject } from '../schema.ts';
import type { ResourceSpec } from './resource-spec.ts';

/** Source of a deployment's code. `external_container` exists on self-hosted platforms, the other sources in the cloud. */
export type DeploymentSource =
  | 'git_host'
  | 'external_container'
  | 'internal_container'
  | 'internal_source'
  | 'internal_template';

/** Sources that can replace the deployment's source for one revision. */
export type RevisionSource = 'git_host' | 'internal_container' | 'internal_source';

export type DeploymentStatus = 'AWAITING_DATABASE' | 'READY' | 'UNUSED' | 'AWAITING_DELETE' | 'UNKNOWN' | (string & {});

export type DeploymentTier =
  | 'SERVERLESS_S'
  | 'SERVERLESS_M'
  | 'SERVERLESS_L'
  | 'DEDICATED_S'
  | 'DEDICATED_M'
  | 'DEDICATED_L'
  | (string & {});

export type DeploymentType = 'dev_free' | 'dev' | 'prod' | 'dev_zero' | 'dev_free_zero' | (string & {});

/** A deployment as returned by the service. Unknown fields are kept. */
export interface Deployment {
  name: string;
  source: DeploymentSource | (string & {});
  source_config: SourceConfig;
  /** Configuration of the latest revision. */
  source_revision_config: SourceRevisionConfig;
  /** `util.inspect` masks the values. `JSON.stringify` and spreading keep the values. */
  secrets: Secret[];
  secret_references?: SecretReference[] | null;
  id: string;
  tenant_id: string;
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
  status: DeploymentStatus;
  latest_revision_id: string | null;
  /** Id of the deployed revision. */
  active_revision_id: string | null;
  image_version?: string | null;
  is_managed_deep_agent?: boolean;
  deployment_tier?: DeploymentTier | null;
  readonly [field: string]: unknown;
}

/** A deployment to create. */
export interface DeploymentCreate {
  /** Immutable. A tracing project of the same name is created. */
  name: string;
  /** Immutable. */
  source: DeploymentSource;
  source_config: SourceConfig;
  source_revision_config: SourceRevisionConfig;
  /** @default [] */
  secrets?: Secret[];
  /** Only for `external_container`. */
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

/** Changes to a deployment. Fields that are missing or null do not change. See `createsRevision`. */
export interface DeploymentPatch {
  /** Source of this revision, instead of the deployment's source. */
  revision_source?: RevisionSource | null;
  source_config?: SourceConfig | null;
  source_revision_config?: SourceRevisionConfig | null;
  /** Replaces all secrets. */
  secrets?: Secret[] | null;
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

export interface SourceConfig {
  /** Id from `integrations.list()`. Only for `git_host`; immutable. */
  integration_id?: string | null;
  /** Only for `git_host`; immutable. */
  repo_url?: string | null;
  /** Only for `git_host`; immutable. */
  deployment_type?: DeploymentType | null;
  /** Whether a push to `repo_ref`, which must not be a tag, is deployed. Only for `git_host`. */
  build_on_push?: boolean | null;
  /** URL of the deployment. Requests can set it only for `external_container`. */
  custom_url?: string | null;
  /** Only for `external_container`. */
  resource_spec?: ResourceSpec | null;
  /** Id from `listeners.list()`. Only for `external_container`; immutable. */
  listener_id?: string | null;
  /** Only for `external_container`. */
  listener_config?: ListenerConfig | null;
  /** For JavaScript. Runs in the root of the repository. By default, the package manager is detected. */
  install_command?: string | null;
  /** For JavaScript. Runs in the directory of the graph configuration. */
  build_command?: string | null;
}

export interface ListenerConfig {
  /** For listeners of the type `k8s`; immutable. */
  k8s_namespace?: string | null;
}

export interface SourceRevisionConfig {
  /** A branch, or a tag as `refs/tags/v1`. Only for `git_host`. */
  repo_ref?: string | null;
  /** Path of the graph configuration. Required for `git_host` and `internal_source`, null for other sources. */
  graph_config_path?: string | null;
  /** URI of an image. */
  image_uri?: string | null;
  /** Path from `uploadSource`. Only for `internal_source`. */
  source_tarball_path?: string | null;
  /** Read-only. */
  repo_commit_sha?: string | null;
}

/** An environment variable of the deployment. */
export interface Secret {
  name: string;
  value: string;
}

/** An environment variable whose value is a secret of the cluster. */
export interface SecretReference {
  /** Name of the variable. */
  name: string;
  secret_name: string;
  secret_key: string;
}

/** Fields that create a revision when an update sets them. */
const REVISION_FIELDS = ['repo_ref', 'graph_config_path', 'image_uri', 'source_tarball_path'] as const;

/** Returns whether an update creates a revision. It does if it sets a build input, the secrets or the resources. */
export function createsRevision(patch: DeploymentPatch): boolean {
  checkObject('createsRevision', 'patch', patch);
  const { secrets, source_config, source_revision_config } = patch;
  const inputs = REVISION_FIELDS.map((field) => source_revision_config?.[field]);
  return [secrets, source_config?.resource_spec, ...inputs].some((input) => input !== undefined && input !== null);
}
