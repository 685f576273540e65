import { INSPECT } from '../../base/text.ts';
import { type Check, checkedOptions, TRUE_OR_FALSE } from '../../config/checker.ts';
import type { CallOptions } from '../client-options.ts';
import { type Endpoint, endpoints, methodsOf, ONE_IF_TRUE, preparedCall, type Send, type Table } from '../endpoint.ts';
import { type A2A, a2aOf } from './a2a.ts';
import { type AgentServerOptions, AgentService, agentServerChecks } from './agent-service.ts';
import { type Assistants, assistantsOf } from './assistants.ts';
import { CRONS, type Crons } from './crons.ts';
import { type AgentRuns, RUNS, STATELESS_RUNS, type StatelessRuns, waitForRun } from './runs.ts';
import { type AgentStore, createStore } from './store.ts';
import { openRunStream } from './streams/run-stream.ts';
import { type Threads, threadsOf } from './threads.ts';

/** An agent server's version and enabled features. */
export interface AgentServerInfo {
  readonly version: string;
  /** Features enabled on the server, for example `assistants` and `crons`. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Calls that return an agent server's version, health and metrics. */
export interface AgentSystem {
  info(options?: CallOptions): Promise<AgentServerInfo>;
  /**
   * Resolves to true if the server is ready. Set `checkDb` to include a check of the server's database. Rejects with an
   * ApiError for an error status such as 503. If the server does not respond, rejects with a ConnectionError or
   * TimeoutError.
   */
  ok(options?: CallOptions & { checkDb?: boolean }): Promise<boolean>;
  /** Returns the server's metrics as Prometheus text or JSON. */
  metrics<Format extends 'prometheus' | 'json' = 'prometheus'>(
    options?: CallOptions & { format?: Format },
  ): Promise<Format extends 'json' ? Record<string, unknown> : string>;
}

const FORMAT: Check = ["'prometheus' or 'json'", (format) => format === 'prometheus' || format === 'json'];

export const SYSTEM: Table<AgentSystem> = endpoints('system', {
  info: ['GET /info'],
  ok: ['GET /ok', { query: { checkDb: [TRUE_OR_FALSE, ONE_IF_TRUE] } }],
  metrics: ['GET /metrics', { query: { format: [FORMAT] } }],
});

function systemOf(send: Send): AgentSystem {
  return {
    ...methodsOf(SYSTEM, send),
    ok: async (options) => (await send<Promise<{ ok?: unknown }>>(SYSTEM.ok, { options })).ok === true,
    metrics: async (options) => {
      const format = options?.format ?? 'prometheus';
      const endpoint: Endpoint = { ...SYSTEM.metrics, response: format === 'json' ? 'object' : 'text' };
      return send(endpoint, { options: { ...options, format } as CallOptions });
    },
  };
}

export const DOCS: Endpoint = { name: 'docs', method: 'GET', path: '/docs', response: 'text' };

/**
 * A client for an agent server. Methods are grouped by resource, for example `server.threads` and `server.runs`. Inside
 * a traced function, calls that create runs are recorded as child runs.
 */
export class AgentServer {
  readonly assistants: Assistants;
  readonly threads: Threads;
  /** Starts and manages runs on a thread. */
  readonly runs: AgentRuns;
  /** Starts and manages runs without a thread. */
  readonly statelessRuns: StatelessRuns;
  readonly crons: Crons;
  readonly store: AgentStore;
  readonly system: AgentSystem;
  /** Sends messages to assistants in the Agent2Agent protocol. */
  readonly a2a: A2A;
  readonly #service: AgentService;

  constructor(options: AgentServerOptions) {
    const what = 'the options of AgentServer';
    const service = new AgentService(checkedOptions<AgentServerOptions>(what, options, agentServerChecks));
    this.#service = service;
    const send: Send = (endpoint, args) => {
      const { response } = endpoint;
      if (response === 'pages') return service.list(endpoint, args) as never;
      if (response === 'events') return openRunStream(service, endpoint, args) as never;
      const waits = response === 'result' || response === 'reply';
      return (waits ? waitForRun(service, endpoint, args) : service.call(endpoint, args)) as never;
    };
    this.assistants = assistantsOf(send);
    this.threads = threadsOf(send);
    this.runs = methodsOf(RUNS, send);
    this.statelessRuns = methodsOf(STATELESS_RUNS, send);
    this.crons = methodsOf(CRONS, send);
    this.store = createStore(send);
    this.system = systemOf(send);
    this.a2a = a2aOf(send);
  }

  /** Base URL of the deployment. */
  get url(): string {
    return this.#service.api.urlOf('');
  }

  /** URL of the server's API reference, to open in a browser. */
  get docsUrl(): string {
    return this.#service.api.urlOf('/docs');
  }

  /** Returns the server's API reference as HTML. */
  async docs(options?: CallOptions): Promise<string> {
    const call = preparedCall(DOCS, { options });
    return (await this.#service.api.send<string>({ ...call, headers: { accept: 'text/html' } })).data;
  }

  /**
   * Returns a transport to the server's MCP endpoint, for the `connect` of an MCP client. `Transport` is the class
   * `StreamableHTTPClientTransport` of `@modelcontextprotocol/sdk` or `@modelcontextprotocol/client`. Requests contain
   * the API key and the headers of this client, and the trace of the current run. They are sent with the global `fetch`,
   * without this client's `dispatcher`, timeouts and retries. Redirects are not followed.
   */
  mcp<Transport>(Transport: new (url: URL, options: { fetch: typeof fetch }) => Transport): Transport {
    return new Transport(new URL(this.#service.api.urlOf('/mcp/')), { fetch: this.#service.fetch });
  }

  /** Aborts all pending calls and closes the connections. */
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
