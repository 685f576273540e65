import type { ServerResponse } from 'node:http';
import { type Seen, serve, type TestServer } from '../http/server.ts';

type Json = Record<string, unknown>;

interface ProtocolEvent extends Json {
  readonly seq: number;
  readonly method: string;
  readonly params: Json & { readonly namespace: readonly string[] };
}

interface Reader {
  readonly response: ServerResponse;
  readonly filter: Json;
}

interface KeptThread {
  readonly log: ProtocolEvent[];
  readonly states: Json[];
  readonly readers: Set<Reader>;
  interrupted: boolean;
}

export interface ThreadServer extends TestServer {
  /** Sends an event to all readers of a thread. */
  tell(threadId: string, method: string, data: unknown, params?: Json): void;
  /** The bodies of requests to a path. */
  bodies(path: string): Json[];
}

interface Manner {
  /** Whether a continued run keeps its id, and the command's response contains it. */
  readonly keepsRuns?: boolean;
  /** Whether events contain their run id, as in the reference application. */
  readonly tellsRuns?: boolean;
  /** Whether a thread must be created before its state, as on an agent server. */
  readonly makesThreads?: boolean;
}

/**
 * A server of the agent streaming protocol, written from its reference. Its agent greets, fails for the input `fail`, asks for the
 * input `ask`, and waits to be cancelled for the input `wait`. It refuses bodies with unknown fields.
 */
export async function serveThreads(manner: Manner = {}): Promise<ThreadServer> {
  const world = new World(manner);
  const server = await serve((request, response) => {
    const asked = server.seen.at(-1) as Seen;
    world.answer(
      `${request.method} ${request.url}`,
      asked.body === '' ? {} : (JSON.parse(asked.body) as Json),
      response,
    );
  });
  return {
    ...server,
    tell: (threadId, method, data, params) => world.tell(world.thread(threadId), method, data, params),
    bodies: (path) =>
      server.seen.filter(({ url }) => url === path).map(({ body }) => (body === '' ? {} : JSON.parse(body))),
  };
}

const COMMAND_FIELDS: Readonly<Record<string, string>> = {
  'run.start': 'assistant_id input config metadata multitaskStrategy',
  'input.respond': 'namespace interrupt_id response responses update goto config metadata',
};

class World {
  readonly #threads = new Map<string, KeptThread>();
  readonly #tellsRuns: boolean;
  readonly #makesThreads: boolean;
  readonly #keepsRuns: boolean;
  #runs = 0;

  constructor({ tellsRuns = true, makesThreads = false, keepsRuns = false }: Manner) {
    this.#tellsRuns = tellsRuns;
    this.#makesThreads = makesThreads;
    this.#keepsRuns = keepsRuns;
  }

  thread(id: string): KeptThread {
    const thread = this.#threads.get(id) ?? { log: [], states: [], readers: new Set(), interrupted: false };
    this.#threads.set(id, thread);
    return thread;
  }

  answer(asked: string, body: Json, response: ServerResponse): unknown {
    const json = (status: number, value?: unknown): unknown => {
      response.writeHead(status, { 'content-type': 'application/json' });
      return response.end(value === undefined ? '' : JSON.stringify(value));
    };
    const missing = { error: 'not_found', message: 'Thread not found' };
    if (asked.split('?')[0] === 'GET /threads') {
      const title = 'New conversation';
      return json(
        200,
        [...this.#threads.keys()].map((id) => ({ id, title, updatedAt: null, pinned: false })),
      );
    }
    if (asked === 'POST /threads') {
      this.thread(String(body.thread_id)).states.unshift(state(0, {}));
      return json(200, { thread_id: body.thread_id });
    }
    const [, method, id = '', call = ''] = /^(\w+) \/threads\/([^/]+)\/?(.*)$/.exec(asked) ?? [];
    const thread = this.thread(id);
    if (method === 'DELETE') {
      this.#threads.delete(id);
      return json(204);
    }
    if (call === 'commands') return this.#command(thread, body, json);
    if (call === 'stream' || call === 'stream/events') return this.#stream(thread, body, response);
    if (/^runs\/[^/]+\/cancel$/.test(call)) {
      this.#lifecycle(thread, 'interrupted', call.split('/')[1] as string);
      return json(202, {});
    }
    if (call === 'state' && method === 'GET') {
      return thread.states.length === 0 ? json(404, missing) : json(200, thread.states[0]);
    }
    if (call === 'state') {
      if (this.#makesThreads && thread.states.length === 0) return json(404, missing);
      thread.states.unshift(state(thread.states.length, (body.values as Json) ?? {}));
      return json(200, this.#makesThreads ? { checkpoint: thread.states[0]?.checkpoint } : thread.states[0]);
    }
    if (call === 'history') {
      const from = thread.states.findIndex(({ checkpoint }) => (checkpoint as Json).checkpoint_id === body.before) + 1;
      return json(200, thread.states.slice(from, from + ((body.limit as number) ?? 10)));
    }
    return json(404, missing);
  }

  tell(thread: KeptThread, method: string, data: unknown, params: Json = {}): void {
    const seq = thread.log.length + 1;
    const event = {
      type: 'event',
      event_id: `e-${seq}`,
      seq,
      method,
      params: { namespace: [], timestamp: 1_000 + seq, ...params, data },
    };
    thread.log.push(event);
    for (const reader of thread.readers) send(reader, event);
  }

  #command(
    thread: KeptThread,
    { id, method, params, ...others }: Json,
    json: (status: number, value?: unknown) => unknown,
  ): unknown {
    const refuse = (status: number, error: string, message: string): unknown =>
      json(status, { type: 'error', id: status === 200 ? id : null, error, message });
    if (typeof id !== 'number' || Object.keys(others).length > 0)
      return refuse(400, 'invalid_argument', 'A command has an id, a method and params.');
    const fields = COMMAND_FIELDS[String(method)];
    if (fields === undefined) return refuse(200, 'unknown_command', `Unknown protocol command: ${method}`);
    const unknown = Object.keys(params as Json).filter((name) => !fields.split(' ').includes(name));
    if (unknown.length > 0) return refuse(200, 'invalid_argument', `Unknown parameters: ${unknown.join()}`);
    if (method === 'input.respond' && !thread.interrupted) return refuse(200, 'no_such_interrupt', 'Nothing waits.');
    const meta = { applied_through_seq: thread.log.length };
    const isKept = method === 'input.respond' && this.#keepsRuns;
    const run_id = `r-${isKept ? this.#runs : ++this.#runs}`;
    const input = method === 'run.start' ? (params as Json).input : 'go on';
    thread.interrupted = input === 'ask';
    this.#run(thread, run_id, input);
    json(200, { type: 'success', id, result: method === 'run.start' || isKept ? { run_id } : {}, meta });
  }

  #run(thread: KeptThread, run_id: string, input: unknown): unknown {
    const of = this.#tellsRuns ? { run_id } : {};
    const message = (data: Json): void => this.tell(thread, 'messages', data, of);
    this.#lifecycle(thread, 'running', run_id);
    if (input === 'wait') return undefined;
    if (input === 'fail') return this.#lifecycle(thread, 'failed', run_id, { error: 'no such city' });
    if (input === 'ask') {
      this.tell(thread, 'input.requested', { interrupt_id: 'i-1', payload: 'May I?' }, of);
      return this.#lifecycle(thread, 'interrupted', run_id);
    }
    this.#lifecycle(thread, 'completed', run_id, {}, ['tools:c-1']);
    message({ event: 'message-start', id: `m-${run_id}`, role: 'ai' });
    message({ event: 'content-block-delta', index: 0, delta: { type: 'text-delta', text: 'Hello' } });
    message({ event: 'message-finish' });
    const values = { messages: [{ type: 'ai', content: 'Hello' }] };
    thread.states.unshift(state(thread.states.length, values));
    this.tell(thread, 'values', values, of);
    return this.#lifecycle(thread, 'completed', run_id);
  }

  #lifecycle(
    thread: KeptThread,
    event: string,
    run_id: string,
    more: Json = {},
    namespace: readonly string[] = [],
  ): void {
    const of = this.#tellsRuns ? { run_id } : {};
    this.tell(thread, 'lifecycle', { event, ...more, ...of }, { ...of, namespace });
  }

  #stream(thread: KeptThread, filter: Json, response: ServerResponse): void {
    const reader: Reader = { response, filter };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    for (const event of thread.log) send(reader, event);
    thread.readers.add(reader);
    response.on('close', () => thread.readers.delete(reader));
  }
}

function send({ response, filter }: Reader, event: ProtocolEvent): void {
  const {
    channels,
    namespaces,
    depth = Number.POSITIVE_INFINITY,
    since = 0,
  } = filter as {
    channels: string[];
    namespaces?: string[][];
    depth?: number;
    since?: number;
  };
  const { namespace } = event.params;
  const isBelow = (place: readonly string[]): boolean =>
    place.every((step, at) => namespace[at] === step) && namespace.length - place.length <= depth;
  const channel = event.method === 'input.requested' ? 'input' : event.method;
  if (event.seq <= since || !channels.includes(channel)) return;
  if (namespaces !== undefined && !namespaces.some(isBelow)) return;
  response.write(`event: message\ndata: ${JSON.stringify(event)}\nid: ${event.event_id}\n\n`);
}

function state(step: number, values: Json): Json {
  const checkpoint = (at: number): Json => ({ thread_id: 't', checkpoint_id: `c-${at}`, checkpoint_ns: '' });
  const parent_checkpoint = step === 0 ? null : checkpoint(step - 1);
  return {
    values,
    next: [],
    tasks: [],
    checkpoint: checkpoint(step),
    metadata: { step },
    created_at: null,
    parent_checkpoint,
  };
}
