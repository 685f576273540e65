import { type Checks, checkedOptions } from '../base/options.ts';
import { type ClientOptions, clientChecks } from './client-options.ts';
import { ControlPlaneApi } from './control-plane-api.ts';
import { Deployments } from './deployments.ts';
import { Integrations } from './integrations.ts';
import { Listeners } from './listeners.ts';
import { Revisions } from './revisions.ts';
import { serviceApi } from './service-api.ts';
import { isSpelling, type Spelling, SpellingTable } from './spelling.ts';

/** Where a control plane is, and who asks. */
export interface ControlPlaneOptions extends ClientOptions {
  /** Its address; `/v2/deployments` and the other paths are appended to the path that it has. */
  baseUrl: string | URL;
  /** Sent as `X-Tenant-Id`: the workspace, where the key is for several. */
  tenantId?: string | undefined;
  /** Sent as `Authorization: Bearer …`. */
  bearerToken?: string | undefined;
  /** The service's own words, where they are not those of the interface. */
  spelling?: Spelling | undefined;
}

/**
 * The service that deploys agent servers. What breaks a rule of its interface rejects with an InvalidRequestError that names each mistake,
 * before anything is sent.
 */
export class ControlPlane {
  readonly deployments: Deployments;
  readonly revisions: Revisions;
  readonly listeners: Listeners;
  readonly integrations: Integrations;
  readonly #api: ControlPlaneApi;

  constructor(options: ControlPlaneOptions) {
    const checked = checkedOptions('the options of ControlPlane', options, controlPlaneChecks);
    const { baseUrl, tenantId, bearerToken, spelling, ...client } = checked;
    const service = serviceApi(
      {
        option: 'baseUrl',
        url: baseUrl,
        credentials: {
          'x-api-key': checked.apiKey?.trim(),
          'x-tenant-id': tenantId?.trim(),
          authorization: bearerToken && `Bearer ${bearerToken.trim()}`,
        },
      },
      client,
    );
    const api = new ControlPlaneApi(service, new SpellingTable(spelling ?? {}));
    this.#api = api;
    this.deployments = new Deployments(api, client);
    this.revisions = new Revisions(api);
    this.listeners = new Listeners(api);
    this.integrations = new Integrations(api);
  }

  /** Ends what is under way, with a ConnectionError, and closes the connections. */
  async close(): Promise<void> {
    await this.#api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const controlPlaneChecks: Checks<ControlPlaneOptions> = {
  ...clientChecks,
  baseUrl: ['an address', (value) => typeof value === 'string' || value instanceof URL],
  tenantId: clientChecks.apiKey,
  bearerToken: clientChecks.apiKey,
  spelling: [
    'an object of words for git_host, external_container, internal_container and graph_config_path, each another one',
    isSpelling,
  ],
};
