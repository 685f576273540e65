import { randomUUID } from 'node:crypto';
import { AIMessage } from '@langchain/core/messages';
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gate } from '../../../test/support/gate.ts';
import { createChat } from '../server/chat.ts';
import { RedisSessions } from '../server/storage/redis-sessions.ts';
import { memoryStorage } from '../server/storage/storage.ts';
import { ChatClient, endOf, isEndOf, type SeenEvent } from './support/chat-client.ts';
import { type StoreServer, startRedis } from './support/server-process.ts';

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

/** A chat whose agent answers when it is told to. */
async function gatedChat(url: string) {
  const [asked, answered, logged] = [gate(), gate(), gate()];
  const storage = memoryStorage();
  const sessions = await RedisSessions.open(url, LIMITS);
  const agent = new StateGraph(MessagesAnnotation)
    .addNode('model', async () => {
      asked.open();
      await answered;
      return { messages: [new AIMessage('answer')] };
    })
    .addEdge(START, 'model')
    .compile({ checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage: { ...storage, sessions, close: () => sessions.close() },
    log: (line) => {
      if (line.includes('cannot be told of')) logged.open();
    },
  });
  return {
    client: new ChatClient('http://chat/api', async (input, init) => chat.app.request(input as string, init)),
    asked,
    answer: () => answered.open(),
    logged,
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
