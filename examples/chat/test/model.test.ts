import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseModel } from '../server/agent/model.ts';
import { startChatServer, streamedText } from './support/chat-server.ts';

let provider: Awaited<ReturnType<typeof startProvider>>;
beforeAll(async () => {
  provider = await startProvider(callThenAnswer);
});
afterAll(() => provider[Symbol.asyncDispose]());

const ARGUMENTS: Readonly<Record<string, string>> = {
  task: '{"subagent_type":"researcher","description":"What is a heron?"}',
  search_docs: '{"query":"heron"}',
};

test('a model with the interface of OpenAI calls subagents and tools, and its text is streamed', async () => {
  const { model, name, isLocal } = chooseModel({ OPENAI_BASE_URL: provider.url, OPENAI_MODEL: 'm' }, 0);
  expect([name, isLocal]).toEqual(['m', false]);
  await using chat = await startChatServer({ chatModel: model });
  const events = await chat.client.ask('t', 'What is a heron?');
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(streamedText(events)).toBe('Herons wait.');
  expect(provider.asked.map(({ tools }) => tools?.map((tool) => tool.function.name))).toEqual([
    ['task', 'save_note'],
    ['search_docs'],
    ['search_docs'],
    ['task', 'save_note'],
  ]);
  expect(JSON.stringify(provider.asked[2]?.messages.at(-1)?.content)).toContain('The heron is a tall bird.');
});

test('each tool call of a conversation has a result, also after a stopped run', async () => {
  const { model } = chooseModel({ OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'key' }, 0);
  await using chat = await startChatServer({ chatModel: model });
  const messages = [
    { type: 'human', content: 'What is a heron?' },
    { type: 'ai', content: '', tool_calls: [{ id: 'call-cut', name: 'task', args: {}, type: 'tool_call' }] },
  ];
  await chat.client.post('/threads/t/state', { values: { messages } });
  provider.asked.length = 0;
  await chat.client.ask('t', 'And an otter?');
  await chat.client.ask('t', 'Thanks');
  for (const { messages: sent } of provider.asked) {
    const calls = sent.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id }) => id);
    const answers = sent.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id);
    expect(answers.sort()).toEqual(calls.sort());
  }
  expect(provider.asked[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'user']);
});

test('answers with the same id do not replace each other', async () => {
  await using alike = await startProvider((asked, response) => callThenAnswer(asked, response, 'chatcmpl-7'));
  const { model } = chooseModel({ OPENAI_BASE_URL: alike.url }, 0);
  await using chat = await startChatServer({ chatModel: model });
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

test('a refusal is the text of the answer', async () => {
  await using refusing = await startProvider((_, response) =>
    send(response, [{ refusal: 'I ' }, { refusal: 'refuse.' }]),
  );
  const { model } = chooseModel({ OPENAI_BASE_URL: refusing.url }, 0);
  await using chat = await startChatServer({ chatModel: model });
  expect(streamedText(await chat.client.ask('t', 'Hello'))).toBe('I refuse.');
  const response_metadata = { finish_reason: 'content_filter' };
  expect((await chat.client.state('t')).values.messages[1]).toMatchObject({ response_metadata });
});

test('a rejected key and a closed connection are explained, and a key is never part of an event', async () => {
  const key = 'sk-not-to-be-shown';
  const other = 'sk-verysecretkey1234567890abcdef';
  await using broken = await startProvider(({ messages }, response) => {
    const refuse = (status: number, message: string): void =>
      void response.writeHead(status).end(JSON.stringify({ error: { message } }));
    if (messages.filter(({ role }) => role === 'user').length === 1) refuse(401, `Wrong key ${key}`);
    else if (String(messages.at(-1)?.content).includes('echo')) refuse(400, `No ${key}, no ${other}`);
    else send(response, [{ content: 'Herons ' }], { reason: null });
  });
  const { model } = chooseModel({ OPENAI_BASE_URL: broken.url, OPENAI_API_KEY: key }, 0);
  await using chat = await startChatServer({ chatModel: model, secrets: [key] });
  const errors: unknown[] = [];
  for (const text of ['first', 'second', 'echo']) {
    const events = await chat.client.ask('t', text);
    errors.push(events.at(-1)?.params.data.error);
    expect(JSON.stringify([events, await chat.client.state('t')])).not.toMatch(`${key}|${other}`);
  }
  expect(errors).toEqual([
    'The model provider rejected the API key (401). Check OPENAI_API_KEY.',
    'The model provider closed the connection before the answer was complete.',
    expect.stringContaining('No [Redacted], no [Redacted]'),
  ]);
});

/** A request that the provider has received. */
interface Asked {
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly { readonly id: string }[];
  }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/** Starts a provider with OpenAI's interface on a free port. */
async function startProvider(answer: (asked: Asked, response: ServerResponse) => void) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as Asked;
    asked.push(body);
    answer(body, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const close = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
  };
  return { url, asked, [Symbol.asyncDispose]: close };
}

/** Responds with a call of the first tool, and with an answer once the tool has returned. */
function callThenAnswer({ tools, messages }: Asked, response: ServerResponse, id?: string): void {
  const name = tools?.[0]?.function.name ?? '';
  if (name === '' || messages.some(({ role }) => role === 'tool')) {
    send(response, [{ content: 'Herons ' }, { content: 'wait.' }], { id });
  } else {
    const call = { index: 0, id: `call-${name}`, type: 'function', function: { name, arguments: ARGUMENTS[name] } };
    send(response, [{ tool_calls: [call] }], { id, reason: 'tool_calls' });
  }
}

/** Streams an answer. Without a finish reason, the stream breaks off in the middle. */
function send(
  response: ServerResponse,
  deltas: readonly object[],
  { id = randomUUID(), reason = 'stop' }: { readonly id?: string | undefined; readonly reason?: string | null } = {},
): void {
  response.setHeader('content-type', 'text/event-stream');
  const choices = [{ delta: { role: 'assistant', content: '' } }, ...deltas.map((delta) => ({ delta }))];
  for (const choice of reason === null ? choices : [...choices, { delta: {}, finish_reason: reason }]) {
    const chunk = { id, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  }
  response.end(reason === null ? undefined : 'data: [DONE]\n\n');
}
