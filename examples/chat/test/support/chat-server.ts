import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { createParser } from 'eventsource-parser';
import { createSupervisor } from '../../server/agent/agent.ts';
import { Documents } from '../../server/agent/documents.ts';
import { type ChatOptions, createChat } from '../../server/chat.ts';
import { openStorage, type Storage } from '../../server/storage/storage.ts';
import { Script, ScriptedModel } from './scripted-model.ts';

/** Documents that the tests search. */
const DOCUMENTS = new Documents(
  [
    'The heron is a tall bird. It stands still in shallow water and waits for fish.',
    'The otter is a swimmer. It hunts at night, along rivers that are clean.',
  ].map((text, id) => ({ id, text, heading: text.split(' ')[1] ?? '', source: 'river.md' })),
);

export interface ChatServerOptions extends Partial<ChatOptions> {
  /** Model that answers. @default the scripted model */
  readonly chatModel?: BaseChatModel;
  readonly storage?: Storage;
}

export type ChatServer = Awaited<ReturnType<typeof startChatServer>>;

/** Starts a chat on a free port, with a model that follows `script`. */
export async function startChatServer({ chatModel, ...options }: ChatServerOptions = {}) {
  const storage = options.storage ?? (await openStorage({}));
  const script = new Script();
  const lines: string[] = [];
  const model = chatModel ?? new ScriptedModel(script);
  const agent = createSupervisor({ model, documents: DOCUMENTS, data: undefined, checkpointer: storage.checkpointer });
  const chat = await createChat({ agent, log: (line) => lines.push(line), ...options, storage });
  const server = serve({ fetch: chat.app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
  // By default, node:http closes an idle connection after 5 s, also while a busy client sends a request on it.
  server.keepAliveTimeout = 0;
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  /** Breaks all connections. */
  const cut = (): void => server.closeAllConnections();
  const close = async (): Promise<void> => {
    await chat.close();
    server.close();
    cut();
  };
  return { url, storage, script, lines, client: new ChatClient(`${url}/api`), cut, [Symbol.asyncDispose]: close };
}

export interface SeenEvent {
  readonly event_id: string;
  readonly seq: number;
  readonly method: string;
  readonly params: {
    readonly namespace: readonly string[];
    readonly run_id: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

export interface CommandResponse {
  readonly type: string;
  readonly error?: string;
  readonly message?: string;
  readonly result: { readonly run_id: string };
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface SeenState {
  readonly values: { readonly messages: readonly Readonly<Record<string, unknown>>[] };
  readonly next: readonly string[];
  readonly tasks: readonly { readonly interrupts: readonly { readonly id: string; readonly value: unknown }[] }[];
  readonly checkpoint: { readonly checkpoint_id: string };
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A client that sends the protocol over HTTP without a client library. */
export class ChatClient {
  readonly #url: string;
  readonly #fetch: typeof fetch;

  constructor(url: string, send: typeof fetch = fetch) {
    this.#url = url;
    this.#fetch = send;
  }

  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.#fetch(`${this.#url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  async get<Body>(path: string): Promise<Body> {
    return (await this.#fetch(`${this.#url}${path}`)).json() as Promise<Body>;
  }

  async command(thread: string, method: string, params: unknown): Promise<CommandResponse> {
    return (
      await this.post(`/threads/${thread}/commands`, { id: 1, method, params })
    ).json() as Promise<CommandResponse>;
  }

  start(thread: string, text: string, more: object = {}): Promise<CommandResponse> {
    return this.command(thread, 'run.start', { input: { messages: [{ role: 'user', content: text }] }, ...more });
  }

  /** Sends a message and returns the id of its run. */
  async say(thread: string, text: string, more: object = {}): Promise<string> {
    const response = await this.start(thread, text, more);
    if (response.type !== 'success') throw new Error(JSON.stringify(response));
    return response.result.run_id;
  }

  /** Sends a message and returns the events up to the end of its run. */
  async ask(thread: string, text: string, more: object = {}): Promise<SeenEvent[]> {
    return this.until(thread, isEndOf(await this.say(thread, text, more)));
  }

  async cancel(thread: string, run: string): Promise<number> {
    return (await this.post(`/threads/${thread}/runs/${run}/cancel`, {})).status;
  }

  state(thread: string): Promise<SeenState> {
    return this.get(`/threads/${thread}/state`);
  }

  /** Reads the whole history of a thread, page by page. */
  async history(thread: string, limit = 100): Promise<SeenState[]> {
    const states: SeenState[] = [];
    for (;;) {
      const before = states.at(-1)?.checkpoint.checkpoint_id;
      const page = (await (await this.post(`/threads/${thread}/history`, { limit, before })).json()) as SeenState[];
      states.push(...page);
      if (page.length < limit) return states;
    }
  }

  /** Reads a thread's events from the first one up to the first that `isLast` accepts. */
  async until(thread: string, isLast: (event: SeenEvent) => boolean, subscription: object = {}): Promise<SeenEvent[]> {
    const events: SeenEvent[] = [];
    for await (const event of this.events(thread, subscription)) {
      events.push(event);
      if (isLast(event)) return events;
    }
    throw new Error(`the stream ended after ${events.length} events`);
  }

  async *events(
    thread: string,
    subscription: object = {},
    headers: Record<string, string> = {},
  ): AsyncGenerator<SeenEvent> {
    const stop = new AbortController();
    const response = await this.#fetch(`${this.#url}/threads/${thread}/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(subscription),
      signal: stop.signal,
    });
    if (response.status !== 200 || response.body === null) throw new Error(`${response.status}`);
    const events: SeenEvent[] = [];
    const parser = createParser({ onEvent: ({ data }) => events.push(JSON.parse(data)) });
    try {
      for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
        parser.feed(text);
        yield* events.splice(0);
      }
    } finally {
      stop.abort();
    }
  }
}

/** Returns how a run ended if the event is its last one, otherwise undefined. */
export function endOf({ method, params }: SeenEvent): string | undefined {
  const isEnd = method === 'lifecycle' && params.namespace.length === 0 && params.data.event !== 'running';
  return isEnd ? String(params.data.event) : undefined;
}

export function isEndOf(run: string): (event: SeenEvent) => boolean {
  return (event) => event.params.run_id === run && endOf(event) !== undefined;
}

/** Returns the agent's answer, joined from the streamed text. */
export function streamedText(events: readonly SeenEvent[]): string {
  const deltas = events.filter(({ method, params }) => method === 'messages' && params.namespace.length <= 1);
  return deltas.map(({ params }) => (params.data.delta as { text?: string } | undefined)?.text ?? '').join('');
}
