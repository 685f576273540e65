import { inspect } from 'node:util';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { type Checks, checkedOptions, wholeFrom } from '../base/options.ts';
import { AgentRuns } from './agent-runs.ts';
import { AgentService, agentPath } from './agent-service.ts';
import { AgentSystem } from './agent-system.ts';
import type { Api } from './api.ts';
import { Assistants } from './assistants.ts';
import { TRUTH } from './body-rules.ts';
import { type CallOptions, type ClientOptions, clientChecks } from './client-options.ts';
import { Crons } from './crons.ts';
import { serviceApi } from './service-api.ts';
import { StatelessRuns } from './stateless-runs.ts';
import { Store } from './store.ts';
import { Threads } from './threads.ts';

export interface AgentServerOptions extends ClientOptions {
  /** Where the deployment is, with a path before those of the interface where it has one. */
  url: string | URL;
  /**
   * Milliseconds without a byte after which a stream, or an answer that is waited for, counts as broken. Where a server has sent
   * heartbeats in a stream it is at most 60 s.
   *
   * @default 300_000
   */
  idleTimeoutMs?: number | undefined;
  /**
   * Whether calls that make runs tell the server of the run that they are made in, so that what it does joins the trace.
   *
   * @default true
   */
  propagate?: boolean | undefined;
}

/**
 * A client of the agent server of a deployment. Each group of its interface is an object of its own: `server.threads.create()`.
 * Calls that make runs are runs themselves where they are made within one.
 */
export class AgentServer {
  readonly assistants: Assistants;
  readonly threads: Threads;
  /** Runs of threads. */
  readonly runs: AgentRuns;
  /** Runs without a thread. */
  readonly statelessRuns: StatelessRuns;
  readonly crons: Crons;
  readonly store: Store;
  readonly system: AgentSystem;
  readonly #api: Api;

  constructor(options: AgentServerOptions) {
    const checked = checkedOptions<AgentServerOptions>('the options of AgentServer', options, checks);
    const { url, idleTimeoutMs = 300_000, propagate = true, ...client } = checked;
    this.#api = serviceApi({ option: 'url', url, credentials: { 'x-api-key': client.apiKey } }, client);
    const { timeoutMs, headers = {} } = client;
    const service = new AgentService({ api: this.#api, idleTimeoutMs, timeoutMs, propagate, headers });
    this.assistants = new Assistants(service);
    this.threads = new Threads(service);
    this.runs = new AgentRuns(service);
    this.statelessRuns = new StatelessRuns(service);
    this.crons = new Crons(service);
    this.store = new Store(service);
    this.system = new AgentSystem(service);
  }

  /** The address of the deployment. */
  get url(): string {
    return this.#api.urlOf('');
  }

  /** The address of the server's own reference, for a browser. */
  get docsUrl(): string {
    return this.#api.urlOf('/docs');
  }

  /** The reference itself, as HTML. */
  async docs(options?: CallOptions): Promise<string> {
    return this.#api.text({ name: 'docs', method: 'GET', path: '/docs', headers: { accept: 'text/html' }, options });
  }

  /** The address of the MCP end point, for an SDK of that protocol. It asks for the same key. */
  get mcpUrl(): string {
    return this.#api.urlOf('/mcp/');
  }

  /** The address of an assistant's A2A end point, for an SDK of that protocol. It asks for the same key. */
  a2aUrl(assistantId: string): string {
    return this.#api.urlOf(agentPath('a2aUrl', 'a2a', { assistant_id: assistantId }));
  }

  /** Ends what is under way, and closes the connections. */
  async close(): Promise<void> {
    await this.#api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  [inspect.custom](): string {
    return `AgentServer { url: '${this.url}' }`;
  }
}

const checks: Checks<AgentServerOptions> = {
  ...clientChecks,
  url: ['an address', (value) => typeof value === 'string' || value instanceof URL],
  idleTimeoutMs: wholeFrom(1, DELAY_MAX_MS),
  propagate: TRUTH,
};
