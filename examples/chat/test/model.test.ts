import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseModel } from '../server/agent/model.ts';
import { ChatServer, streamedText } from './support/chat-server.ts';

let service: ModelService;

/** Calls the first tool once, and then answers. */
const answer: Parameters<typeof ModelService.start>[0] = ({ tools, messages }, response) => {
  const tool = tools?.[0]?.function.name;
  if (tool === undefined || messages.some(({ role }) => role === 'tool')) {
    begin(response, ...words('Herons ', 'wait.'));
    finish(response);
  } else {
    begin(response, call(`call-${tool}`, tool, ARGUMENTS[tool] ?? ''));
    finish(response, 'tool_calls');
  }
};

beforeAll(async () => {
  service = await ModelService.start(answer);
});

afterAll(() => service[Symbol.asyncDispose]());

const ARGUMENTS: Readonly<Record<string, string>> = {
  task: '{"subagent_type":"researcher","description":"What is a heron?"}',
  search_docs: '{"query":"heron"}',
};

test('a model with the interface of OpenAI calls subagents and tools, and its text is streamed', async () => {
  const { model, name, isLocal } = chooseModel({ OPENAI_BASE_URL: service.url, OPENAI_MODEL: 'm' }, 0);
  expect([name, isLocal]).toEqual(['m', false]);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await chat.client.ask('t', 'What is a heron?');
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(streamedText(events)).toBe('Herons wait.');
  expect(service.asked.map(({ tools }) => tools?.map((tool) => tool.function.name))).toEqual([
    ['task', 'save_note'],
    ['search_docs'],
    ['search_docs'],
    ['task', 'save_note'],
  ]);
  expect(JSON.stringify(service.asked[2]?.messages.at(-1)?.content)).toContain('The heron is a tall bird.');
});

test('each tool call of a conversation has a result, also after a stopped run', async () => {
  const { model } = chooseModel({ OPENAI_BASE_URL: service.url, OPENAI_API_KEY: 'key' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const messages = [
    { type: 'human', content: 'What is a heron?' },
    { type: 'ai', content: '', tool_calls: [{ id: 'call-cut', name: 'task', args: {}, type: 'tool_call' }] },
  ];
  await chat.client.post('/threads/t/state', { values: { messages } });
  service.asked.length = 0;
  await chat.client.ask('t', 'And an otter?');
  await chat.client.ask('t', 'Thanks');
  for (const { messages: sent } of service.asked) {
    const calls = sent.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id }) => id);
    const answers = sent.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id);
    expect(answers.sort()).toEqual(calls.sort());
  }
  expect(service.asked[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'user']);
});

test('a provider that cannot be reached fails the run with a reason', async () => {
  const { model } = chooseModel({ OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await chat.client.ask('t', 'What is a heron?');
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error: expect.stringMatching(/connect/i) });
});

test('without a model in the environment, built-in rules answer', () => {
  expect(chooseModel({}, 0)).toMatchObject({ name: 'local rules', isLocal: true });
});

test('answers with the same id do not replace each other', async () => {
  await using alike = await ModelService.start((asked, response, request) => {
    response.setHeader('x-request-id', 'chatcmpl-7');
    answer(asked, response, request);
  });
  const { model } = chooseModel({ OPENAI_BASE_URL: alike.url }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  await chat.client.ask('t', 'What is a heron?');
  const events = await chat.client.ask('t', 'What is an otter?');
  const { values } = await chat.client.state('t');
  expect(values.messages.map(({ type }) => type)).toEqual(['human', 'ai', 'tool', 'ai', 'human', 'ai']);
  const streamed = events.flatMap(({ params: { namespace, data } }) =>
    data.event === 'message-start' && namespace.length === 1 ? [data.id] : [],
  );
  const said = values.messages.filter(({ type }) => type === 'ai').map(({ id }) => id);
  expect(new Set(said).size).toBe(3);
  expect(streamed).toEqual(expect.arrayContaining(said));
});

test('a rejected key and a closed connection are explained, and a key is never part of an event', async () => {
  const key = 'sk-not-to-be-shown';
  await using broken = await ModelService.start(({ messages }, response) => {
    const isFirst = messages.filter(({ role }) => role === 'user').length === 1;
    if (isFirst) response.writeHead(401).end(JSON.stringify({ error: { message: `Wrong key ${key}` } }));
    else if (String(messages.at(-1)?.content).includes('echo'))
      response.writeHead(400).end(JSON.stringify({ error: { message: `No ${key}` } }));
    else {
      begin(response, ...words('Herons '));
      response.end();
    }
  });
  const { model } = chooseModel({ OPENAI_BASE_URL: broken.url, OPENAI_API_KEY: key }, 0);
  await using chat = await ChatServer.start({ chatModel: model, secrets: [key] });
  const errors: unknown[] = [];
  for (const text of ['first', 'second', 'echo']) {
    const events = await chat.client.ask('t', text);
    errors.push(events.at(-1)?.params.data.error);
    expect(JSON.stringify([events, await chat.client.state('t')])).not.toContain(key);
  }
  expect(errors).toEqual([
    'The model provider rejected the API key (401). Check OPENAI_API_KEY.',
    'The model provider closed the connection before the answer was complete.',
    expect.stringContaining('No [Redacted]'),
  ]);
});

/** A request to the provider. */
interface Asked {
  readonly model: string;
  readonly messages: readonly SentMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

interface SentMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

type Answer = (asked: Asked, response: ServerResponse, request: IncomingMessage) => void;

/** A provider with the interface of OpenAI on a free port. */
class ModelService implements AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  readonly #server: Server;

  private constructor(server: Server, asked: Asked[]) {
    this.#server = server;
    this.asked = asked;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  static async start(answer: Answer): Promise<ModelService> {
    const asked: Asked[] = [];
    const server = createServer(async (request, response) => {
      const body = JSON.parse(await textOf(request)) as Asked;
      response.setHeader('x-request-id', asked.push(body));
      answer(body, response, request);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ModelService(server, asked);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Sends chunks of an answer. */
function begin(response: ServerResponse, ...deltas: readonly object[]): void {
  response.setHeader('content-type', 'text/event-stream');
  for (const delta of [{ role: 'assistant', content: '' }, ...deltas]) response.write(chunkOf(response, { delta }));
}

/** Sends the end of an answer. */
function finish(response: ServerResponse, reason = 'stop'): void {
  response.write(chunkOf(response, { delta: {}, finish_reason: reason }));
  response.end('data: [DONE]\n\n');
}

/** Chunks with text. */
function words(...pieces: readonly string[]): object[] {
  return pieces.map((content) => ({ content }));
}

/** A chunk with a tool call. */
function call(id: string, name: string, args: string, index = 0): object {
  return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] };
}

function chunkOf(response: ServerResponse, choice: object): string {
  const id = `answer-${response.getHeader('x-request-id')}`;
  const choices = [{ index: 0, ...choice }];
  return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}
