import { randomUUID } from 'node:crypto';
import { statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChat } from '../server/chat.ts';
import { SqliteDatabase } from '../server/storage/sqlite.ts';
import { openStorage } from '../server/storage/storage.ts';
import { type ChatServer, isEndOf, startChatServer } from './support/chat-server.ts';
import { temporaryFolder } from './support/folder.ts';
import { PostgresServer } from './support/postgres.ts';

let chat: ChatServer;
beforeAll(async () => {
  chat = await startChatServer({ allowedHosts: ['Chat.example'] });
});
afterAll(() => chat[Symbol.asyncDispose]());

const HELLO = { id: 1, method: 'run.start', params: { input: { messages: [{ role: 'user', content: 'Hello' }] } } };

const NO_AGENT = {
  streamEvents: () => [],
  getState: async () => ({}),
  getStateHistory: () => [],
  updateState: async () => ({}),
} as never;

test.each([
  ['no JSON', '{', 422],
  ['no object', '[]', 422],
  ['no method', { id: 1 }, 422],
  ['a negative id', { ...HELLO, id: -1 }, 422],
])('a command with %s gets a list of mistakes and the error of the protocol', async (_, body, status) => {
  const response = await chat.client.post('/threads/t/commands', body);
  expect(response.status).toBe(status);
  const expected = { type: 'error', id: null, error: 'invalid_argument', message: expect.any(String) };
  expect(await response.json()).toMatchObject({ ...expected, detail: [{ loc: expect.arrayContaining(['body']) }] });
});

test.each([
  ['unknown_command', 'run.stop', {}],
  ['invalid_argument', 'run.start', { input: 'text' }],
  ['invalid_argument', 'run.start', { input: { messages: [{ role: 'nobody', content: 'x' }] } }],
  ['invalid_argument', 'run.start', { input: { messages: [{ type: 'remove', id: 'x' }] } }],
  ['not_supported', 'run.start', { ...HELLO.params, multitaskStrategy: 'rollback' }],
  ['no_such_checkpoint', 'run.start', { ...HELLO.params, checkpoint_id: 'none' }],
  ['no_such_thread', 'run.start', { ...HELLO.params, ifNotExists: 'reject' }],
  ['invalid_argument', 'input.respond', {}],
  ['not_supported', 'input.respond', { interrupt_id: 'x', response: 1, goto: 'y' }],
  ['no_such_interrupt', 'input.respond', { interrupt_id: 'x', response: 1 }],
])('%s: %s with %o is refused, and starts nothing', async (error, method, params) => {
  expect(await chat.client.command('refused', method, params)).toMatchObject({ type: 'error', id: 1, error });
  expect((await fetch(`${chat.url}/api/threads/refused/state`)).status).toBe(404);
});

test('a subscription to an unknown channel is refused by its name', async () => {
  const known = [
    'messages',
    'tools',
    'lifecycle',
    'checkpoints',
    'input',
    'values',
    'updates',
    'tasks',
    'custom',
    'custom:a',
  ];
  const response = await chat.client.post('/threads/t/stream', { channels: [...known, 'nope'] });
  const detail = [{ loc: ['body', 'channels', known.length], msg: 'Unknown channel: nope' }];
  expect([response.status, await response.json()]).toMatchObject([422, { error: 'invalid_argument', detail }]);
});

test.each<[input: unknown]>([
  [undefined],
  [null],
  [{}],
  [{ messages: [] }],
  [{ messages: [{ role: 'user', content: '' }] }],
  [{ messages: [{ role: 'user', content: ' \n' }] }],
  [{ messages: [{ role: 'user', content: [] }] }],
])('run.start with the input %j is refused in a thread without messages', async (input) => {
  const thread = randomUUID();
  const refused = {
    type: 'error',
    error: 'invalid_argument',
    message: expect.stringContaining('a message with content'),
  };
  expect(await chat.client.command(thread, 'run.start', { input })).toMatchObject(refused);
  expect((await fetch(`${chat.url}/api/threads/${thread}/state`)).status).toBe(404);
  await chat.client.post(`/threads/${thread}/state`, {});
  expect(await chat.client.command(thread, 'run.start', { input })).toMatchObject(refused);
  expect((await chat.client.state(thread)).values.messages).toEqual([]);
  await chat.client.ask(thread, 'Hello');
  expect(await chat.client.command(thread, 'run.start', { input })).toMatchObject({ type: 'success' });
});

test('run.start without an input repeats the run of a checkpoint that has an unread input', async () => {
  await chat.client.ask('repeated', 'Hello');
  const first = (await chat.client.history('repeated')).at(-1);
  expect([first?.next, first?.values.messages ?? []]).toEqual([['__start__'], []]);
  const checkpoint_id = first?.checkpoint.checkpoint_id;
  const { type, result } = await chat.client.command('repeated', 'run.start', { checkpoint_id });
  expect(type).toBe('success');
  const events = await chat.client.until('repeated', isEndOf(result.run_id));
  expect(events.at(-1)?.params.data.event).toBe('completed');
});

test('only JSON is accepted, so that a page of another origin cannot send commands', async () => {
  const send = (type: string | undefined, headers: Record<string, string>, body?: string, path = 'commands') =>
    fetch(`${chat.url}/api/threads/t/${path}`, {
      method: 'POST',
      headers: { ...headers, ...(type === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body }),
    });
  expect((await send('text/plain', {}, JSON.stringify(HELLO))).status).toBe(415);
  expect((await send(undefined, { origin: 'https://elsewhere.example' }, undefined, 'state')).status).toBe(415);
  expect((await send(undefined, {}, undefined, 'state')).status).toBe(200);
  expect((await send('application/json', {}, ' '.repeat(4 * 1024 * 1024 + 1))).status).toBe(413);
});

test.each([
  ['PUT', '/api/threads/t/state', 'GET, POST'],
  ['GET', '/api/threads/t/commands', 'POST'],
  ['OPTIONS', '/api/threads/t/stream', 'POST'],
  ['GET', '/api/threads/t/history', 'POST'],
  ['GET', '/api/threads/t/runs/r/cancel', 'POST'],
  ['PATCH', '/api/threads/t', 'DELETE'],
  ['POST', '/api/threads', 'GET', ' In React, use `useStream` of @langchain/react.'],
  ['DELETE', '/api/info', 'GET'],
])('%s %s gets 405 with the methods of the path', async (method, path, allow, hint = '') => {
  const response = await fetch(chat.url + path, { method });
  expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  const message = `${path} accepts ${allow}, not ${method}.${hint}`;
  expect(await response.json()).toEqual({ error: 'method_not_allowed', message, detail: message });
});

test.each([
  ['GET', '/api/threads/t/nothing'],
  ['POST', '/api/nothing'],
  ['GET', '/api/threads/t/runs/r'],
])('%s %s gets 404', async (method, path) => {
  expect((await fetch(chat.url + path, { method })).status).toBe(404);
});

test('ids, host names and queries are checked', async () => {
  const get = (path: string) => fetch(`${chat.url}/api${path}`);
  for (const id of ['a%20b', '%00', 'x'.repeat(129)]) expect((await get(`/threads/${id}/state`)).status).toBe(422);
  expect((await get(`/threads?limit=${'1'}01`)).status).toBe(422);
  expect(await (await get('/nothing')).json()).toMatchObject({ error: 'not_found' });
  const statusFor = (host: string) =>
    new Promise((resolve) =>
      request(`${chat.url}/api/info`, { headers: { host } }, (r) => resolve(r.resume().statusCode)).end(),
    );
  expect(await Promise.all(['chat.example', 'localhost', '[::1]:80', 'rebound.example'].map(statusFor))).toEqual([
    200, 200, 200, 403,
  ]);
  const storage = await openStorage({});
  await expect(createChat({ agent: NO_AGENT, storage, allowedHosts: ['https://x'] })).rejects.toThrow('without scheme');
  await storage.store.close();
});

test('an unexpected error is logged, and the client does not learn its reason', async () => {
  const storage = await openStorage({});
  await using broken = await startChatServer({ storage });
  storage.store.threads = () => Promise.reject(new Error('a secret reason'));
  const response = await fetch(`${broken.url}/api/threads`);
  expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining('secret')]);
  expect(broken.lines.join()).toContain('a secret reason');
});

test('requests that arrive while the chat closes, or that reach a closed store, get 503', async () => {
  for (const isClosing of [true, false]) {
    const storage = await openStorage({});
    const closed = await createChat({ agent: NO_AGENT, storage, log: () => {} });
    await (isClosing ? closed : storage.store).close();
    const response = await closed.app.fetch(new Request('http://localhost/api/threads'));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  }
});

test('while PostgreSQL is down, requests get 503, and runs and streams continue when it is back', async () => {
  const postgres = await PostgresServer.start();
  const storage = await openStorage({ postgres: await postgres.emptyDatabase() }, { leaseMs: 2_000, heartbeatMs: 200 });
  await using server = await startChatServer({ storage });
  server.script.set({ hold: 'supervisor', holdPieces: 1 });
  const run = await server.client.say('t', 'hello');
  await server.script.reached;
  await postgres.kill();
  const response = await fetch(`${server.url}/api/threads`);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  expect(await server.client.start('u', 'hello')).toMatchObject({ type: 'error', error: 'unavailable' });
  server.script.release();
  await postgres.start();
  await expect.poll(async () => (await fetch(`${server.url}/api/threads`)).status, { timeout: 20_000 }).toBe(200);
  const events = await server.client.until('t', isEndOf(run));
  expect(['completed', 'interrupted', 'failed']).toContain(events.at(-1)?.params.data.event);
  expect((await server.client.ask('t', 'hello')).at(-1)?.params.data.event).toBe('completed');
  await postgres.close();
});

test('a folder is private to its owner, and used by one process of this version', async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, 'chat.db');
  writeFileSync(file, '', { mode: 0o644 });
  const { store } = await openStorage({ data: folder.path });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(() => SqliteDatabase.open(folder.path)).toThrow('is open in another process');
  await store.close();
  const other = new DatabaseSync(file);
  other.exec('PRAGMA user_version = 9');
  other.close();
  expect(() => SqliteDatabase.open(folder.path)).toThrow('has version 9');
});

test('two hundred threads stream at once', async () => {
  const page = { channels: ['lifecycle', 'messages', 'checkpoints'] };
  const runs = Array.from({ length: 200 }, async (_, index) => {
    const run = await chat.client.say(`load-${index}`, 'hello');
    return (await chat.client.until(`load-${index}`, isEndOf(run), page)).at(-1)?.params.data.event;
  });
  expect(new Set(await Promise.all(runs))).toEqual(new Set(['completed']));
}, 180_000);

test('a chat that closes reports its runs as interrupted, in their order, and ends its streams', async () => {
  using folder = temporaryFolder();
  const storage = await openStorage({ data: folder.path });
  const closing = await startChatServer({ storage });
  closing.script.set({ hold: 'supervisor', holdPieces: 1 });
  const runs = [await closing.client.say('t', 'hello'), await closing.client.say('t', 'hello')];
  await closing.script.reached;
  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of closing.client.events('t', { channels: ['lifecycle'], namespaces: [[]], depth: 0 }))
      seen.push(`${event.params.run_id} ${event.params.data.event}`);
  })();
  await closing[Symbol.asyncDispose]();
  await reading.catch(() => {});
  await using later = await startChatServer({ storage: await openStorage({ data: folder.path }) });
  const events = await later.client.until('t', isEndOf(runs[1] ?? ''), {
    channels: ['lifecycle'],
    namespaces: [[]],
    depth: 0,
  });
  const course = events.map(({ params }) => `${params.run_id} ${params.data.event}`);
  expect(course).toEqual([`${runs[0]} running`, `${runs[0]} interrupted`, `${runs[1]} interrupted`]);
  expect(course.slice(0, seen.length)).toEqual(seen);
});
