import { randomUUID } from 'node:crypto';
import type { Assistants } from '../../clients/agent-server/assistants.ts';
import type { Crons } from '../../clients/agent-server/crons.ts';
import type { Store } from '../../clients/agent-server/store.ts';
import type { ThreadState } from '../../clients/agent-server/thread.ts';
import type { Threads } from '../../clients/agent-server/threads.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';
import { runIdFrom } from '../../run/ids.ts';
import {
  AgentThread,
  contains,
  eventStream,
  newRecord,
  pageOf,
  Records,
  recordsOf,
  withMessageIds,
  withUpdate,
} from './agent-data.ts';
import type { AgentRun } from './agent-run.ts';
import type { EndpointCall } from './endpoint-routes.ts';

/** What the agent server of a deployment has stored for a workspace. */
export class AgentData {
  readonly graphs: readonly string[];
  /** Project of the runs: the name of the deployment. */
  readonly project: string | undefined;
  readonly assistants: Records = new Records('assistant');
  readonly threads: Records<AgentThread> = new Records('thread');
  readonly runs: Records<AgentRun> = new Records('run');
  readonly crons: Records = new Records('cron');
  /** Items of the store, by namespace and key. */
  readonly items: Map<string, Fields> = new Map();
  /** Versions of each assistant, oldest first. */
  readonly versions: Map<unknown, Fields[]> = new Map();

  constructor(graphs: readonly string[], project: string | undefined) {
    this.graphs = graphs;
    this.project = project;
    for (const graph of graphs) this.addAssistant({ assistant_id: runIdFrom(graph), graph_id: graph, name: graph });
  }

  addAssistant({ if_exists, ...fields }: Fields): Fields {
    const { assistant_id = randomUUID(), graph_id } = fields;
    if (!this.graphs.includes(String(graph_id))) throw new HttpError(404, `The graph ${graph_id} does not exist`);
    const record = newRecord({ version: 1, config: {}, description: null, ...fields, assistant_id });
    const entry = this.assistants.add({ record }, if_exists);
    if (entry.record === record) this.versions.set(assistant_id, [{ ...record }]);
    return entry.record;
  }

  /** Returns an assistant by its id, or by the name of its graph. */
  assistant(id: unknown): Fields {
    return this.assistants.get(this.graphs.includes(String(id)) ? runIdFrom(String(id)) : id).record;
  }

  /** Adds a thread, unless it is hidden from other requests. */
  addThread(fields: Fields, isHidden = false): AgentThread {
    const { if_exists, thread_id = randomUUID(), metadata = {} } = fields;
    const thread = new AgentThread(newRecord({ thread_id, metadata, status: 'idle', config: {} }));
    return isHidden ? thread : this.threads.add(thread, if_exists);
  }
}

export type AgentHandler = (agent: AgentData, request: EndpointCall) => RouteResponse | Promise<RouteResponse>;

/** One handler for each call of a client, so that a new call without a handler does not compile. */
export type AgentHandlers<Group> = { readonly [Name in keyof Group]: AgentHandler };

export function ok(body: unknown): RouteResponse {
  return { status: 200, body };
}

export const NO_CONTENT: RouteResponse = { status: 204 };

/** Returns the handlers that several kinds of records have. */
function recordHandlers(
  group: 'assistants' | 'threads' | 'crons',
  idOf: (agent: AgentData, ids: EndpointCall['ids']) => unknown,
) {
  return {
    get: (agent, { ids }) => ok(agent[group].get(idOf(agent, ids)).record),
    update: (agent, { ids, body }) => ok(agent[group].update(idOf(agent, ids), fieldsOf(body)).record),
    delete: (agent, { ids }) => {
      agent[group].delete(idOf(agent, ids));
      return NO_CONTENT;
    },
    search: (agent, { body }) => pageOf(recordsOf(agent[group].find(body)), body),
    count: (agent, { body }) => ok(agent[group].find(body).length),
  } satisfies Record<string, AgentHandler>;
}

export const assistantHandlers: AgentHandlers<Assistants> = {
  ...recordHandlers('assistants', (agent, ids) => agent.assistant(ids.assistant_id).assistant_id),
  create: (agent, { body }) => ok(agent.addAssistant(fieldsOf(body))),
  update: (agent, { ids, body }) => {
    const { assistant_id: id } = agent.assistant(ids.assistant_id);
    const versions = agent.versions.get(id) ?? [];
    const { record } = agent.assistants.update(id, { ...fieldsOf(body), version: versions.length + 1 });
    versions.push({ ...record });
    return ok(record);
  },
  graph: (agent, { ids }) => {
    const nodes = ['__start__', String(agent.assistant(ids.assistant_id).graph_id), '__end__'];
    const edges = nodes.slice(1).map((target, at) => ({ source: nodes[at], target }));
    return ok({ nodes: nodes.map((id) => ({ id })), edges });
  },
  schemas: (agent, { ids }) => ok({ graph_id: agent.assistant(ids.assistant_id).graph_id }),
  subgraphs: (agent, { ids }) => ok(agent.assistant(ids.assistant_id) && {}),
  versions: (agent, { ids, body }) => {
    const versions = agent.versions.get(agent.assistant(ids.assistant_id).assistant_id) ?? [];
    return pageOf(versions.toReversed(), body);
  },
  setLatest: (agent, { ids, body }) => {
    const record = agent.assistant(ids.assistant_id);
    const { version } = fieldsOf(body);
    const found = agent.versions.get(record.assistant_id)?.find((one) => one.version === version);
    if (found === undefined) throw new HttpError(404, `The version ${version} does not exist`);
    return ok(Object.assign(record, found));
  },
};

export const threadHandlers: AgentHandlers<Threads> = {
  ...recordHandlers('threads', (_, ids) => ids.thread_id),
  create: (agent, { body }) => {
    const thread = agent.addThread(fieldsOf(body));
    for (const step of listOf(fieldsOf(body).supersteps))
      for (const { values } of listOf(fieldsOf(step).updates) as Fields[]) change(thread, values);
    return ok(thread.record);
  },
  delete: (agent, { ids }) => {
    for (const run of agent.threads.get(ids.thread_id).active.keys()) void agent.runs.get(run).cancel();
    agent.threads.delete(ids.thread_id);
    return NO_CONTENT;
  },
  copy: (agent, { ids }) => {
    const { record, states } = agent.threads.get(ids.thread_id);
    const copy = agent.addThread({ metadata: record.metadata });
    copy.setStates(states);
    return ok(copy.record);
  },
  prune: (agent, { body }) => {
    const { thread_ids: ids, strategy } = body as { thread_ids: string[]; strategy: string };
    const found = agent.threads.find({}).filter(({ record }) => ids.includes(String(record.thread_id)));
    for (const thread of found)
      if (strategy === 'delete') agent.threads.delete(thread.record.thread_id);
      else thread.setStates(thread.states.slice(-1));
    return ok({ pruned_count: found.length });
  },
  state: (agent, { ids, body }) => {
    const { states } = agent.threads.get(ids.thread_id);
    const id = ids.checkpoint_id ?? checkpointIn(fieldsOf(body).checkpoint);
    const state =
      id === undefined ? (states.at(-1) ?? NO_STATE) : states.find((one) => checkpointIn(one.checkpoint) === id);
    if (state === undefined) throw new HttpError(404, `The checkpoint ${id} does not exist`);
    return ok(state);
  },
  updateState: (agent, { ids, body }) => ok(change(agent.threads.get(ids.thread_id), fieldsOf(body).values)),
  history: (agent, { ids, body }) => {
    const { limit = 10, before, metadata } = body as { limit?: number; before?: unknown; metadata?: unknown };
    const newest = agent.threads.get(ids.thread_id).states.toReversed();
    const after = newest.findIndex(({ checkpoint }) => checkpointIn(checkpoint) === checkpointIn(before)) + 1;
    return ok(
      newest
        .slice(after)
        .filter((state) => contains(state.metadata, metadata))
        .slice(0, limit),
    );
  },
  joinStream: (agent, { ids, call }) => {
    const { events } = agent.threads.get(ids.thread_id);
    const from = events.positionAfter(call.request.headers['last-event-id']);
    return eventStream((ended) => events.read(from, ended));
  },
};

const NO_CHECKPOINT = { checkpoint: null, parent_checkpoint: null, created_at: null };
const NO_STATE = { ...NO_CHECKPOINT, values: {}, next: [], tasks: [], metadata: {} };

function change(thread: AgentThread, values: unknown): Pick<ThreadState, 'checkpoint'> {
  const { checkpoint } = thread.add(withUpdate(thread.values, withMessageIds(values)), 'update');
  return { checkpoint };
}

/** Returns the id in a checkpoint, or the id itself. */
function checkpointIn(checkpoint: unknown): unknown {
  return isFields(checkpoint) ? checkpoint.checkpoint_id : checkpoint;
}

const createCron: AgentHandler = (agent, { ids, body }) => {
  const {
    assistant_id: id,
    metadata = {},
    schedule,
    timezone,
    end_time = null,
    enabled = true,
    ...payload
  } = fieldsOf(body);
  const { assistant_id } = agent.assistant(id);
  const thread_id = ids.thread_id === undefined ? null : agent.threads.get(ids.thread_id).record.thread_id;
  const cron = {
    cron_id: randomUUID(),
    assistant_id,
    thread_id,
    metadata,
    schedule,
    timezone,
    end_time,
    enabled,
    payload,
  };
  return ok(agent.crons.add({ record: newRecord({ ...cron, next_run_date: null }) }).record);
};

export const cronHandlers: AgentHandlers<Crons> = {
  ...recordHandlers('crons', (_, ids) => ids.cron_id),
  create: createCron,
  createForThread: createCron,
};

export const storeHandlers: AgentHandlers<Store> = {
  put: ({ items }, { body }) => {
    const { namespace, key, value } = fieldsOf(body);
    items.set(itemKey(namespace, key), newRecord({ namespace, key, value }));
    return NO_CONTENT;
  },
  get: ({ items }, { search }) => {
    const namespace = search.getAll('namespace').flatMap((names) => names.split('.'));
    return ok(items.get(itemKey(namespace, search.get('key'))) ?? null);
  },
  delete: ({ items }, { body }) => {
    items.delete(itemKey(fieldsOf(body).namespace, fieldsOf(body).key));
    return NO_CONTENT;
  },
  search: ({ items }, { body }) => {
    const { namespace_prefix: prefix, filter } = fieldsOf(body);
    const found = [...items.values()].filter(
      ({ namespace, value }) => isBelow(namespace, prefix) && contains(value, filter),
    );
    const { body: page, ...response } = pageOf(found, body);
    return { ...response, body: { items: page } };
  },
  namespaces: ({ items }, { body }) => {
    const found = [...items.values()].map(({ namespace }) => namespace);
    const below = found.filter((namespace) => isBelow(namespace, fieldsOf(body).prefix));
    const { body: page, ...response } = pageOf([...new Set(below.map((names) => exactJson(names)))], body);
    return { ...response, body: { namespaces: page.map((names) => JSON.parse(String(names))) } };
  },
};

function itemKey(namespace: unknown, key: unknown): string {
  return exactJson([namespace, key]);
}

function isBelow(namespace: unknown, prefix: unknown): boolean {
  return listOf(prefix).every((name, at) => listOf(namespace)[at] === name);
}
