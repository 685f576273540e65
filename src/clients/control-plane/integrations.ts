import type { CallOptions } from '../client-options.ts';
import { endpoints, methodsOf, type Table } from '../endpoint.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import type { SpellingTable } from './spelling.ts';

/** An installation of the platform's app on a git host such as GitHub. */
export interface Integration {
  /** Id to set as `source_config.integration_id`. */
  id: string;
  installation_id?: number;
  name: string;
  readonly [field: string]: unknown;
}

/** A git repository that an integration can read. */
export interface Repository {
  host_integration_id?: string;
  id: number;
  name: string;
  owner: string;
  /** URL to set as `source_config.repo_url`. */
  url: string;
  default_branch: string;
  readonly [field: string]: unknown;
}

/**
 * Calls for the endpoints under `/v1/integrations/<git_host>`. The endpoints list repositories for `git_host`
 * deployments.
 */
export interface Integrations {
  /** Returns the installed integrations. */
  list(options?: CallOptions): Promise<Integration[]>;
  /** Returns the repositories that an integration can read. */
  repositories(integrationId: string, options?: CallOptions): Promise<Repository[]>;
}

export function integrationsOf({ call, spelling }: ControlPlaneApi): Integrations {
  return methodsOf(integrationEndpoints(spelling), call);
}

export function integrationEndpoints(spelling: SpellingTable): Table<Integrations> {
  const path = `/v1/integrations/${spelling.wireName('git_host')}` as const;
  return endpoints<Integrations>('integrations', {
    list: [`GET ${path}/install`, { response: 'list' }],
    repositories: [`GET ${path}/{integration_id:uuid}/repos`, { response: 'list' }],
  });
}
