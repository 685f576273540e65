import { pathOf } from './call.ts';
import type { CallOptions } from './client-options.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import type { Integration, Repository } from './integration.ts';
import { checkRequest } from './request-check.ts';

/** `/v1/integrations/<git_host>`: where the code of `git_host` deployments is. */
export class Integrations {
  readonly #api: ControlPlaneApi;

  /** @internal */
  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  /** Those that are installed. */
  async list(options?: CallOptions): Promise<Integration[]> {
    const path = pathOf('v1', 'integrations', this.#api.spelling.word('git_host'), 'install');
    return this.#api.call({ name: 'integrations.list', method: 'GET', path, answer: 'list', options });
  }

  /** The repositories that one may read. */
  async repositories(integrationId: string, options?: CallOptions): Promise<Repository[]> {
    const name = 'integrations.repositories';
    checkRequest(name, { path: { integration_id: integrationId } });
    const path = pathOf('v1', 'integrations', this.#api.spelling.word('git_host'), integrationId, 'repos');
    const told = { integration_id: integrationId };
    return this.#api.call({ name, method: 'GET', path, told, answer: 'list', options });
  }
}
