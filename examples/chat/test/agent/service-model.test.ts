import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chosenModel } from '../../server/agent/model.ts';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';

const KEY = 'sk-of-the-chat';

let server: Server;
let url: string;

/** A service that refuses whatever it is asked, by the model that is asked for, and repeats the key. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { model } = JSON.parse(text) as { model: string };
    const error = JSON.stringify({ error: { message: `No such thing for ${request.headers.authorization}` } });
    if (model === 'midway') {
      response.setHeader('content-type', 'text/event-stream');
      response.end(`data: ${error}\n\n`);
    } else response.writeHead(Number(model), { 'content-type': 'application/json' }).end(error);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
});

test.each([
  ['400', '400 No such thing for Bearer [Redacted]'],
  ['401', 'The service of the model refuses the key of this chat (401): OPENAI_API_KEY has to be one of its keys.'],
  ['404', '404 No such thing for Bearer [Redacted]'],
  ['midway', 'No such thing for Bearer [Redacted]'],
])('a service that fails (%s) and repeats the key shows it to nobody', async (name, message) => {
  const told: string[] = [];
  const callbacks = [{ handleLLMError: (error: Error) => void told.push(JSON.stringify(fieldsOf(error))) }];
  const { model } = chosenModel({ OPENAI_BASE_URL: url, OPENAI_API_KEY: KEY, OPENAI_MODEL: name }, 0);
  await using chat = await ChatServer.start({ chatModel: model, callbacks });
  const events = await untilEnd(chat, 't', await chat.say('t', 'What is a heron?'));
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error: message });
  const state = await (await fetch(`${chat.url}/api/threads/t/state`)).text();
  const history = await (await chat.post('/threads/t/history', {})).text();
  expect(state).toContain(message);
  expect(told).toHaveLength(1);
  expect([JSON.stringify(events), state, history, ...told, ...chat.lines].join('\n')).not.toContain(KEY);
});

/** Those too that are not shown by themselves. */
function fieldsOf(error: Error): unknown[] {
  return Object.getOwnPropertyNames(error).map((name) => String(JSON.stringify(error[name as keyof Error])));
}
