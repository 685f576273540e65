import { randomUUID } from 'node:crypto';
import { clock } from '../../base/clock.ts';
import { version } from '../../base/version.ts';
import { DOCS, SYSTEM } from '../../clients/agent-server/agent-server.ts';
import { PAGE_BODY } from '../../clients/agent-server/agent-service.ts';
import { ASSISTANTS } from '../../clients/agent-server/assistants.ts';
import { CRONS } from '../../clients/agent-server/crons.ts';
import { RUNS, STATELESS_RUNS } from '../../clients/agent-server/runs.ts';
import { STORE } from '../../clients/agent-server/store.ts';
import { THREADS } from '../../clients/agent-server/threads.ts';
import type { Endpoint, Table } from '../../clients/endpoint.ts';
import { ANY, BODY, both } from '../../clients/schema.ts';
import { exactJson, type Fields, fieldsOf, listOf } from '../../payload/fields.ts';
import { mintTokens } from '../../receiver/api/feedback-routes.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route, RouteResponse } from '../../receiver/http/route.ts';
import { newRunId, runIdFrom } from '../../run/ids.ts';
import { AgentThread, contains, type Entry, entryPage, fieldsOfEntries, newEntry, Records } from './agent-data.ts';
import { AgentRun, type AgentRunSettings } from './agent-run.ts';
import type { AssistantFunction } from './assistant.ts';
import type { PlatformControlPlane } from './control-plane.ts';
import { type EndpointCall, endpointRoute, NO_CONTENT, okResponse } from './endpoint-routes.ts';
import { A2A, MCP, parseError, rpcResponse } from './json-rpc.ts';
import type { Requests } from './requests.ts';

const AGENT_SERVER = '/agents/:deployment';

type Graphs = Readonly<Record<string, AssistantFunction>>;

/** What the agent server of a deployment has stored for a workspace. */
class AgentData {
  readonly graphs: Graphs;
  /** Project of the runs: the name of the deployment. */
  readonly project: string | undefined;
  readonly assistants = new Records('assistant');
  readonly threads = new Records<AgentThread>('thread');
  readonly runs = new Records<AgentRun>('run');
  readonly crons = new Records('cron');
  /** Items of the store, by namespace and key. */
  readonly items = new Map<string, Entry>();

  constructor(graphs: Graphs, project: string | undefined) {
    this.graphs = graphs;
    this.project = project;
    for (const name of Object.keys(graphs)) addAssistant(this, { assistant_id: runIdFrom(name), graph_id: name, name });
  }
}

type Handler = (agent: AgentData, request: EndpointCall) => RouteResponse | Promise<RouteResponse>;

/**
 * Returns the routes of the agent servers: one of each deployment, and one named `local`. What an assistant does is a
 * function. Calls of the client without a handler have status 501.
 */
export function agentServerRoutes(
  assistants: Graphs,
  controlPlane: PlatformControlPlane,
  requests: Requests,
  closing: AbortSignal,
): readonly Route[] {
  const agents = new Map<string, AgentData>();
  closing.addEventListener('abort', () => {
    for (const { runs } of agents.values()) for (const run of runs.find({})) void run.cancel();
  });
  /** Each workspace has its own data for each deployment. */
  const agentOf = ({ tenant, ids: { deployment = '' } }: EndpointCall): AgentData => {
    const project = controlPlane.deployedName(tenant, deployment);
    if (project === undefined && deployment !== 'local')
      throw new HttpError(404, `No deployment ${deployment} with an active revision exists`);
    const key = JSON.stringify([tenant, deployment]);
    const agent = agents.get(key) ?? new AgentData(assistants, project);
    agents.set(key, agent);
    return agent;
  };
  const route = (endpoint: Endpoint, handler: Handler): Route => {
    const { body, response } = endpoint;
    const checked = body && response === 'pages' ? { ...endpoint, body: both(body, PAGE_BODY) } : endpoint;
    return endpointRoute(checked, (call) => handler(agentOf(call), call), { requests, pathPrefix: AGENT_SERVER });
  };
  const group = (table: Table<object>, handlers: Readonly<Record<string, Handler>>): Route[] =>
    Object.entries<Endpoint>(table).map(([name, endpoint]) =>
      route(endpoint, handlers[name] ?? (() => notSimulated(endpoint.name))),
    );
  const rpc = (path: string, answer: Handler): Route => {
    const { handle, ...rest } = route({ name: 'rpc', method: 'POST', path, body: ANY }, answer);
    return { ...rest, handle: async (call) => Promise.resolve(handle(call)).catch(parseError) };
  };
  const routes: Route[] = [
    ...group(ASSISTANTS, {
      ...recordHandlers('assistants', 'assistant_id'),
      create: (agent, { body }) => okResponse(addAssistant(agent, fieldsOf(body))),
    }),
    ...group(THREADS, threadHandlers),
    route({ ...THREADS.history, method: 'GET' }, threadHandlers.history),
    ...group(RUNS, runHandlers),
    ...group(STATELESS_RUNS, statelessRunHandlers),
    ...group(CRONS, { ...recordHandlers('crons', 'cron_id'), create: createCron, createForThread: createCron }),
    // In a query, the names of a namespace are one text, which the client's schema rejects.
    ...group({ ...STORE, get: { ...STORE.get, body: BODY } }, storeHandlers),
    ...group(SYSTEM, {
      info: () => okResponse({ version, flags: { assistants: true, crons: true }, metadata: {} }),
      ok: () => okResponse({ ok: true }),
    }),
    rpc('/mcp/', (_, { body }) => rpcResponse(MCP, body)),
    rpc('/a2a/{assistant_id}', ({ assistants: all }, { ids, body }) => {
      all.get(ids.assistant_id);
      return rpcResponse(A2A, body);
    }),
    route(DOCS, () => {
      const items = routes.map(({ method, path }) => `<li><code>${method} ${path.slice(AGENT_SERVER.length)}</code>`);
      const content = `<!doctype html><meta charset="utf-8"><title>Agent server</title><ul>\n${items.join('\n')}\n</ul>\n`;
      return { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, content };
    }),
  ];
  return routes;
}

function notSimulated(what: string): never {
  throw new HttpError(501, `The platform does not simulate ${what}`);
}

/** Returns the handlers that several kinds of records have. */
function recordHandlers(group: 'assistants' | 'threads' | 'crons', idName: string) {
  return {
    get: (agent, { ids }) => okResponse(agent[group].get(ids[idName]).record),
    update: (agent, { ids, body }) => okResponse(agent[group].update(ids[idName], fieldsOf(body)).record),
    delete: (agent, { ids }) => {
      agent[group].delete(ids[idName]);
      return NO_CONTENT;
    },
    search: (agent, { body }) => entryPage(agent[group].find(body), body),
    count: (agent, { body }) => okResponse(agent[group].find(body).length),
  } satisfies Record<string, Handler>;
}

function addAssistant({ graphs, assistants }: AgentData, { if_exists, ...fields }: Fields): Fields {
  const graph = String(fields.graph_id);
  if (!Object.hasOwn(graphs, graph)) throw new HttpError(404, `The graph ${graph} does not exist`);
  const defaults = { assistant_id: randomUUID(), version: 1, config: {}, description: null };
  return assistants.add({ record: newEntry({ ...defaults, ...fields }) }, if_exists).record;
}

const createCron: Handler = ({ assistants, crons }, { ids, body }) => {
  const { assistant_id } = assistants.get(fieldsOf(body).assistant_id).record;
  const defaults = { cron_id: randomUUID(), end_time: null, enabled: true, payload: body };
  const record = newEntry({ ...defaults, ...fieldsOf(body), assistant_id, thread_id: ids.thread_id ?? null });
  return okResponse(crons.add({ record }).record);
};

const threadHandlers = {
  ...recordHandlers('threads', 'thread_id'),
  create: ({ threads }, { body }) => {
    const { if_exists, ...fields } = fieldsOf(body);
    return okResponse(threads.add(new AgentThread(fields), if_exists).record);
  },
  delete: ({ threads }, { ids }) => {
    for (const run of threads.delete(ids.thread_id).active) void run.cancel();
    return NO_CONTENT;
  },
  state: ({ threads }, { ids }) => okResponse(threads.get(ids.thread_id).states.at(-1) ?? NO_STATE),
  updateState: ({ threads }, { ids, body }) => {
    const thread = threads.get(ids.thread_id);
    thread.change(fieldsOf(body).values, 'update');
    return okResponse({ checkpoint: thread.states.at(-1)?.checkpoint });
  },
  history: ({ threads }, { ids, body }) => {
    const { limit = 10, before, metadata } = body as { limit?: number; before?: unknown; metadata?: unknown };
    const id = fieldsOf(before).checkpoint_id ?? before;
    const newest = threads.get(ids.thread_id).states.toReversed();
    const after = newest.findIndex(({ checkpoint }) => checkpoint?.checkpoint_id === id) + 1;
    const found = newest.slice(after).filter((state) => contains(state.metadata, metadata));
    return okResponse(found.slice(0, limit));
  },
} satisfies Record<string, Handler>;

const NO_CHECKPOINT = { checkpoint: null, parent_checkpoint: null, created_at: null };
const NO_STATE = { ...NO_CHECKPOINT, values: {}, next: [], tasks: [], metadata: {} };

function itemKey(namespace: unknown, key: unknown): string {
  return exactJson([namespace, key]);
}

const storeHandlers = {
  put: ({ items }, { body }) => {
    const { namespace, key, value } = fieldsOf(body);
    items.set(itemKey(namespace, key), { record: newEntry({ namespace, key, value }) });
    return NO_CONTENT;
  },
  get: ({ items }, { search }) =>
    okResponse(items.get(itemKey(search.get('namespace')?.split('.'), search.get('key')))?.record ?? null),
  delete: ({ items }, { body }) => {
    items.delete(itemKey(fieldsOf(body).namespace, fieldsOf(body).key));
    return NO_CONTENT;
  },
  search: ({ items }, { body }) => {
    const { namespace_prefix: prefix, filter: value } = fieldsOf(body);
    const isBelow = (namespace: unknown) => listOf(prefix).every((name, at) => listOf(namespace)[at] === name);
    const found = [...items.values()].filter(({ record }) => isBelow(record.namespace) && contains(record, { value }));
    const { body: page, ...response } = entryPage(found, body);
    return { ...response, body: { items: page } };
  },
} satisfies Record<string, Handler>;

async function start(agent: AgentData, call: EndpointCall, body = call.body): Promise<AgentRun> {
  const given = body as AgentRunSettings['request'];
  const { assistant_id, graph_id } = agent.assistants.get(given.assistant_id).record;
  const [graph, id] = [String(graph_id), newRunId(clock.nowUs())];
  const keys = (given.feedback_keys ?? []).map((feedback_key) => ({ run_id: id, feedback_key }));
  const tokens = await mintTokens(call.call, keys);
  const run = new AgentRun({
    id,
    call,
    request: { ...given, assistant_id: String(assistant_id) },
    thread: threadFor(agent, call.ids.thread_id, given),
    graph,
    assistant: agent.graphs[graph] as AssistantFunction,
    project: agent.project ?? graph,
    feedbackUrls: Object.fromEntries(tokens.map(({ feedback_key, url }) => [feedback_key, url])),
  });
  return agent.runs.add(run);
}

/** Returns the thread of a new run, which waits for the active runs, unless the request has another strategy. */
function threadFor({ threads }: AgentData, id: string | undefined, request: AgentRunSettings['request']): AgentThread {
  const { if_not_exists, on_completion, multitask_strategy: strategy = 'enqueue' } = request;
  const made = new AgentThread(id === undefined ? {} : { thread_id: id });
  if (id === undefined) return on_completion === 'keep' ? threads.add(made) : made;
  const thread = if_not_exists === 'create' ? threads.add(made, 'do_nothing') : threads.get(id);
  if (thread.active.size === 0 || strategy === 'enqueue') return thread;
  if (strategy === 'reject') throw new HttpError(422, 'The thread has an active run');
  return notSimulated(`the multitask_strategy ${strategy}`);
}

function runOf({ runs }: AgentData, { run_id, thread_id }: EndpointCall['ids']): AgentRun {
  const run = runs.get(run_id);
  if (contains(run.record, { thread_id })) return run;
  throw new HttpError(404, `The thread ${thread_id} has no run ${run_id}`);
}

async function cancel(runs: readonly AgentRun[], { search }: EndpointCall): Promise<RouteResponse> {
  if (search.get('action') === 'rollback') notSimulated('the action rollback');
  await Promise.all(runs.map((run) => run.cancel()));
  return NO_CONTENT;
}

const creating = {
  create: async (agent, call) => {
    const run = await start(agent, call);
    return { status: 200, headers: { 'content-location': pathOf(call, run) }, body: run.record };
  },
  wait: async (agent, call) => waited(await start(agent, call), call),
  stream: async (agent, call) => streamed(await start(agent, call), call, '-1'),
  joinStream: (agent, call) => {
    const run = runOf(agent, call.ids);
    const lastId = String(call.call.request.headers['last-event-id']);
    const isKnown = run.settings.request.stream_resumable === true && /^(-1|\d{1,15})$/.test(lastId);
    return streamed(run, call, isKnown ? lastId : undefined);
  },
} satisfies Record<string, Handler>;

const runHandlers = {
  ...creating,
  list: (agent, { ids, body }) => {
    const { thread_id } = agent.threads.get(ids.thread_id).record;
    return entryPage(agent.runs.find({ ...fieldsOf(body), thread_id }), body);
  },
  get: (agent, { ids }) => okResponse(runOf(agent, ids).record),
  delete: async (agent, { ids }) => {
    await runOf(agent, ids).cancel();
    agent.runs.delete(ids.run_id);
    return NO_CONTENT;
  },
  join: (agent, call) => waited(runOf(agent, call.ids), call),
  cancel: (agent, call) => cancel([runOf(agent, call.ids)], call),
} satisfies Record<string, Handler>;

const statelessRunHandlers = {
  ...creating,
  batch: async (agent, call) =>
    okResponse(fieldsOfEntries(await Promise.all(listOf(call.body).map((body) => start(agent, call, body))))),
  cancel: (agent, call) => {
    const { status, thread_id, run_ids: ids } = fieldsOf(call.body);
    return cancel(agent.runs.find({ ids, thread_id, status: status === 'all' ? undefined : status }), call);
  },
} satisfies Record<string, Handler>;

function pathOf({ ids }: EndpointCall, { settings }: AgentRun): string {
  return `${ids.thread_id === undefined ? '' : `/threads/${ids.thread_id}`}/runs/${settings.id}`;
}

/** Cancels the run when the client leaves, if the request that creates or joins the run says so. */
function answered(run: AgentRun, call: EndpointCall, type: string, content: RunContent): RouteResponse {
  const { on_disconnect, stream_resumable } = run.settings.request;
  const wish = call.ids.run_id === undefined ? on_disconnect : call.search.get('cancel_on_disconnect');
  const path = pathOf(call, run);
  const location = stream_resumable === true && { location: `${path}/stream` };
  const leave = (): void => {
    if (['1', 'true', 'cancel'].includes(wish ?? '')) void run.cancel();
  };
  return {
    status: 200,
    headers: { 'content-type': type, 'content-location': path, ...location },
    content: (ended) => {
      if (ended.aborted) leave();
      ended.addEventListener('abort', leave);
      return content(ended);
    },
  };
}

type RunContent = (ended: AbortSignal) => AsyncIterable<string>;

function waited(run: AgentRun, call: EndpointCall): RouteResponse {
  return answered(run, call, 'application/json', () => run.resultText());
}

function streamed(run: AgentRun, call: EndpointCall, lastId?: string): RouteResponse {
  const modes = call.search.getAll('stream_mode').flatMap((mode) => mode.split(','));
  return answered(run, call, 'text/event-stream', (ended) => run.eventsAfter(lastId, modes, ended));
}
