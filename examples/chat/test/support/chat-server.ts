import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { createAgent } from '../../server/agent/agent.ts';
import { LocalModel } from '../../server/agent/local-model.ts';
import { type Chat, type ChatOptions, createChat } from '../../server/chat.ts';
import type { Paragraph } from '../../server/documents/paragraphs.ts';
import { Retriever } from '../../server/documents/retriever.ts';
import { memoryStorage, type Storage } from '../../server/storage/storage.ts';

/** What the documents of the tests say. */
const PARAGRAPHS: readonly Paragraph[] = [
  'The heron is a tall bird. It stands still in shallow water and waits for fish.',
  'The otter is a swimmer. It hunts at night, along rivers that are clean.',
].map((text, id) => ({ id, text, heading: text.split(' ')[1] ?? '', source: 'river.md' }));

export interface ChatServerOptions extends Partial<Omit<ChatOptions, 'storage'>> {
  readonly chatModel?: BaseChatModel;
  readonly storage?: Storage;
}

/** A chat on a free port. */
export class ChatServer implements AsyncDisposable {
  readonly url: string;
  readonly storage: Storage;
  /** Notes that were approved. */
  readonly notes: string[];
  /** What was logged. */
  readonly lines: string[];
  readonly #server: ServerType;
  readonly #chat: Chat;

  private constructor(parts: { chat: Chat; server: ServerType; storage: Storage; notes: string[]; lines: string[] }) {
    this.#chat = parts.chat;
    this.#server = parts.server;
    this.storage = parts.storage;
    this.notes = parts.notes;
    this.lines = parts.lines;
    this.url = `http://127.0.0.1:${(parts.server.address() as AddressInfo).port}`;
  }

  static async start({
    chatModel = new LocalModel(),
    storage = memoryStorage(),
    ...options
  }: ChatServerOptions = {}): Promise<ChatServer> {
    const [notes, lines]: [string[], string[]] = [[], []];
    const saveNote = async (text: string): Promise<string> => {
      notes.push(text);
      return `Saved: ${text}`;
    };
    const documents = new Retriever(PARAGRAPHS);
    const agent = createAgent({ model: chatModel, documents, saveNote, checkpointer: storage.checkpointer });
    const chat = await createChat({ agent, storage, log: (line) => lines.push(line), ...options });
    const server = serve({ fetch: chat.app.fetch, port: 0, hostname: '127.0.0.1' });
    await once(server, 'listening');
    return new ChatServer({ chat, server, storage, notes, lines });
  }

  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request('POST', path, body, headers);
  }

  request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    return fetch(`${this.url}/api${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  }

  async command(threadId: string, method: string, params: unknown): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.post(`/threads/${threadId}/commands`, { id: 1, method, params });
    return (await answer.json()) as Readonly<Record<string, unknown>>;
  }

  /** Says something in a thread, and gives the id of the run that answers. */
  async say(threadId: string, text: string, more: object = {}): Promise<string> {
    const answer = await this.command(threadId, 'run.start', {
      input: { messages: [{ role: 'user', content: text }] },
      ...more,
    });
    if (answer.type !== 'success') throw new Error(JSON.stringify(answer));
    return (answer.result as { run_id: string }).run_id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chat.close();
    this.#server.close();
    (this.#server as { closeAllConnections?(): void }).closeAllConnections?.();
  }
}
