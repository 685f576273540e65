import { checkObject } from '../schema.ts';
import type { ResourceSpec } from './resource-spec.ts';

/**
 * Where a deployment's code comes from. Self-hosted platforms support `external_container`. The cloud supports all
 * other sources.
 */
export type DeploymentSource =
  | 'git_host'
  | 'external_container'
  | 'internal_container'
  | 'internal_source'
  | 'internal_template';

/** Sources that a single revision can use instead of the deployment's source. */
export type RevisionSource = 'git_host' | 'internal_container' | 'internal_source';

/** Status of a deployment. The service may send other values. */
export type DeploymentStatus = 'AWAITING_DATABASE' | 'READY' | 'UNUSED' | 'AWAITING_DELETE' | 'UNKNOWN' | (string & {});

/** Size of a deployment. The service may send other values. */
export type DeploymentTier =
  | 'SERVERLESS_S'
  | 'SERVERLESS_M'
  | 'SERVERLESS_L'
  | 'DEDICATED_S'
  | 'DEDICATED_M'
  | 'DEDICATED_L'
  | (string & {});

/** Type of a deployment. The service may send other values. */
export type DeploymentType = 'dev_free' | 'dev' | 'prod' | 'dev_zero' | 'dev_free_zero' | (string & {});

/** A deployment, as returned by the service, including unknown fields. */
export interface Deployment {
  name: string;
  source: DeploymentSource | (string & {});
  source_config: SourceConfig;
  /** Build configuration of the latest revision. */
  source_revision_config: SourceRevisionConfig;
  /**
   * Environment variables of the deployment. `util.inspect` masks the values, but `JSON.stringify` and the spread
   * operator do not.
   */
  secrets: Secret[];
  secret_references?: SecretReference[] | null;
  id: string;
  tenant_id: string;
  /** ISO 8601 timestamp. */
  created_at: string;
  /** ISO 8601 timestamp. */
  updated_at: string;
  status: DeploymentStatus;
  latest_revision_id: string | null;
  /** Id of the currently deployed revision. */
  active_revision_id: string | null;
  image_version?: string | null;
  is_managed_deep_agent?: boolean;
  deployment_tier?: DeploymentTier | null;
  readonly [field: string]: unknown;
}

/** Request to create a deployment. */
export interface DeploymentCreate {
  /**
   * Name of the deployment, which cannot be changed later. The service creates a tracing project with the same name.
   */
  name: string;
  /** Where the deployment's code comes from. The source cannot be changed later. */
  source: DeploymentSource;
  source_config: SourceConfig;
  source_revision_config: SourceRevisionConfig;
  /** @default [] */
  secrets?: Secret[];
  /**
   * Environment variables whose values come from cluster secrets. Allowed only if the source is `external_container`.
   */
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

/**
 * Fields of a deployment to change. Omitted and null fields keep their values. Use `createsRevision` to check whether a
 * patch creates a revision.
 */
export interface DeploymentPatch {
  /** Source of the new revision, used instead of the deployment's source. */
  revision_source?: RevisionSource | null;
  source_config?: SourceConfig | null;
  source_revision_config?: SourceRevisionConfig | null;
  /** Environment variables, which replace all existing environment variables. */
  secrets?: Secret[] | null;
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

/** Source of a deployment, which all revisions share. */
export interface SourceConfig {
  /**
   * Id of an integration from `integrations.list()`, which cannot be changed later. Allowed only if the source is
   * `git_host`.
   */
  integration_id?: string | null;
  /** URL of the git repository, which cannot be changed later. Allowed only if the source is `git_host`. */
  repo_url?: string | null;
  /** Type of the deployment, which cannot be changed later. Allowed only if the source is `git_host`. */
  deployment_type?: DeploymentType | null;
  /** Whether to deploy each push to the branch `repo_ref`. Allowed only if the source is `git_host`. */
  build_on_push?: boolean | null;
  /** URL of the deployment. Requests can set the URL only if the source is `external_container`. */
  custom_url?: string | null;
  /** Resources of the deployment. Allowed only if the source is `external_container`. */
  resource_spec?: ResourceSpec | null;
  /**
   * Id of a listener from `listeners.list()`, which cannot be changed later. Allowed only if the source is
   * `external_container`.
   */
  listener_id?: string | null;
  /** Settings for the listener. Allowed only if the source is `external_container`. */
  listener_config?: ListenerConfig | null;
  /**
   * Install command for a JavaScript project, run in the root of the repository. By default, the service detects the
   * package manager.
   */
  install_command?: string | null;
  /** Build command for a JavaScript project, run in the directory with the graph configuration. */
  build_command?: string | null;
}

/** Settings that a deployment passes to its listener. */
export interface ListenerConfig {
  /** Kubernetes namespace to deploy to, which cannot be changed later. Allowed only for listeners of type `k8s`. */
  k8s_namespace?: string | null;
}

/** Source of a single revision. */
export interface SourceRevisionConfig {
  /** Branch such as `main`, or tag such as `refs/tags/v1`. Allowed only if the source is `git_host`. */
  repo_ref?: string | null;
  /**
   * Path of the graph configuration. The sources `git_host` and `internal_source` require this field. For other
   * sources, the field must be null.
   */
  graph_config_path?: string | null;
  /** URI of a container image. */
  image_uri?: string | null;
  /** Path returned by `uploadSource`. Allowed only if the source is `internal_source`. */
  source_tarball_path?: string | null;
  /** Commit of the revision, set by the service. */
  repo_commit_sha?: string | null;
}

/** An environment variable of a deployment. */
export interface Secret {
  name: string;
  value: string;
}

/** An environment variable whose value comes from a Kubernetes secret. */
export interface SecretReference {
  /** Name of the environment variable. */
  name: string;
  secret_name: string;
  secret_key: string;
}

/** Build inputs. Setting a build input in an update creates a revision. */
const REVISION_FIELDS = ['repo_ref', 'graph_config_path', 'image_uri', 'source_tarball_path'] as const;

/**
 * Returns whether a patch creates a revision. A patch creates a revision if it sets a build input, the secrets or the
 * resources.
 */
export function createsRevision(patch: DeploymentPatch): boolean {
  checkObject('createsRevision', 'patch', patch);
  const { secrets, source_config, source_revision_config } = patch;
  const inputs = REVISION_FIELDS.map((field) => source_revision_config?.[field]);
  return [secrets, source_config?.resource_spec, ...inputs].some((input) => input !== undefined && input !== null);
}
