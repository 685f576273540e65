import { Annotation, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { describe, expect, test } from 'vitest';
import { type ChatOptions, createChat } from '../server/chat.ts';
import { memoryStorage } from '../server/storage/storage.ts';
import { ChatClient, endOf, type SeenEvent } from './support/chat-client.ts';
import { Deferred } from './support/deferred.ts';

test('a chat that is closed tells its readers how their runs have ended, and ends their streams', async () => {
  const asked = new Deferred();
  const storage = memoryStorage();
  const agent = new StateGraph(MessagesAnnotation)
    .addNode('model', (_state, { signal }) => {
      asked.resolve();
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    })
    .addEdge(START, 'model')
    .compile({ checkpointer: storage.checkpointer });
  const chat = await createChat({ agent, storage });
  const client = new ChatClient('http://localhost/api', async (input, init) => chat.app.request(input as string, init));
  await client.start('t', 'Hello');
  const seen: SeenEvent[] = [];
  const reading = client.events('t', (event) => {
    seen.push(event);
    return false;
  });
  await asked.promise;
  await Promise.all([chat.close(), expect(reading).rejects.toThrow('the stream has ended')]);
  expect(seen.map(endOf).filter(Boolean)).toEqual(['interrupted']);
});

describe('an agent that no chat can be had with is refused at once', () => {
  const storage = memoryStorage();
  const { checkpointer } = storage;
  const graph = new StateGraph(MessagesAnnotation).addNode('model', () => ({})).addEdge(START, 'model');
  const silent = new StateGraph(Annotation.Root({ topic: Annotation<string> }))
    .addNode('model', () => ({}))
    .addEdge(START, 'model');
  const none = 'The agent has no checkpointer: compile its graph with { checkpointer: storage.checkpointer }.';
  const cases: [string, ChatOptions['agent'], string][] = [
    ['without a checkpointer', graph.compile(), none],
    ['with that of the graph around it', graph.compile({ checkpointer: true }), none],
    ['with none by choice', graph.compile({ checkpointer: false }), none],
    [
      'with another checkpointer',
      graph.compile({ checkpointer: new MemorySaver() }),
      'The agent keeps its states in another checkpointer than that of the storage: compile its graph with { checkpointer: storage.checkpointer }.',
    ],
    [
      'without messages',
      silent.compile({ checkpointer }),
      'The state of the agent has no messages: give it those of MessagesAnnotation.',
    ],
  ];
  test.each(cases)('%s', async (_what, agent, message) => {
    await expect(createChat({ agent, storage })).rejects.toThrow(new Error(message));
  });

  test('and one that tells less of itself is taken', async () => {
    const agent = graph.compile({ checkpointer });
    const told: ChatOptions['agent'] = {
      streamEvents: (input, options) => agent.streamEvents(input as never, options as never) as never,
      getState: (config, options) => agent.getState(config, options),
      getStateHistory: (config, options) => agent.getStateHistory(config, options),
      updateState: (config, values, asNode) => agent.updateState(config, values, asNode as never),
    };
    const chat = await createChat({ agent: told, storage: memoryStorage() });
    expect((await chat.app.request('http://localhost/api/threads')).status).toBe(200);
    await chat.close();
  });
});
