import { afterAll, beforeAll, expect, test } from 'vitest';
import { chosenModel } from '../../server/agent/model.ts';
import { ChatServer } from '../support/chat-server.ts';
import { streamedText, untilEnd } from '../support/events.ts';
import { begin, call, finish, ModelService, words } from '../support/model-service.ts';

let service: ModelService;

/** An agent that has tools calls the first of them once, then says something. */
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

test('a model behind the interface of OpenAI calls subagents and tools, and its words are streamed', async () => {
  const { model, name, isLocal } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_MODEL: 'm' }, 0);
  expect([name, isLocal]).toEqual(['m', false]);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(streamedText(events, (namespace) => namespace.length === 1)).toBe('Herons wait.');
  expect(streamedText(events, ([first = '']) => first.startsWith('tools:'))).toBe('Herons wait.');
  // The supervisor, the researcher, the researcher with what was found, the supervisor with what the researcher says.
  expect(service.asked.map(({ tools }) => tools?.map((tool) => tool.function.name))).toEqual([
    ['task', 'save_note'],
    ['search_docs'],
    ['search_docs'],
    ['task', 'save_note'],
  ]);
  expect(JSON.stringify(service.asked[2]?.messages.at(-1)?.content)).toContain('The heron is a tall bird.');
});

test('a second turn, and one after a run that was stopped, are conversations that such a model takes', async () => {
  const { model } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_API_KEY: 'key' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const messages = [
    { type: 'human', content: 'What is a heron?' },
    { type: 'ai', content: '', tool_calls: [{ id: 'call-cut', name: 'task', args: {}, type: 'tool_call' }] },
  ];
  await chat.post('/threads/t/state', { values: { messages } });
  service.asked.length = 0;
  await untilEnd(chat, 't', await chat.say('t', 'And an otter?'));
  await untilEnd(chat, 't', await chat.say('t', 'Thanks'));
  for (const { messages: sent } of service.asked) {
    const calls = sent.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id }) => id);
    const answers = sent.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id);
    expect(answers.sort()).toEqual(calls.sort());
  }
  expect(service.asked[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'user']);
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

test('answers of a service that gives all of them the same id stand beside each other', async () => {
  await using alike = await ModelService.start((asked, response, request) => {
    response.setHeader('x-request-id', 'chatcmpl-7');
    answer(asked, response, request);
  });
  const { model } = chosenModel({ OPENAI_BASE_URL: alike.url }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const runs = [await chat.say('t', 'What is a heron?')];
  await untilEnd(chat, 't', runs[0] ?? '');
  runs.push(await chat.say('t', 'What is an otter?'));
  const events = await untilEnd(chat, 't', runs[1] ?? '');
  const { values } = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as {
    values: { messages: { id: string; type: string }[] };
  };
  // Of the first turn a call, its result and an answer; of the second the answer.
  expect(values.messages.map(({ type }) => type)).toEqual(['human', 'ai', 'tool', 'ai', 'human', 'ai']);
  const streamed = events.flatMap(({ params: { namespace, data } }) =>
    data.event === 'message-start' && namespace.length === 1 ? [data.id] : [],
  );
  const said = values.messages.filter(({ type }) => type === 'ai').map(({ id }) => id);
  expect(new Set(said).size).toBe(3);
  expect(streamed).toEqual(expect.arrayContaining(said));
});
