import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Seen, serve, type TestServer } from '../http/server.ts';

/** The key that the strict server accepts, and a key of another organization. */
export const KEY = 'lsv2_agent_key_1';
export const FORBIDDEN_KEY = 'lsv2_agent_key_2';

export interface AgentTestServer extends TestServer {
  /** The called endpoints in the notation of the reference: `POST /threads/{thread_id}/runs`. */
  readonly endpoints: readonly string[];
  /** Breaks the next stream after this number of events. */
  cutNext(events: number): void;
}

/**
 * An agent server with fixed responses, written from the interface reference. It requires a key, refuses bodies with
 * missing or unknown fields, sends pages with headers, sends heartbeats, and stores the events of resumable streams.
 */
export async function serveAgents(): Promise<AgentTestServer> {
  const world = new World();
  const server = await serve((request, response) => {
    const body = server.seen.at(-1) as Seen;
    world.answer(request, response, body);
  });
  return {
    ...server,
    endpoints: world.endpoints,
    cutNext: (events) => {
      world.cutAfter = events;
    },
  };
}

type Json = Record<string, unknown>;

interface Asked {
  readonly ids: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Json;
  readonly headers: IncomingMessage['headers'];
}

/** A response: a body with a status and headers, or the stream of a run. */
interface Reply {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly stream?: { readonly run: StoredRun; readonly after: number };
}

interface StoredRun {
  readonly run: Json;
  readonly values: Json;
  readonly error: Json | undefined;
  readonly events: readonly (readonly [name: string, data: unknown])[];
  readonly isKept: boolean;
}

class Refused extends Error {
  readonly status: number;
  readonly detail: unknown;

  constructor(status: number, detail: unknown) {
    super(String(detail));
    this.status = status;
    this.detail = detail;
  }
}

const NOW = '2026-11-21T05:00:00+00:00';
const ASSISTANT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';

const RUN =
  'assistant_id* input command checkpoint checkpoint_id metadata config context webhook interrupt_before interrupt_after stream_mode stream_subgraphs stream_resumable on_disconnect feedback_keys multitask_strategy if_not_exists after_seconds durability';
const STATELESS = RUN.replace('checkpoint checkpoint_id ', '').replace(
  'multitask_strategy if_not_exists',
  'on_completion',
);
const PAGE = 'limit offset';
const CRON =
  'schedule* assistant_id* timezone end_time input metadata config context webhook interrupt_before interrupt_after enabled stream_mode stream_subgraphs stream_resumable durability';

/** Each endpoint's body fields. A star marks a required field. */
const FIELDS: Readonly<Record<string, string>> = {
  'POST /assistants': 'graph_id* assistant_id config context metadata if_exists name description',
  'POST /assistants/search': `metadata graph_id name sort_by sort_order select ${PAGE}`,
  'POST /assistants/count': 'metadata graph_id name',
  'PATCH /assistants/{assistant_id}': 'graph_id config context metadata name description',
  'POST /assistants/{assistant_id}/versions': `metadata ${PAGE}`,
  'POST /assistants/{assistant_id}/latest': 'version*',
  'POST /threads': 'thread_id metadata if_exists ttl supersteps',
  'POST /threads/search': `ids metadata values status sort_by sort_order select ${PAGE}`,
  'POST /threads/count': 'metadata values status',
  'POST /threads/prune': 'thread_ids* strategy*',
  'PATCH /threads/{thread_id}': 'metadata ttl',
  'POST /threads/{thread_id}/state': 'values checkpoint as_node',
  'POST /threads/{thread_id}/state/checkpoint': 'checkpoint* subgraphs',
  'POST /threads/{thread_id}/history': 'limit before metadata checkpoint',
  'POST /threads/{thread_id}/runs': RUN,
  'POST /threads/{thread_id}/runs/stream': RUN,
  'POST /threads/{thread_id}/runs/wait': RUN,
  'POST /runs': STATELESS,
  'POST /runs/stream': STATELESS,
  'POST /runs/wait': STATELESS,
  'POST /runs/cancel': 'status thread_id run_ids',
  'POST /runs/crons': `${CRON} on_run_completed`,
  'POST /threads/{thread_id}/runs/crons': `${CRON} multitask_strategy`,
  'POST /runs/crons/search': `assistant_id thread_id enabled metadata sort_by sort_order select ${PAGE}`,
  'POST /runs/crons/count': 'assistant_id thread_id enabled metadata',
  'PATCH /runs/crons/{cron_id}': `${CRON.replaceAll('*', '').replace('assistant_id ', '')} on_run_completed`,
  'PUT /store/items': 'namespace* key* value* index ttl',
  'DELETE /store/items': 'namespace* key*',
  'POST /store/items/search': `namespace_prefix* filter query ${PAGE}`,
  'POST /a2a/{assistant_id}': 'jsonrpc* id* method* params*',
  'POST /store/namespaces': `prefix suffix max_depth ${PAGE}`,
};

class World {
  readonly endpoints: string[] = [];
  cutAfter: number | undefined;
  readonly #assistants = new Map<string, Json>([
    [ASSISTANT, assistant(ASSISTANT, { graph_id: 'agent', name: 'agent' })],
  ]);
  readonly #threads = new Map<string, Json & { states: Json[] }>();
  readonly #runs = new Map<string, StoredRun>();
  readonly #crons = new Map<string, Json>();
  readonly #items = new Map<string, Json>();

  readonly #routes: Readonly<Record<string, (asked: Asked) => Reply>> = {
    'GET /info': () => ({ body: { version: '0.4.1', flags: { assistants: true, crons: true }, metadata: {} } }),
    'GET /ok': ({ query }) => ({ body: { ok: true, ...(query.has('check_db') && { db: true }) } }),
    'GET /metrics': ({ query }) =>
      query.get('format') === 'json'
        ? { body: { runs: 1 } }
        : { headers: { 'content-type': 'text/plain' }, body: 'runs 1\n' },
    'GET /docs': () => ({ headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>Reference</title>' }),

    'POST /assistants': ({ body }) => ({ body: this.#put(this.#assistants, 'assistant_id', body, assistant) }),
    'POST /assistants/search': (asked) => paged(asked, this.#found(this.#assistants, asked.body)),
    'POST /assistants/count': ({ body }) => ({ body: this.#found(this.#assistants, body).length }),
    'GET /assistants/{assistant_id}': ({ ids }) => ({ body: this.#assistant(ids) }),
    'PATCH /assistants/{assistant_id}': ({ ids, body }) => ({
      body: Object.assign(this.#assistant(ids), body, { version: 2 }),
    }),
    'DELETE /assistants/{assistant_id}': ({ ids }) => this.#drop(this.#assistants, ids[0]),
    'GET /assistants/{assistant_id}/graph': ({ query }) => ({
      body: {
        nodes: [{ id: '__start__' }, { id: 'plan' }],
        edges: [{ source: '__start__', target: 'plan' }],
        xray: query.get('xray'),
      },
    }),
    'GET /assistants/{assistant_id}/schemas': ({ ids }) => ({ body: { graph_id: this.#assistant(ids).graph_id } }),
    'GET /assistants/{assistant_id}/subgraphs': () => ({ body: { weather: {} } }),
    'GET /assistants/{assistant_id}/subgraphs/{namespace}': ({ ids }) => ({ body: { [String(ids[1])]: {} } }),
    'POST /assistants/{assistant_id}/versions': (asked) => paged(asked, [this.#assistant(asked.ids)]),
    'POST /assistants/{assistant_id}/latest': ({ ids, body }) => ({ body: { ...this.#assistant(ids), ...body } }),

    'POST /threads': ({ body }) => ({ body: this.#put(this.#threads, 'thread_id', body, thread) }),
    'POST /threads/search': (asked) => paged(asked, this.#found(this.#threads, asked.body)),
    'POST /threads/count': ({ body }) => ({ body: this.#found(this.#threads, body).length }),
    'POST /threads/prune': ({ body }) => ({ body: { pruned_count: (body.thread_ids as string[]).length } }),
    'GET /threads/{thread_id}': ({ ids }) => ({ body: this.#thread(ids) }),
    'PATCH /threads/{thread_id}': ({ ids, body }) => ({ body: Object.assign(this.#thread(ids), body) }),
    'DELETE /threads/{thread_id}': ({ ids }) => this.#drop(this.#threads, ids[0]),
    'POST /threads/{thread_id}/copy': ({ ids }) => {
      const { thread_id: _, ...rest } = this.#thread(ids);
      return { body: this.#put(this.#threads, 'thread_id', rest, thread) };
    },
    'GET /threads/{thread_id}/state': ({ ids }) => ({ body: this.#state(ids) }),
    'GET /threads/{thread_id}/state/{checkpoint_id}': ({ ids }) => ({ body: this.#state(ids, ids[1]) }),
    'POST /threads/{thread_id}/state/checkpoint': ({ ids, body }) => ({
      body: this.#state(ids, (body.checkpoint as Json).checkpoint_id as string),
    }),
    'POST /threads/{thread_id}/state': ({ ids, body }) => {
      const state = stateOf(ids[0] as string, body.values as Json);
      this.#thread(ids).states.unshift(state);
      return { body: { checkpoint: state.checkpoint } };
    },
    'GET /threads/{thread_id}/history': ({ ids, query }) =>
      this.#history(ids, Number(query.get('limit')), query.get('before')),
    'POST /threads/{thread_id}/history': ({ ids, body }) => {
      const before = body.before as Json | undefined;
      return this.#history(ids, Number(body.limit), before?.checkpoint_id as string | undefined);
    },
    'GET /threads/{thread_id}/stream': (asked) => {
      const last = [...this.#runs.values()].findLast(({ run }) => run.thread_id === asked.ids[0]);
      if (last === undefined) throw new Refused(404, `Thread with ID ${asked.ids[0]} not found`);
      return { stream: { run: last, after: lastIdOf(asked) } };
    },

    'POST /threads/{thread_id}/runs': ({ ids, body }) => this.#created(ids[0], body, ({ run }) => ({ body: run })),
    'POST /threads/{thread_id}/runs/wait': ({ ids, body }) => this.#created(ids[0], body, waited),
    'POST /threads/{thread_id}/runs/stream': ({ ids, body }) =>
      this.#created(ids[0], body, (run) => ({ stream: { run, after: -1 } })),
    'POST /runs': ({ body }) => this.#created(undefined, body, ({ run }) => ({ body: run })),
    'POST /runs/wait': ({ body }) => this.#created(undefined, body, waited),
    'POST /runs/stream': ({ body }) => this.#created(undefined, body, (run) => ({ stream: { run, after: -1 } })),
    'POST /runs/batch': ({ body }) => ({
      body: (body as unknown as Json[]).map((one) => this.#run(undefined, one).run),
    }),
    'POST /runs/cancel': () => ({ status: 204 }),
    'GET /threads/{thread_id}/runs': (asked) => {
      const runs = [...this.#runs.values()].map(({ run }) => run).filter((run) => run.thread_id === asked.ids[0]);
      return paged({ ...asked, body: Object.fromEntries(asked.query) }, runs);
    },
    'GET /threads/{thread_id}/runs/{run_id}': ({ ids }) => ({ body: this.#stored(ids[1]).run }),
    'DELETE /threads/{thread_id}/runs/{run_id}': ({ ids }) => this.#drop(this.#runs, ids[1]),
    'GET /threads/{thread_id}/runs/{run_id}/join': ({ ids }) => waited(this.#stored(ids[1])),
    'GET /threads/{thread_id}/runs/{run_id}/stream': (asked) => ({
      stream: { run: this.#stored(asked.ids[1]), after: lastIdOf(asked) },
    }),
    'GET /runs/{run_id}/stream': (asked) => ({ stream: { run: this.#stored(asked.ids[0]), after: lastIdOf(asked) } }),
    'POST /threads/{thread_id}/runs/{run_id}/cancel': ({ query }) => ({
      status: query.get('wait') === '1' ? 204 : 202,
    }),

    'POST /runs/crons': ({ body }) => ({ body: this.#put(this.#crons, 'cron_id', body, cron) }),
    'POST /threads/{thread_id}/runs/crons': ({ ids, body }) => ({
      body: this.#put(this.#crons, 'cron_id', { ...body, thread_id: ids[0] }, cron),
    }),
    'POST /runs/crons/search': (asked) => paged(asked, this.#found(this.#crons, asked.body)),
    'POST /runs/crons/count': ({ body }) => ({ body: this.#found(this.#crons, body).length }),
    'PATCH /runs/crons/{cron_id}': ({ ids, body }) => ({ body: Object.assign(this.#cron(ids), body) }),
    'DELETE /runs/crons/{cron_id}': ({ ids }) => this.#drop(this.#crons, ids[0]),

    'POST /a2a/{assistant_id}': ({ ids, body }) => {
      const { message } = body.params as { message: Json };
      const task = { kind: 'task', id: 't:r', contextId: message.contextId ?? 't', status: { state: 'completed' } };
      const known = ids[0] === 'agent' ? { result: task } : { error: { code: -32602, message: 'No such assistant' } };
      const reply = { jsonrpc: '2.0', id: body.id, ...known };
      if (body.method === 'message/send') return { body: reply };
      const working = { ...reply, result: { kind: 'status-update', status: { state: 'working' } } };
      const events =
        ids[0] === 'agent' ? [working, reply].map((data) => ['message', data] as const) : [['error', reply] as const];
      return { stream: { run: { ...this.#run(undefined, {}), events }, after: -1 } };
    },
    'GET /.well-known/agent-card.json': ({ query }) => ({
      body: { name: query.get('assistant_id'), description: 'Knows the weather', url: '/a2a/agent' },
    }),

    'PUT /store/items': ({ body }) => {
      this.#items.set(placeOf(body), { ...body, created_at: NOW, updated_at: NOW });
      return { status: 204 };
    },
    'GET /store/items': ({ query }) => ({
      body: this.#items.get(`${query.get('namespace')}:${query.get('key')}`) ?? null,
    }),
    'DELETE /store/items': ({ body }) => {
      this.#items.delete(placeOf(body));
      return { status: 204 };
    },
    'POST /store/items/search': (asked) => {
      const prefix = (asked.body.namespace_prefix as string[]).join('.');
      const items = [...this.#items].filter(([place]) => place.startsWith(prefix)).map(([, item]) => item);
      return { body: { items: part(asked.body, items) } };
    },
    'POST /store/namespaces': ({ body }) => ({
      body: part(
        body,
        [...this.#items.values()].map(({ namespace }) => namespace),
      ),
    }),
  };

  answer(request: IncomingMessage, response: ServerResponse, { body }: Seen): void {
    try {
      const key = request.headers['x-api-key'];
      if (key === FORBIDDEN_KEY) throw new Refused(403, 'This key is for another organization');
      if (key !== KEY) throw new Refused(401, 'Missing or invalid authentication');
      const url = new URL(`http://localhost${request.url}`);
      const [endpoint, ids] = this.#endpoint(`${request.method} ${url.pathname}`);
      this.endpoints.push(endpoint);
      const asked = {
        ids,
        query: url.searchParams,
        body: body === '' ? {} : JSON.parse(body),
        headers: request.headers,
      };
      check(endpoint, asked.body);
      const reply = this.#routes[endpoint]?.(asked) ?? {};
      if (reply.stream !== undefined) this.#stream(response, reply);
      else respond(response, reply);
    } catch (thrown) {
      if (!(thrown instanceof Refused)) throw thrown;
      respond(response, { status: thrown.status, body: { detail: thrown.detail } });
    }
  }

  /** Returns the endpoint of a request. A path without placeholders wins. */
  #endpoint(asked: string): [endpoint: string, ids: string[]] {
    const words = asked.split('/').map(decodeURIComponent);
    const matching = Object.keys(this.#routes).filter((route) => {
      const segments = route.split('/');
      return segments.length === words.length && segments.every((one, at) => one.startsWith('{') || one === words[at]);
    });
    const [endpoint] = matching.sort((one, other) => one.split('{').length - other.split('{').length);
    if (endpoint === undefined) throw new Refused(404, 'Not Found');
    return [endpoint, words.filter((_, at) => endpoint.split('/')[at]?.startsWith('{'))];
  }

  #put<Item extends Json>(
    items: Map<string, Item>,
    name: string,
    body: Json,
    make: (id: string, body: Json) => Item,
  ): Item {
    const id = (body[name] as string | undefined) ?? randomUUID();
    const known = items.get(id);
    if (known !== undefined && body.if_exists === 'do_nothing') return known;
    if (known !== undefined) throw new Refused(409, `${id} exists already`);
    const item = make(id, body);
    items.set(id, item);
    return item;
  }

  #found(items: ReadonlyMap<string, Json>, filter: Json): Json[] {
    const wanted = Object.entries((filter.metadata as Json | undefined) ?? {});
    const holds = ({ metadata }: Json): boolean =>
      wanted.every(([key, value]) => (metadata as Json | null)?.[key] === value);
    return [...items.values()].filter(holds);
  }

  #drop(items: Map<string, unknown>, id: string | undefined): Reply {
    if (!items.delete(id as string)) throw new Refused(404, `${id} not found`);
    return { status: 204 };
  }

  #assistant([id]: readonly string[]): Json {
    return found(this.#assistants, id === 'agent' ? ASSISTANT : id, 'Assistant');
  }

  #thread([id]: readonly string[]): Json & { states: Json[] } {
    return found(this.#threads, id, 'Thread');
  }

  #cron([id]: readonly string[]): Json {
    return found(this.#crons, id, 'Cron');
  }

  #stored(runId: string | undefined): StoredRun {
    return found(this.#runs, runId, 'Run');
  }

  #state(ids: readonly string[], checkpointId?: string): Json {
    const { states } = this.#thread(ids);
    const state = checkpointId === undefined ? states[0] : states.find((one) => idOf(one) === checkpointId);
    const none = { checkpoint: null, metadata: {}, created_at: null, parent_checkpoint: null };
    return state ?? { values: {}, next: [], tasks: [], ...none };
  }

  #history(ids: readonly string[], limit: number, before: string | null | undefined): Reply {
    const { states } = this.#thread(ids);
    const from = before === null || before === undefined ? 0 : states.findIndex((state) => idOf(state) === before) + 1;
    return { body: states.slice(from, from + limit) };
  }

  #created(threadId: string | undefined, body: Json, answer: (run: StoredRun) => Reply): Reply {
    const run = this.#run(threadId, body);
    const path = `${threadId === undefined ? '' : `/threads/${threadId}`}/runs/${run.run.run_id}`;
    const reply = answer(run);
    return {
      ...reply,
      headers: { 'content-location': path, ...(run.isKept && { location: `${path}/stream` }), ...reply.headers },
    };
  }

  /** Creates a run that has already ended. */
  #run(threadId: string | undefined, body: Json): StoredRun {
    if (threadId !== undefined && !this.#threads.has(threadId)) {
      if (body.if_not_exists !== 'create') throw new Refused(404, `Thread with ID ${threadId} not found`);
      this.#threads.set(threadId, thread(threadId, {}));
    }
    const id = randomUUID();
    const text = JSON.stringify(body.input ?? null);
    const error = text.includes('fail') ? { error: 'RangeError', message: 'no such city' } : undefined;
    const question = { id: 'i-1', value: { question: 'May I?' } };
    const isAsking = text.includes('approve');
    const messages = [
      { type: 'human', content: 'weather?' },
      { type: 'ai', content: 'It is sunny in Kiel.' },
    ];
    const values = isAsking ? { messages: [], __interrupt__: [question] } : { messages };
    if (threadId !== undefined) {
      const states = this.#threads.get(threadId)?.states;
      states?.unshift(stateOf(threadId, { messages: [] }));
      states?.unshift(stateOf(threadId, values));
    }
    const run = {
      run: {
        run_id: id,
        thread_id: threadId ?? randomUUID(),
        assistant_id: ASSISTANT,
        created_at: NOW,
        updated_at: NOW,
        status: error ? 'error' : 'success',
        metadata: {},
        kwargs: {},
        multitask_strategy: 'enqueue',
      },
      values,
      error,
      events: eventsOf(id, body, values, error),
      isKept: body.stream_resumable === true,
    };
    this.#runs.set(id, run);
    return run;
  }

  /** Sends event, data and id in the same order as the real server, with a heartbeat. */
  #stream(response: ServerResponse, { headers, stream }: Reply): void {
    const { run, after } = stream as NonNullable<Reply['stream']>;
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
    response.write(': heartbeat\r\n\r\n');
    const from = run.isKept ? after + 1 : 0;
    const cut = this.cutAfter;
    this.cutAfter = undefined;
    for (const [at, [name, data]] of run.events.entries()) {
      if (at < from) continue;
      if (cut !== undefined && at - from >= cut) {
        // The written data must arrive before the connection breaks.
        response.write('event: values\r\ndata: {"mess', () => setImmediate(() => response.destroy()));
        return;
      }
      response.write(`event: ${name}\r\ndata: ${JSON.stringify(data)}\r\n${run.isKept ? `id: ${at}\r\n` : ''}\r\n`);
    }
    response.end();
  }
}

function found<Item>(items: ReadonlyMap<string, Item>, id: string | undefined, kind: string): Item {
  const item = items.get(String(id));
  if (item === undefined) throw new Refused(404, `${kind} with ID ${id} not found`);
  return item;
}

function eventsOf(runId: string, body: Json, values: Json, error: Json | undefined): [string, unknown][] {
  const keys = (body.feedback_keys as string[] | undefined) ?? [];
  const address = (key: string) => [key, `https://feedback.example/api/v1/feedback/tokens/${runId}-${key}`];
  return [
    ['metadata', { run_id: runId, attempt: 1 }],
    ['values', { messages: [] }],
    ...(body.stream_subgraphs === true ? [['values|weather:1|look:2', { messages: [] }] as [string, unknown]] : []),
    ...(error === undefined ? [['values', values] as [string, unknown]] : [['error', error] as [string, unknown]]),
    ...(keys.length > 0 ? [['feedback', Object.fromEntries(keys.map(address))] as [string, unknown]] : []),
  ];
}

/** Sends empty lines that keep the connection alive, and then the values. */
function waited({ values, error }: StoredRun): Reply {
  return { body: `\n\n${JSON.stringify(error === undefined ? values : { __error__: error })}` };
}

function check(endpoint: string, body: Json): void {
  const fields = FIELDS[endpoint]?.split(' ') ?? [];
  if (endpoint === 'POST /runs/batch') {
    for (const one of body as unknown as Json[]) check('POST /runs', one);
    return;
  }
  const names = fields.map((field) => field.replace('*', ''));
  const detail = [
    ...fields
      .filter((field) => field.endsWith('*') && body[field.slice(0, -1)] === undefined)
      .map((field) => ({ loc: ['body', field.slice(0, -1)], msg: 'Field required', type: 'missing' })),
    ...Object.keys(body)
      .filter((name) => !names.includes(name))
      .map((name) => ({ loc: ['body', name], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' })),
  ];
  if (detail.length > 0) throw new Refused(422, detail);
}

function respond(response: ServerResponse, { status = 200, headers, body }: Reply): void {
  if (body === undefined) response.writeHead(status, headers).end();
  else {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  }
}

function part<Item>(body: Json, items: readonly Item[]): Item[] {
  const { limit = 10, offset = 0 } = body as { limit?: number; offset?: number };
  return items.slice(Number(offset), Number(offset) + Number(limit));
}

function paged({ body }: Asked, items: readonly Json[]): Reply {
  const some = part(body, items);
  const next = Number(body.offset ?? 0) + some.length;
  const isFull = some.length === Number(body.limit ?? 10);
  const headers = { 'x-pagination-total': String(items.length), ...(isFull && { 'x-pagination-next': String(next) }) };
  return { headers, body: some };
}

function lastIdOf({ headers }: Asked): number {
  const id = headers['last-event-id'];
  return typeof id === 'string' ? Number(id) : -1;
}

function placeOf({ namespace, key }: Json): string {
  return `${(namespace as string[]).join('.')}:${key}`;
}

function idOf(state: Json): unknown {
  return (state.checkpoint as Json).checkpoint_id;
}

function stateOf(threadId: string, values: Json): Json {
  const checkpoint = { thread_id: threadId, checkpoint_id: randomUUID(), checkpoint_ns: '', checkpoint_map: null };
  return { values, next: [], tasks: [], checkpoint, metadata: {}, created_at: NOW, parent_checkpoint: null };
}

const TIMES = { created_at: NOW, updated_at: NOW };

function assistant(id: string, body: Json): Json {
  return { config: {}, metadata: {}, name: 'Untitled', ...body, assistant_id: id, version: 1, ...TIMES };
}

function thread(id: string, body: Json): Json & { states: Json[] } {
  return { metadata: {}, ...body, thread_id: id, status: 'idle', values: {}, states: [], ...TIMES };
}

function cron(id: string, body: Json): Json {
  const { schedule, assistant_id, thread_id = null, end_time = null, enabled = true, ...payload } = body;
  const { metadata = {} } = payload;
  const fields = { cron_id: id, assistant_id, thread_id, schedule, end_time, enabled, payload, metadata };
  return { ...fields, ...TIMES, user_id: null, next_run_date: NOW };
}
