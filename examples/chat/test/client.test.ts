import { AgentThreads, type ThreadEvent } from 'runspan/clients';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ChatServer, startChatServer } from './support/chat-server.ts';

// The browser tests cover the client too, because the page uses it: they reconnect, list threads, and page through
// histories.

const ask = (content: string) => ({ input: { messages: [{ role: 'user', content }] } });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

let chat: ChatServer;
let threads: AgentThreads;
beforeAll(async () => {
  chat = await startChatServer();
  threads = new AgentThreads({ url: `${chat.url}/api` });
});
afterAll(async () => {
  await threads.close();
  await chat[Symbol.asyncDispose]();
});

test('the client creates a thread, answers a request, and reads the run that continues', async () => {
  const id = threads.newThreadId();
  await expect(threads.state(id, { bootstrap: false })).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  expect(await threads.state(id)).toMatchObject({ values: { messages: [] } });
  const events = await all(await threads.run(id, ask('Save a note: buy milk')));
  expect(events.map(({ method }) => method)).not.toContain('malformed');
  const request = events.find(({ method }) => method === 'input.requested') as ThreadEvent<unknown>;
  const { interrupt_id } = request.params.data as { interrupt_id: string };
  const answer = { interrupt_id, response: { decisions: [{ type: 'approve' }] } };
  const [first] = await all(await threads.resume(id, answer));
  expect(first).toMatchObject({ method: 'lifecycle', params: { namespace: [], data: { event: 'running' } } });
  expect(JSON.stringify(await threads.state(id))).toContain('Saved until the chat ends: buy milk');
  await expect(threads.respond(id, answer)).rejects.toMatchObject({ reason: 'no_such_interrupt' });

  const started = await threads.start(id, ask('What is an otter?'));
  const [next] = await all(await threads.events(id, { run: started }));
  expect(next?.seq).toBe((started.applied_through_seq ?? 0) + 1);
});

test('a failed run rejects, and a cancelled run ends', async () => {
  const id = threads.newThreadId();
  chat.script.set({ fail: 1 });
  const reading = threads.run(id, ask('Hello')).then(all);
  await expect(reading).rejects.toMatchObject({ code: 'RUNSPAN_RUN_FAILED', detail: 'The model is on strike.' });
  chat.script.set({ hold: 'supervisor', holdPieces: 1 });
  const run = await threads.start(id, ask('Hello'));
  await chat.script.reached;
  await threads.cancel(id, run.run_id);
  const events = await all(await threads.events(id, { run, channels: ['lifecycle'] }));
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'interrupted' });
  await expect(threads.cancel(id, run.run_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
});
