/** An installation of the platform at the host of git repositories. */
export interface Integration {
  /** Goes into `source_config.integration_id`. */
  id: string;
  installation_id?: number;
  name: string;
  readonly [field: string]: unknown;
}

/** A repository that an integration may read. */
export interface Repository {
  host_integration_id?: string;
  id: number;
  name: string;
  owner: string;
  /** Goes into `source_config.repo_url`. */
  url: string;
  default_branch: string;
  readonly [field: string]: unknown;
}
