import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { expect, test } from 'vitest';
import { createChat } from '../server/chat.ts';
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
