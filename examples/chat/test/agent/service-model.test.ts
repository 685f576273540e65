import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chosenModel } from '../../server/agent/model.ts';
import { ChatServer } from '../support/chat-server.ts';
import { eventsOf, type SeenEvent, streamedText, untilEnd } from '../support/events.ts';
import { begin, finish, ModelService, words } from '../support/model-service.ts';

const KEY = 'sk-of-the-chat';

let service: ModelService;

/** What it does is in the name of the model that it is asked for: refuse with a status, repeating the key, or answer in one of the ways below. */
beforeAll(async () => {
  service = await ModelService.start(({ model }, response, request) => {
    const error = { message: `No such thing for ${request.headers.authorization}` };
    const way = WAYS[model];
    if (way === undefined) refuse(response, Number(model), { error });
    else way(response, error);
  });
});

afterAll(() => service[Symbol.asyncDispose]());

const WAYS: Readonly<Record<string, (response: ServerResponse, error: object) => void>> = {
  midway: (response, error) => {
    response.setHeader('content-type', 'text/event-stream');
    response.end(`data: ${JSON.stringify({ error })}\n\n`);
  },
  'a page': (response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html>\n\n<title>Welcome</title>\n\n');
  },
  'a stream of nothing': (response) => {
    response.setHeader('content-type', 'text/event-stream').end('data: [DONE]\n\n');
  },
  'an answer at its limit': (response) => {
    begin(response, ...words('Herons ', 'wait'));
    finish(response, 'length');
  },
  'an answer without an end': (response) => {
    begin(response, ...words('Herons ', 'wait'));
    response.end();
  },
  'a role and no more': (response) => {
    begin(response);
    response.end();
  },
  'a role that waits': (response) => begin(response),
  'a connection that is cut': (response) => {
    begin(response, ...words('Herons ', 'wait'));
    response.write(': sent\n\n', () => response.socket?.resetAndDestroy());
  },
  'busy once': (response) => {
    if (service.asked.length === 1) return refuse(response, 429, {});
    begin(response, ...words('Herons wait.'));
    finish(response);
  },
  'busy for an hour': (response) => {
    response.setHeader('retry-after', '3600');
    refuse(response, 429, {});
  },
  'out of quota': (response) => refuse(response, 429, { error: { code: 'insufficient_quota', message: 'No more.' } }),
};

function refuse(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

test.each([
  ['400', '400 No such thing for Bearer [Redacted]'],
  ['401', 'The service of the model refuses the key of this chat (401): OPENAI_API_KEY has to be one of its keys.'],
  ['404', '404 No such thing for Bearer [Redacted]'],
  ['midway', 'No such thing for Bearer [Redacted]'],
])('a service that fails (%s) and repeats the key shows it to nobody', async (name, message) => {
  const told: string[] = [];
  const callbacks = [{ handleLLMError: (error: Error) => void told.push(JSON.stringify(fieldsOf(error))) }];
  const { model } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_API_KEY: KEY, OPENAI_MODEL: name }, 0);
  await using chat = await ChatServer.start({ chatModel: model, callbacks });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error: message });
  const state = await (await fetch(`${chat.url}/api/threads/t/state`)).text();
  const history = await (await chat.post('/threads/t/history', {})).text();
  expect(state).toContain(message);
  expect(told).toHaveLength(1);
  expect([JSON.stringify(events), state, history, ...told, ...chat.lines].join('\n')).not.toContain(KEY);
});

test.each([
  ['a page', '', 'The service of the model gave no answer; is OPENAI_BASE_URL right?'],
  ['a stream of nothing', '', 'The service of the model gave no answer; is OPENAI_BASE_URL right?'],
  ['a role and no more', '', 'The service of the model broke off in the middle of its answer.'],
  ['an answer without an end', 'Herons wait', 'The service of the model broke off in the middle of its answer.'],
  ['a connection that is cut', 'Herons wait', 'The service of the model broke off in the middle of its answer.'],
])('what is no whole answer fails, and what was said stays unfinished: %s', async (way, said, error) => {
  const events = await eventsWith(way);
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error });
  expect(streamedText(events, () => true)).toBe(said);
  expect(events.filter(({ params }) => params.data.event === 'message-finish')).toEqual([]);
});

test('an answer that is as long as it may be is one, and says so to those who read it and in the state', async () => {
  const { model } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_MODEL: 'an answer at its limit' }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data.event).toBe('completed');
  const finish = events.find(({ params }) => params.data.event === 'message-finish');
  expect(finish?.params.data).toMatchObject({ reason: 'length' });
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as { values: { messages: unknown[] } };
  expect(state.values.messages.at(-1)).toMatchObject({ response_metadata: { finish_reason: 'length' } });
});

test('an answer that was stopped is not told as one that its service broke off', async () => {
  const told: string[] = [];
  const callbacks = [{ handleLLMError: (error: Error) => void told.push(error.message) }];
  const { model } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_MODEL: 'a role that waits' }, 0);
  await using chat = await ChatServer.start({ chatModel: model, callbacks });
  const runId = await chat.say('t', 'What is a heron?');
  for await (const { params } of eventsOf(chat, 't')) if (params.data.event === 'message-start') break;
  await chat.post(`/threads/t/runs/${runId}/cancel`, {});
  const events = await untilEnd(chat, 't', runId);
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'interrupted', error: 'cancelled' });
  expect(told).toEqual([expect.stringMatching(/abort/i)]);
});

test.each([
  ['busy once', 'completed', 2],
  ['429', 'failed', 2],
  ['busy for an hour', 'failed', 1],
  ['out of quota', 'failed', 1],
  ['400', 'failed', 1],
])('a service is asked again where that may help: %s', async (way, outcome, times) => {
  service.asked.length = 0;
  const events = await eventsWith(way);
  expect(events.at(-1)?.params.data.event).toBe(outcome);
  expect(service.asked).toHaveLength(times);
});

/** What readers see of a run for which such a model is asked. */
async function eventsWith(way: string): Promise<SeenEvent[]> {
  const { model } = chosenModel({ OPENAI_BASE_URL: service.url, OPENAI_MODEL: way }, 0);
  await using chat = await ChatServer.start({ chatModel: model });
  return await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
}

/** Those too that are not shown by themselves. */
function fieldsOf(error: Error): unknown[] {
  return Object.getOwnPropertyNames(error).map((name) => String(JSON.stringify(error[name as keyof Error])));
}
