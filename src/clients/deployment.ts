import type { ResourceSpec } from './resource-spec.ts';

/** Where the code of a deployment comes from. `external_container` is for self-hosted platforms, the others for the cloud. */
export type DeploymentSource =
  | 'git_host'
  | 'external_container'
  | 'internal_container'
  | 'internal_source'
  | 'internal_template';

/** Sources that a revision can be given in the place of its deployment's. */
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

/** A deployment as the service gives it. Fields that are not named here are kept. */
export interface Deployment {
  name: string;
  source: DeploymentSource | (string & {});
  source_config: SourceConfig;
  /** Of the latest revision. */
  source_revision_config: SourceRevisionConfig;
  /** `util.inspect` does not show their values; `JSON.stringify` and spreading keep them. */
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
  /** The revision that is deployed. */
  active_revision_id: string | null;
  image_version?: string | null;
  is_managed_deep_agent?: boolean;
  deployment_tier?: DeploymentTier | null;
  readonly [field: string]: unknown;
}

/** What a deployment is made of. */
export interface DeploymentCreate {
  /** Also that of a tracing project, which is made with it. It cannot be changed. */
  name: string;
  /** It cannot be changed. */
  source: DeploymentSource;
  source_config: SourceConfig;
  source_revision_config: SourceRevisionConfig;
  /** By default none. */
  secrets?: Secret[];
  /** For `external_container` alone. */
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

/** What of a deployment is to change. Fields that are left out, or null, stay. `createsRevision` tells whether it is deployed anew. */
export interface DeploymentPatch {
  /** Where this revision comes from, in the place of the deployment's source. */
  revision_source?: RevisionSource | null;
  source_config?: SourceConfig | null;
  source_revision_config?: SourceRevisionConfig | null;
  /** All of them: those that are left out are taken away. */
  secrets?: Secret[] | null;
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

export interface SourceConfig {
  /** From `integrations.list()`. For `git_host` alone; not to be changed. */
  integration_id?: string | null;
  /** For `git_host` alone; not to be changed. */
  repo_url?: string | null;
  /** For `git_host` alone; not to be changed. */
  deployment_type?: DeploymentType | null;
  /** Whether a push to `repo_ref` is deployed, which cannot be a tag then. For `git_host` alone. */
  build_on_push?: boolean | null;
  /** Where the deployment is reached. It can be set for `external_container` alone. */
  custom_url?: string | null;
  /** For `external_container` alone. */
  resource_spec?: ResourceSpec | null;
  /** From `listeners.list()`. For `external_container` alone; not to be changed. */
  listener_id?: string | null;
  /** For `external_container` alone. */
  listener_config?: ListenerConfig | null;
  /** For JavaScript: run from the root of the repository. By default what its package-manager files tell. */
  install_command?: string | null;
  /** For JavaScript: run from the directory of the graph configuration. */
  build_command?: string | null;
}

export interface ListenerConfig {
  /** For listeners of the type `k8s`; not to be changed. */
  k8s_namespace?: string | null;
}

export interface SourceRevisionConfig {
  /** A branch, or a tag as `refs/tags/v1`. For `git_host` alone. */
  repo_ref?: string | null;
  /** Path of the graph configuration. Required for `git_host` and `internal_source`, null for others. */
  graph_config_path?: string | null;
  /** For images. */
  image_uri?: string | null;
  /** From `uploadSource`. For `internal_source` alone. */
  source_tarball_path?: string | null;
  /** Read-only. */
  repo_commit_sha?: string | null;
}

/** An environment variable of the deployment. */
export interface Secret {
  name: string;
  value: string;
}

/** An environment variable that is filled from a secret of the cluster. */
export interface SecretReference {
  /** Of the variable. */
  name: string;
  secret_name: string;
  secret_key: string;
}
