import { version } from '../../base/version.ts';
import { type AgentSystem, DOCS, SYSTEM } from '../../clients/agent-server/agent-server.ts';
import { PAGE_BODY } from '../../clients/agent-server/agent-service.ts';
import { ASSISTANTS } from '../../clients/agent-server/assistants.ts';
import { CRONS } from '../../clients/agent-server/crons.ts';
import { RUNS, STATELESS_RUNS } from '../../clients/agent-server/runs.ts';
import { STORE } from '../../clients/agent-server/store.ts';
import { STATE_OF_CHECKPOINT, THREADS } from '../../clients/agent-server/threads.ts';
import type { Endpoint, Table } from '../../clients/endpoint.ts';
import { BODY, both } from '../../clients/schema.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route, RouteResponse } from '../../receiver/http/route.ts';
import type { Store } from '../../receiver/store/store.ts';
import {
  AgentData,
  type AgentHandler,
  type AgentHandlers,
  assistantHandlers,
  cronHandlers,
  ok,
  storeHandlers,
  threadHandlers,
} from './agent-handlers.ts';
import { runHandlers } from './agent-runs.ts';
import type { Assistant } from './assistant.ts';
import type { PlatformControlPlane } from './control-plane.ts';
import { type EndpointCall, endpointRoute } from './endpoint-routes.ts';
import type { Requests } from './requests.ts';

/** Path of the agent server of a deployment. */
const AGENT_SERVER = '/agents/:deployment';

export interface AgentServerSettings {
  readonly requests: Requests;
  readonly assistants: Readonly<Record<string, Assistant>>;
  readonly controlPlane: PlatformControlPlane;
  /** Store of the receiver, in which the runs of assistants are recorded. */
  readonly store: Store;
}

/**
 * Returns the routes of the agent servers: one of each deployment, and one named `local`. What an assistant does is a
 * function. Cron jobs and the store keep records, A2A and MCP are refused, and nodes, subgraphs, webhooks and
 * delays are ignored: `@langchain/langgraph-api` simulates them.
 */
export function agentServerRoutes(settings: AgentServerSettings): readonly Route[] {
  const { assistants, requests, store } = settings;
  const agentOf = agentsOf(settings);
  const route = (endpoint: Endpoint, handler: AgentHandler): Route => {
    const { body, response } = endpoint;
    const checked = body && response === 'pages' ? { ...endpoint, body: both(body, PAGE_BODY) } : endpoint;
    return endpointRoute(checked, (call) => handler(agentOf(call), call), { requests, prefix: AGENT_SERVER });
  };
  const group = <Group>(table: Table<Group>, handlers: AgentHandlers<Group>): Route[] =>
    Object.entries<Endpoint>(table).map(([name, endpoint]) => route(endpoint, handlers[name as keyof Group]));
  const [runs, statelessRuns] = runHandlers(assistants, store);
  const { history, state } = THREADS;
  const routes: Route[] = [
    ...group(ASSISTANTS, assistantHandlers),
    route(
      { ...ASSISTANTS.subgraphs, path: '/assistants/{assistant_id}/subgraphs/{namespace}' },
      assistantHandlers.subgraphs,
    ),
    ...group(THREADS, threadHandlers),
    route({ ...history, method: 'GET' }, threadHandlers.history),
    route({ ...state, path: `${state.path}/{checkpoint_id}` }, threadHandlers.state),
    route(STATE_OF_CHECKPOINT, threadHandlers.state),
    ...group(RUNS, runs),
    ...group(STATELESS_RUNS, statelessRuns),
    ...group(CRONS, cronHandlers),
    // In a query, the names of a namespace are one text, which the client's schema rejects.
    ...group({ ...STORE, get: { ...STORE.get, body: BODY } }, storeHandlers),
    ...group(SYSTEM, systemHandlers),
    ...OTHERS.map((endpoint) => route(endpoint, notSimulated)),
    route(DOCS, () => docsOf(routes)),
  ];
  return routes;
}

/** Returns a function that finds the data of a request. Each workspace has its own for each deployment. */
function agentsOf({ assistants, controlPlane }: AgentServerSettings): (call: EndpointCall) => AgentData {
  const agents = new Map<string, AgentData>();
  return ({ tenant, ids: { deployment = '' } }) => {
    const project = controlPlane.deployedName(tenant, deployment);
    if (project === undefined && deployment !== 'local')
      throw new HttpError(404, `No deployment ${deployment} with an active revision exists`);
    const key = JSON.stringify([tenant, deployment]);
    const agent = agents.get(key) ?? new AgentData(Object.keys(assistants), project);
    agents.set(key, agent);
    return agent;
  };
}

const systemHandlers: AgentHandlers<AgentSystem> = {
  info: () => ok({ version, flags: { assistants: true, crons: true }, metadata: {} }),
  ok: () => ok({ ok: true }),
  metrics: ({ runs }, { search }) => {
    const { length } = runs.find({});
    if (search.get('format') === 'json') return ok({ agent_runs: length });
    return { status: 200, headers: { 'content-type': 'text/plain' }, content: `agent_runs ${length}\n` };
  },
};

/** Protocols that the agent server does not have. */
const OTHERS: readonly Endpoint[] = [
  { name: 'a2a', method: 'POST', path: '/a2a/{assistant_id}', body: BODY },
  { name: 'card', method: 'GET', path: '/.well-known/agent-card.json', body: BODY },
  { name: 'mcp', method: 'POST', path: '/mcp/', body: BODY },
];

function notSimulated(): RouteResponse {
  throw new HttpError(501, 'The platform does not simulate A2A and MCP: use `@langchain/langgraph-api`');
}

function docsOf(routes: readonly Route[]): RouteResponse {
  const items = routes.map(({ method, path }) => `<li><code>${method} ${path.slice(AGENT_SERVER.length)}</code>`);
  const content = `<!doctype html><meta charset="utf-8"><title>Agent server</title><ul>\n${items.join('\n')}\n</ul>\n`;
  return { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, content };
}
