import { checkObject } from '../schema.ts';
import type { ResourceSpec } from './resource-spec.ts';

/**
 * Where a deployment's code comes from. Self-hosted platforms support `external_container`, and the cloud supports all
 * other sources.
 */
export type DeploymentSource =
  | 'git_host'
  | 'external_container'
  | 'internal_container'
  | 'internal_source'
  | 'internal_template';

/** Sources that one revision can use instead of the deployment's source. */
export type RevisionSource = 'git_host' | 'internal_container' | 'internal_source';

/** The status of a deployment. The service may send other values. */
export type DeploymentStatus = 'AWAITING_DATABASE' | 'READY' | 'UNUSED' | 'AWAITING_DELETE' | 'UNKNOWN' | (string & {});

/** The size of a deployment. The service may send other values. */
export type DeploymentTier =
  | 'SERVERLESS_S'
  | 'SERVERLESS_M'
  | 'SERVERLESS_L'
  | 'DEDICATED_S'
  | 'DEDICATED_M'
  | 'DEDICATED_L'
  | (string & {});

/** The type of a deployment. The service may send other values. */
export type DeploymentType = 'dev_free' | 'dev' | 'prod' | 'dev_zero' | 'dev_free_zero' | (string & {});

/** A deployment as returned by the service, including fields that this version does not know. */
export interface Deployment {
  name: string;
  source: DeploymentSource | (string & {});
  source_config: SourceConfig;
  /** Build configuration of the latest revision. */
  source_revision_config: SourceRevisionConfig;
  /**
   * The deployment's environment variables. `util.inspect` masks their values, but `JSON.stringify` and the spread
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
  /** The deployment's name, which cannot be changed later. The service creates a tracing project with the same name. */
  name: string;
  /** Where the code comes from. Cannot be changed later. */
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

/**
 * Changes to a deployment. Omitted and null fields stay unchanged. `createsRevision` tells whether a patch creates a
 * revision.
 */
export interface DeploymentPatch {
  /** Source that the new revision uses instead of the deployment's source. */
  revision_source?: RevisionSource | null;
  source_config?: SourceConfig | null;
  source_revision_config?: SourceRevisionConfig | null;
  /** Environment variables, which replace all existing ones. */
  secrets?: Secret[] | null;
  secret_references?: SecretReference[] | null;
  image_version?: string | null;
  deployment_tier?: DeploymentTier | null;
}

/** The source of a deployment, which applies to all revisions. */
export interface SourceConfig {
  /** Id from `integrations.list()`. Only for `git_host`; immutable. */
  integration_id?: string | null;
  /** Only for `git_host`; immutable. */
  repo_url?: string | null;
  /** Only for `git_host`; immutable. */
  deployment_type?: DeploymentType | null;
  /** Whether pushes to `repo_ref`, which must then be a branch, are deployed. Only for `git_host`. */
  build_on_push?: boolean | null;
  /** The deployment's URL. Requests can set the URL only for `external_container`. */
  custom_url?: string | null;
  /** Only for `external_container`. */
  resource_spec?: ResourceSpec | null;
  /** Id from `listeners.list()`. Only for `external_container`; immutable. */
  listener_id?: string | null;
  /** Only for `external_container`. */
  listener_config?: ListenerConfig | null;
  /**
   * Install command for a JavaScript project, run in the repository's root. By default, the service detects the package
   * manager.
   */
  install_command?: string | null;
  /** Build command for a JavaScript project, run in the directory of the graph configuration. */
  build_command?: string | null;
}

/** The part of a deployment's configuration that its listener uses. */
export interface ListenerConfig {
  /** Namespace to deploy to. Only for listeners with the type `k8s`. Cannot be changed later. */
  k8s_namespace?: string | null;
}

/** The source of one revision. */
export interface SourceRevisionConfig {
  /** A branch such as `main`, or a tag such as `refs/tags/v1`. Only for `git_host`. */
  repo_ref?: string | null;
  /** Path of the graph configuration. Required for `git_host` and `internal_source`, and null for other sources. */
  graph_config_path?: string | null;
  /** URI of a container image. */
  image_uri?: string | null;
  /** Path returned by `uploadSource`. Only for `internal_source`. */
  source_tarball_path?: string | null;
  /** The revision's commit. Only the service sets this field. */
  repo_commit_sha?: string | null;
}

/** One of the deployment's environment variables. */
export interface Secret {
  name: string;
  value: string;
}

/** An environment variable whose value comes from a secret in the cluster. */
export interface SecretReference {
  /** Name of the environment variable. */
  name: string;
  secret_name: string;
  secret_key: string;
}

/** Build inputs. An update that sets one of these fields creates a revision. */
const REVISION_FIELDS = ['repo_ref', 'graph_config_path', 'image_uri', 'source_tarball_path'] as const;

/** Whether an update creates a revision, because it sets a build input, the secrets or the resources. */
export function createsRevision(patch: DeploymentPatch): boolean {
  checkObject('createsRevision', 'patch', patch);
  const { secrets, source_config, source_revision_config } = patch;
  const inputs = REVISION_FIELDS.map((field) => source_revision_config?.[field]);
  return [secrets, source_config?.resource_spec, ...inputs].some((input) => input !== undefined && input !== null);
}
