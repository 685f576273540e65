import { randomUUID } from 'node:crypto';
import { Client, HttpAgentServerAdapter } from '@langchain/langgraph-sdk';
import { StreamController } from '@langchain/langgraph-sdk/stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ChatServer, startChatServer } from './support/chat-server.ts';

let chat: ChatServer;
beforeAll(async () => {
  chat = await startChatServer();
});
afterAll(() => chat[Symbol.asyncDispose]());

/** Returns the SDK as an application would use it, with a new thread. */
function sdkOf() {
  const threadId = randomUUID();
  const apiUrl = `${chat.url}/api`;
  const paths = {
    commands: (id: string) => `/threads/${id}/commands`,
    stream: (id: string) => `/threads/${id}/stream`,
  };
  const transport = new HttpAgentServerAdapter({ apiUrl, threadId, paths });
  return { client: new Client({ apiUrl, apiKey: null }), transport, threadId, assistantId: '_' };
}

const said = (text: string) => ({ messages: [{ type: 'human', content: text }] });

test('a StreamController creates a thread, and shows messages, subagents, the history and the deletion', async () => {
  const { client, threadId, ...sdk } = sdkOf();
  const controller = new StreamController({ client, threadId, ...sdk });
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

  const idsOf = (states: { checkpoint?: { checkpoint_id?: string | null } | null }[]) =>
    states.map(({ checkpoint }) => checkpoint?.checkpoint_id);
  const history = await client.threads.getHistory(threadId, { limit: 100 });
  const first = await client.threads.getHistory(threadId, { limit: 3 });
  const before = { configurable: { ...first.at(-1)?.checkpoint } };
  const second = await client.threads.getHistory(threadId, { limit: 100, before });
  expect(idsOf([...first, ...second])).toEqual(idsOf(history));
  await client.threads.delete(threadId);
  expect((await fetch(`${chat.url}/api/threads/${threadId}/state`)).status).toBe(404);
});

test('a StreamController answers an interrupt, and the run continues', async () => {
  const { threadId, ...sdk } = sdkOf();
  const controller = new StreamController({ threadId, ...sdk });
  await controller.hydrate(threadId);
  await controller.submit(said('Save a note: buy milk'));
  const [interrupt] = controller.rootStore.getSnapshot().interrupts;
  expect(interrupt?.value).toMatchObject({ actionRequests: [{ name: 'save_note', args: { text: 'buy milk' } }] });
  await controller.respond({ decisions: [{ type: 'approve' }] });
  const lastText = () => controller.rootStore.getSnapshot().messages.at(-1)?.text;
  await expect.poll(lastText).toBe('Saved until the chat ends: buy milk');
  expect(controller.rootStore.getSnapshot().interrupts).toEqual([]);
  await controller.dispose();
});
