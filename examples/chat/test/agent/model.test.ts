import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chosenModel } from '../../server/agent/model.ts';
import { ChatServer } from '../support/chat-server.ts';
import { streamedText, untilEnd } from '../support/events.ts';

interface Asked {
  readonly stream: boolean;
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly tool_calls?: unknown[] }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

const asked: Asked[] = [];
let server: Server;
let url: string;

/** A service with the interface of OpenAI: an agent that has tools calls the first of them once, then says something. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as Asked;
    asked.push(body);
    const tool = body.tools?.[0]?.function.name;
    const isAnswered = body.messages.some(({ role }) => role === 'tool');
    response.setHeader('content-type', 'text/event-stream');
    const deltas =
      tool === undefined || isAnswered
        ? ['Herons ', 'wait.'].map((content) => ({ content }))
        : [
            {
              tool_calls: [
                {
                  index: 0,
                  id: `call-${tool}`,
                  type: 'function',
                  function: { name: tool, arguments: ARGUMENTS[tool] },
                },
              ],
            },
          ];
    for (const delta of [{ role: 'assistant', content: '' }, ...deltas]) response.write(chunkOf({ delta }));
    response.write(chunkOf({ delta: {}, finish_reason: tool === undefined || isAnswered ? 'stop' : 'tool_calls' }));
    response.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const ARGUMENTS: Readonly<Record<string, string>> = {
  task: '{"subagent_type":"researcher","description":"What is a heron?"}',
  search_docs: '{"query":"heron"}',
};

function chunkOf(choice: object): string {
  const chunk = {
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, ...choice }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

test('a model behind the interface of OpenAI calls subagents and tools, and its words are streamed', async () => {
  const { model, name, isLocal } = chosenModel({ OPENAI_BASE_URL: url, OPENAI_MODEL: 'm' }, 0);
  expect([name, isLocal]).toEqual(['m', false]);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(streamedText(events, (namespace) => namespace.length === 1)).toBe('Herons wait.');
  expect(streamedText(events, ([first = '']) => first.startsWith('tools:'))).toBe('Herons wait.');
  // The supervisor, the researcher, the researcher with what was found, the supervisor with what the researcher says.
  expect(asked.map(({ tools }) => tools?.map((tool) => tool.function.name))).toEqual([
    ['task', 'save_note'],
    ['search_docs'],
    ['search_docs'],
    ['task', 'save_note'],
  ]);
  expect(JSON.stringify(asked[2]?.messages.at(-1)?.content)).toContain('The heron is a tall bird.');
});

test('a second turn, and one after a run that was stopped, are conversations that such a model takes', async () => {
  const { model } = chosenModel({ OPENAI_BASE_URL: url, OPENAI_API_KEY: 'key' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const call = { id: 'call-cut', name: 'task', args: {}, type: 'tool_call' };
  const messages = [
    { type: 'human', content: 'What is a heron?' },
    { type: 'ai', content: '', tool_calls: [call] },
  ];
  await chat.post('/threads/t/state', { values: { messages } });
  asked.length = 0;
  await untilEnd(chat, 't', await chat.say('t', 'And an otter?'));
  await untilEnd(chat, 't', await chat.say('t', 'Thanks'));
  for (const { messages: sent } of asked) {
    const calls = sent.flatMap(({ tool_calls = [] }) => tool_calls as { id: string }[]).map(({ id }) => id);
    const answers = sent
      .filter(({ role }) => role === 'tool')
      .map((message) => (message as { tool_call_id?: string }).tool_call_id);
    expect(answers.sort()).toEqual(calls.sort());
  }
  expect(asked[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'user']);
});

test('a service that cannot be reached fails the run, with a reason', async () => {
  const { model } = chosenModel({ OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error: expect.stringMatching(/connect/i) });
});

test('without a model in the environment rules answer, and say so', () => {
  expect(chosenModel({}, 0)).toMatchObject({ name: 'local rules', isLocal: true });
});
