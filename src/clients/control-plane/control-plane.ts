import { type Checks, checkedOptions } from '../../config/checker.ts';
import { type Api, serviceApi } from '../api.ts';
import { ADDRESS, type ClientOptions, clientChecks } from '../client-options.ts';
import { methodsOf } from '../endpoint.ts';
import { ControlPlaneApi } from './control-plane-api.ts';
import { type Deployments, deploymentsOf } from './deployments.ts';
import { type Integrations, integrationsOf } from './integrations.ts';
import { LISTENERS, type Listeners } from './listeners.ts';
import { REVISIONS, type Revisions } from './revision.ts';
import { isSpelling, type Spelling, SpellingTable } from './spelling.ts';

/** Options of `ControlPlane`. */
export interface ControlPlaneOptions extends ClientOptions {
  /** Base URL of the service, including any path. The client appends paths such as `/v2/deployments`. */
  baseUrl: string | URL;
  /** Id of the workspace, sent as `X-Tenant-Id`. Required if the API key belongs to several workspaces. */
  tenantId?: string | undefined;
  /** Token to send as `Authorization: Bearer …`. */
  bearerToken?: string | undefined;
  /** Names that the service uses instead of the default names. */
  spelling?: Spelling | undefined;
}

/**
 * A client for the control plane, the service that deploys agent servers. The client validates each request before
 * sending it. An invalid request rejects with an InvalidRequestError that lists every invalid field.
 */
export class ControlPlane {
  readonly deployments: Deployments;
  readonly revisions: Revisions;
  readonly listeners: Listeners;
  readonly integrations: Integrations;
  readonly #api: Api;

  constructor(options: ControlPlaneOptions) {
    const checked = checkedOptions('the options of ControlPlane', options, controlPlaneChecks);
    const { baseUrl, tenantId, bearerToken, spelling = {}, ...client } = checked;
    const credentials = {
      'x-api-key': client.apiKey,
      'x-tenant-id': tenantId,
      authorization: bearerToken && `Bearer ${bearerToken.trim()}`,
    };
    this.#api = serviceApi({ option: 'baseUrl', url: baseUrl, credentials }, client);
    const api = new ControlPlaneApi(this.#api, new SpellingTable(spelling));
    this.deployments = deploymentsOf(api, client);
    this.revisions = methodsOf(REVISIONS, api.call);
    this.listeners = methodsOf(LISTENERS, api.call);
    this.integrations = integrationsOf(api);
  }

  /** Rejects all pending calls with a ConnectionError and closes the connections. */
  async close(): Promise<void> {
    await this.#api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const controlPlaneChecks: Checks<ControlPlaneOptions> = {
  ...clientChecks,
  baseUrl: ADDRESS,
  tenantId: clientChecks.apiKey,
  bearerToken: clientChecks.apiKey,
  spelling: [
    'an object of different names for git_host, external_container, internal_container and graph_config_path',
    isSpelling,
  ],
};
