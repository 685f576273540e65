import { checkedOptions } from '../../base/options.ts';
import { INSPECT } from '../../base/text.ts';
import type { CallOptions } from '../client-options.ts';
import { callOf, type Endpoint } from '../endpoint.ts';
import { type AgentServerOptions, AgentService, agentServerChecks } from './agent-service.ts';
import { Assistants } from './assistants.ts';
import { Crons } from './crons.ts';
import { AgentRuns } from './runs.ts';
import { StatelessRuns } from './stateless-runs.ts';
import { Store } from './store.ts';
import { AgentSystem } from './system.ts';
import { Threads } from './threads.ts';

const DOCS: Endpoint = { name: 'docs', method: 'GET', path: '/docs', response: 'text' };
const A2A: Endpoint = { name: 'a2aUrl', method: 'POST', path: '/a2a/{assistant_id}' };

/**
 * A client of the agent server of a deployment. Each group of its interface is an object: `server.threads.create()`.
 * Within a run, calls that create runs are recorded.
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
  readonly #service: AgentService;

  constructor(options: AgentServerOptions) {
    const what = 'the options of AgentServer';
    const service = new AgentService(checkedOptions<AgentServerOptions>(what, options, agentServerChecks));
    this.#service = service;
    this.assistants = new Assistants(service);
    this.threads = new Threads(service);
    this.runs = new AgentRuns(service);
    this.statelessRuns = new StatelessRuns(service);
    this.crons = new Crons(service);
    this.store = new Store(service);
    this.system = new AgentSystem(service);
  }

  /** Address of the deployment. */
  get url(): string {
    return this.#service.api.urlOf('');
  }

  /** Address of the server's API reference, for a browser. */
  get docsUrl(): string {
    return this.#service.api.urlOf('/docs');
  }

  /** Returns the server's API reference as HTML. */
  async docs(options?: CallOptions): Promise<string> {
    const call = callOf(DOCS, { options });
    return (await this.#service.api.send<string>({ ...call, headers: { accept: 'text/html' } })).data;
  }

  /** Address of the MCP endpoint, for an SDK of that protocol. It requires the same key. */
  get mcpUrl(): string {
    return this.#service.api.urlOf('/mcp/');
  }

  /** Returns the address of an assistant's A2A endpoint, for an SDK of that protocol. It requires the same key. */
  a2aUrl(assistantId: string): string {
    return this.#service.api.urlOf(callOf(A2A, { ids: [assistantId] }).path);
  }

  /** Ends all calls and closes the connections. */
  async close(): Promise<void> {
    await this.#service.api.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  [INSPECT](): string {
    return `AgentServer { url: '${this.url}' }`;
  }
}
