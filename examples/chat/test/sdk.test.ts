import { randomUUID } from 'node:crypto';
import { Client, HttpAgentServerAdapter } from '@langchain/langgraph-sdk';
import { StreamController } from '@langchain/langgraph-sdk/stream';
import { expect, test } from 'vitest';
import { ChatServer } from './support/chat-server.ts';

/** The SDK as an application uses it. */
function sdkOf(chat: ChatServer, threadId: string = randomUUID()) {
  const apiUrl = `${chat.url}/api`;
  const client = new Client({ apiUrl, apiKey: null });
  const transport = new HttpAgentServerAdapter({
    apiUrl,
    threadId,
    paths: { commands: (id) => `/threads/${id}/commands`, stream: (id) => `/threads/${id}/stream` },
  });
  return { client, transport, threadId };
}

function controllerOf(chat: ChatServer, threadId?: string) {
  const sdk = sdkOf(chat, threadId);
  return { ...sdk, controller: new StreamController({ ...sdk, assistantId: '_' }) };
}

const said = (text: string) => ({ messages: [{ type: 'human', content: text }] });

test('a StreamController bootstraps a thread, runs, and shows messages and subagents', async () => {
  await using chat = await ChatServer.start();
  const { controller, threadId, client } = controllerOf(chat);
  await controller.hydrate(threadId);
  await controller.submit(said('Compare heron and otter'));

  const { messages, isLoading, error, interrupts } = controller.rootStore.getSnapshot();
  expect({ isLoading, error, interrupts }).toEqual({ isLoading: false, error: undefined, interrupts: [] });
  expect(messages.map(({ type }) => type)).toEqual(['human', 'ai', 'tool', 'tool', 'ai', 'tool', 'ai']);
  expect(messages.at(-1)?.text).toContain('The heron is a tall bird.');
  const subagents = [...controller.subagentStore.getSnapshot().values()];
  expect(subagents.map(({ name, status }) => [name, status])).toEqual([
    ['researcher', 'complete'],
    ['researcher', 'complete'],
    ['writer', 'complete'],
  ]);
  expect(subagents.slice(0, 2).map(({ taskInput }) => taskInput)).toEqual(['heron', 'otter']);
  expect((await client.threads.getState(threadId)).next).toEqual([]);
  await controller.dispose();
});

test('a StreamController answers an interrupt, and the run continues', async () => {
  await using chat = await ChatServer.start();
  const { controller, threadId } = controllerOf(chat);
  await controller.hydrate(threadId);
  await controller.submit(said('Save a note: buy milk'));
  const [interrupt] = controller.rootStore.getSnapshot().interrupts;
  expect(interrupt?.value).toMatchObject({ actionRequests: [{ name: 'save_note', args: { text: 'buy milk' } }] });

  const settled = new Promise<void>((resolve) => {
    const off = controller.rootStore.subscribe(() => {
      const { messages, isLoading } = controller.rootStore.getSnapshot();
      if (isLoading || messages.at(-1)?.text !== 'Saved until the chat ends: buy milk') return;
      off();
      resolve();
    });
  });
  await controller.respond({ decisions: [{ type: 'approve' }] });
  await settled;
  expect(controller.rootStore.getSnapshot().interrupts).toEqual([]);
  await controller.dispose();
});

test('a reader that joins later receives the same events', async () => {
  await using chat = await ChatServer.start();
  const { client, transport, threadId } = sdkOf(chat);
  const thread = client.threads.stream(threadId, { assistantId: '_', transport });
  const subscription = await thread.subscribe({ channels: ['messages', 'tools', 'lifecycle'] });
  await thread.run.start({ input: said('What is a heron?') });
  const first = await readTurn(subscription);
  await thread.close();

  const later = sdkOf(chat, threadId);
  const again = later.client.threads.stream(threadId, { assistantId: '_', transport: later.transport });
  const second = await readTurn(await again.subscribe({ channels: ['messages', 'tools', 'lifecycle'] }));
  await again.close();
  expect(second).toEqual(first);
  expect(new Set(first).size).toBe(first.length);
});

test('a stream that breaks is continued, and no event is repeated', async () => {
  await using chat = await ChatServer.start();
  const { client, threadId } = sdkOf(chat);
  const isCut = { done: false };
  // The first response breaks in the middle.
  const transport = new HttpAgentServerAdapter({
    apiUrl: `${chat.url}/api`,
    threadId,
    paths: { commands: (id) => `/threads/${id}/commands`, stream: (id) => `/threads/${id}/stream` },
    fetch: async (input, init) => {
      const answer = await fetch(input as string, init);
      if (!String(input).endsWith('/stream') || isCut.done || answer.body === null) return answer;
      isCut.done = true;
      let bytes = 0;
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.length;
          if (bytes > 2_000) controller.error(new Error('cut'));
          else controller.enqueue(chunk);
        },
      });
      return new Response(answer.body.pipeThrough(cut), answer);
    },
  });
  const thread = client.threads.stream(threadId, { assistantId: '_', transport });
  const subscription = await thread.subscribe({ channels: ['messages', 'lifecycle'] });
  await thread.run.start({ input: said('What is an otter?') });
  const ids = await readTurn(subscription);
  expect(isCut.done).toBe(true);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThan(20);
  await thread.close();
});

test('the history is read in pages, and a thread is deleted', async () => {
  await using chat = await ChatServer.start();
  const { controller, threadId, client } = controllerOf(chat);
  await controller.hydrate(threadId);
  await controller.submit(said('Compare heron and otter'));
  await controller.dispose();

  const all = await client.threads.getHistory(threadId, { limit: 100 });
  const first = await client.threads.getHistory(threadId, { limit: 3 });
  const cursor = first.at(-1)?.checkpoint;
  const second = await client.threads.getHistory(threadId, { limit: 100, before: { configurable: { ...cursor } } });
  expect([...first, ...second].map(({ checkpoint }) => checkpoint?.checkpoint_id)).toEqual(
    all.map(({ checkpoint }) => checkpoint?.checkpoint_id),
  );
  expect(all.length).toBeGreaterThan(6);

  const listed = await (await fetch(`${chat.url}/api/threads`)).json();
  expect(listed).toEqual([{ id: threadId, title: 'Compare heron and otter', updatedAt: expect.any(String) }]);
  await client.threads.delete(threadId);
  expect(await (await fetch(`${chat.url}/api/threads`)).json()).toEqual([]);
  expect((await fetch(`${chat.url}/api/threads/${threadId}/state`)).status).toBe(404);
});

/** Ids of the events up to the end of the run. */
async function readTurn(events: AsyncIterable<unknown>): Promise<string[]> {
  const ids: string[] = [];
  for await (const event of events as AsyncIterable<{
    event_id: string;
    method: string;
    params: { namespace: string[]; data: { event: string } };
  }>) {
    ids.push(event.event_id);
    const { namespace, data } = event.params;
    if (event.method === 'lifecycle' && namespace.length === 0 && data.event !== 'running') break;
  }
  return ids;
}
