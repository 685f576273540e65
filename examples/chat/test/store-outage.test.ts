import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { AIMessage } from '@langchain/core/messages';
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { createClient } from '@redis/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createChat } from '../server/chat.ts';
import { RedisSessions } from '../server/storage/redis-sessions.ts';
import { chooseStorage, memoryStorage } from '../server/storage/storage.ts';
import { ChatClient, endOf, isEndOf, type SeenEvent } from './support/chat-client.ts';
import { ChatServer } from './support/chat-server.ts';
import { Deferred } from './support/deferred.ts';
import { untilEnd } from './support/events.ts';
import { type StoreServer, startPostgres, startRedis } from './support/server-process.ts';

const LIMITS = { leaseMs: 20_000, renewMs: 50 };

describe('a chat whose store is away', () => {
  let redis: StoreServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());

  it('tells how a run has ended as soon as the store is back, and goes on', async () => {
    const chat = await gatedChat(redis.url);
    const thread = randomUUID();
    const run = (await chat.client.start(thread, 'one')).result.run_id;
    await chat.asked;
    await redis.kill();
    chat.answer();
    await chat.logged;
    await redis.start();
    const events = await untilThere(() => chat.client.events(thread, isEndOf(run)));
    expect(events.map(endOf).filter(Boolean)).toEqual(['failed']);
    const next = (await chat.client.start(thread, 'two')).result.run_id;
    expect((await chat.client.events(thread, isEndOf(next))).map(endOf).filter(Boolean)).toEqual([
      'failed',
      'completed',
    ]);
    await chat.close();
  });

  it('goes on with a run whose events the store has lost, and tells how it has ended', async () => {
    const chat = await gatedChat(redis.url);
    const thread = randomUUID();
    const run = (await chat.client.start(thread, 'one')).result.run_id;
    await chat.asked;
    const client = await createClient({ url: redis.url }).connect();
    await client.flushAll();
    client.destroy();
    chat.answer();
    const events = await chat.client.events(thread, isEndOf(run));
    expect(events.map(endOf).filter(Boolean)).toEqual(['completed']);
    await chat.close();
  });

  it('answers commands with an error, and closes', async () => {
    const chat = await gatedChat(redis.url);
    const thread = randomUUID();
    await chat.client.start(thread, 'one');
    await chat.asked;
    await redis.kill();
    expect(await chat.client.start(randomUUID(), 'two')).toMatchObject({ type: 'error' });
    chat.answer();
    await chat.logged;
    await chat.close();
    await redis.start();
  });
});

describe('a chat whose PostgreSQL has vanished', () => {
  let postgres: StoreServer;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres?.close());

  it('closes', async () => {
    const [near, far]: [Socket[], Socket[]] = [[], []];
    const way = createServer((socket) => {
      const server = connect(Number(new URL(postgres.url).port), '127.0.0.1');
      near.push(socket);
      far.push(server);
      socket.pipe(server);
      server.pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(way, 'listening');
    const url = new URL(postgres.url);
    url.port = String((way.address() as AddressInfo).port);
    const storage = await chooseStorage({ postgres: url.href });
    await storage.threads.list(1, 0);
    // What is sent from now on arrives nowhere, and nobody says so.
    for (const socket of near) socket.unpipe();
    await storage.close();
    for (const socket of [...near, ...far]) socket.destroy();
    way.close();
  });
});

describe.each(['PostgreSQL', 'Redis'])('requests to a chat whose %s is away', (name) => {
  let [postgres, redis]: StoreServer[] = [];
  beforeAll(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  });
  afterAll(() => Promise.all([postgres?.close(), redis?.close()]));

  it('are answered with 503 and a word, and logged in a line, until it is back', async () => {
    const away = name === 'Redis' ? redis : postgres;
    const storage = await chooseStorage({
      postgres: postgres?.url,
      redis: name === 'Redis' ? redis?.url : undefined,
    });
    await using chat = await ChatServer.start({ storage });
    const run = await chat.say('t', 'hello');
    await untilEnd(chat, 't', run);
    await away?.kill();
    const command = { id: 7, method: 'run.start', params: { input: { messages: 'hello' } } };
    const requests: [string, string, object?][] = [
      ['POST', '/threads/t/commands', command],
      ['POST', '/threads/t/state', { values: { messages: [] } }],
      ['POST', `/threads/t/runs/${run}/cancel`, {}],
      ['DELETE', '/threads/t'],
      // What is asked of the checkpoints alone.
      ...(name === 'PostgreSQL'
        ? ([
            ['GET', '/threads/t/state'],
            ['POST', '/threads/t/history', {}],
            ['GET', '/threads'],
            ['POST', '/threads/t/commands', { id: 7, method: 'input.respond', params: { interrupt_id: 'x' } }],
          ] satisfies [string, string, object?][])
        : []),
    ];
    const lines = chat.lines.length;
    for (const [method, path, body] of requests) {
      const answer = await chat.request(method, path, body);
      expect([path, answer.status, answer.headers.get('retry-after'), await answer.json()]).toEqual([
        path,
        503,
        '5',
        expect.objectContaining({
          error: 'unavailable',
          message: 'The store does not answer; try again.',
          ...(path.endsWith('commands') && { type: 'error', id: 7 }),
        }),
      ]);
    }
    const logged = chat.lines
      .slice(lines)
      .filter((line) => line.includes('thread') && !line.includes('runs that were'));
    expect(logged).toEqual(requests.map(() => expect.stringMatching(/^.+: the store does not answer: .+$/)));
    await away?.start();
    await expect
      .poll(async () => (await chat.request('POST', '/threads/t/commands', command)).status, { timeout: 30_000 })
      .toBe(200);
  });
});

/** A chat whose agent answers when it is told to. */
async function gatedChat(url: string) {
  const [asked, answered, logged] = [new Deferred(), new Deferred(), new Deferred()];
  const storage = memoryStorage();
  const sessions = await RedisSessions.open(url, LIMITS);
  const agent = new StateGraph(MessagesAnnotation)
    .addNode('model', async () => {
      asked.resolve();
      await answered.promise;
      return { messages: [new AIMessage('answer')] };
    })
    .addEdge(START, 'model')
    .compile({ checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage: { ...storage, sessions, close: () => sessions.close() },
    log: (line) => {
      if (line.includes('cannot be told of')) logged.resolve();
    },
  });
  return {
    client: new ChatClient('http://localhost/api', async (input, init) => chat.app.request(input as string, init)),
    asked: asked.promise,
    answer: () => answered.resolve(),
    logged: logged.promise,
    close: () => chat.close(),
  };
}

/** The connection is made anew by itself, some time after the store is there. */
async function untilThere(work: () => Promise<SeenEvent[]>): Promise<SeenEvent[]> {
  for (;;) {
    try {
      return await work();
    } catch {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
