import type { CallOptions } from '../client-options.ts';
import { endpoints } from '../endpoint.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';

/** An installation of the platform at the host of git repositories. */
export interface Integration {
  /** Value of `source_config.integration_id`. */
  id: string;
  installation_id?: number;
  name: string;
  readonly [field: string]: unknown;
}

/** A repository that an integration can read. */
export interface Repository {
  host_integration_id?: string;
  id: number;
  name: string;
  owner: string;
  /** Value of `source_config.repo_url`. */
  url: string;
  default_branch: string;
  readonly [field: string]: unknown;
}

const CALLS = endpoints('integrations', {
  list: ['GET /v1/integrations/{git_host}/install', { response: 'list' }],
  repositories: ['GET /v1/integrations/{git_host}/{integration_id:uuid}/repos', { response: 'list' }],
});

/** `/v1/integrations/<git_host>`: the repositories of `git_host` deployments. */
export class Integrations {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  /** Returns the installed integrations. */
  async list(options?: CallOptions): Promise<Integration[]> {
    return this.#api.call(CALLS.list, { ids: [this.#api.spelling.wireName('git_host')], options });
  }

  /** Returns the repositories that an integration can read. */
  async repositories(integrationId: string, options?: CallOptions): Promise<Repository[]> {
    const ids = [this.#api.spelling.wireName('git_host'), integrationId];
    return this.#api.call(CALLS.repositories, { ids, options });
  }
}
