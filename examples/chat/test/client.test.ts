import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { AgentThreads, MessageAssembler, type ThreadEvent } from 'runspan/clients';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChatServer } from './support/chat-server.ts';

const ask = (content: string) => ({ input: { messages: [{ role: 'user', content }] } });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

let chat: ChatServer;
let threads: AgentThreads;
beforeAll(async () => {
  chat = await ChatServer.start();
  threads = new AgentThreads({ url: `${chat.url}/api` });
});
afterAll(async () => {
  await threads.close();
  await chat[Symbol.asyncDispose]();
});

test('the client creates a thread, and reads a run to its end with its subagents', async () => {
  const id = threads.newThreadId();
  await expect(threads.state(id, { bootstrap: false })).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
  expect(await threads.state(id)).toMatchObject({ values: { messages: [] } });

  const assembler = new MessageAssembler();
  const agents: string[] = [];
  for await (const event of await threads.run(id, ask('Compare heron and otter'))) {
    expect(event.method).not.toBe('malformed');
    assembler.take(event);
    if (event.method !== 'lifecycle') continue;
    const {
      cause,
      graph_name,
      event: status,
    } = event.params.data as { cause?: object; graph_name: string; event: string };
    if (cause !== undefined || event.params.namespace.length === 0) agents.push(`${graph_name} ${status}`);
  }
  expect(agents).toEqual([
    'supervisor running',
    'researcher started',
    'researcher started',
    'writer started',
    'supervisor completed',
  ]);
  const texts = assembler.messages.filter(({ status }) => status === 'complete').map(({ text }) => text);
  expect(texts.filter((text) => text.startsWith('On "heron": The heron is a tall bird.'))).not.toEqual([]);
  expect((await threads.state(id)).values).toMatchObject({ messages: { length: 7 } });
});

test('the client answers an interrupt, and reads the run that continues', async () => {
  const id = threads.newThreadId();
  let request: { interrupt_id: string; payload: unknown } | undefined;
  for await (const event of await threads.run(id, ask('Save a note: buy milk'))) {
    if (event.method === 'input.requested') request = event.params.data as typeof request;
  }
  expect(request?.payload).toMatchObject({ actionRequests: [{ name: 'save_note', args: { text: 'buy milk' } }] });
  const answer = { interrupt_id: request?.interrupt_id ?? '', response: { decisions: [{ type: 'approve' }] } };
  const events: ThreadEvent[] = [];
  for await (const event of await threads.resume(id, answer)) events.push(event);
  expect(events[0]).toMatchObject({ method: 'lifecycle', params: { namespace: [], data: { event: 'running' } } });
  expect(JSON.stringify(await threads.state(id))).toContain('Saved until the chat ends: buy milk');
  await expect(threads.respond(id, answer)).rejects.toMatchObject({
    code: 'RUNSPAN_COMMAND_REFUSED',
    reason: 'no_such_interrupt',
  });
});

test('the events of a second run begin with its first event', async () => {
  const id = threads.newThreadId();
  for await (const _ of await threads.run(id, ask('What is a heron?')));
  const started = await threads.start(id, ask('What is an otter?'));
  const [first] = await all(await threads.events(id, { run: started }));
  expect(first?.seq).toBe((started.applied_through_seq ?? 0) + 1);
});

test('a failed run rejects, and a cancelled run ends', async () => {
  await using failing = await ChatServer.start();
  failing.script.set({ fail: 1 });
  await using client = new AgentThreads({ url: `${failing.url}/api` });
  const read = async () => {
    for await (const _ of await client.run(client.newThreadId(), ask('Hello')));
  };
  await expect(read()).rejects.toMatchObject({ code: 'RUNSPAN_RUN_FAILED', detail: 'The model is on strike.' });

  await using held = await ChatServer.start();
  held.script.set({ hold: 'supervisor', holdPieces: 1 });
  await using other = new AgentThreads({ url: `${held.url}/api` });
  const id = other.newThreadId();
  const run = await other.start(id, ask('Hello'));
  await held.script.reached;
  await other.cancel(id, run.run_id);
  const events = await all(await other.events(id, { run, channels: ['lifecycle'] }));
  expect(events.at(-1)?.params.data).toMatchObject({ event: 'interrupted' });
  await expect(other.cancel(id, run.run_id)).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
});

test('a connection that breaks is made again, and no event is repeated', async () => {
  await using held = await ChatServer.start();
  held.script.set({ hold: 'supervisor', holdPieces: 1 });
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    sockets.add(socket);
    const upstream = connect(Number(new URL(held.url).port), '127.0.0.1');
    socket.pipe(upstream).pipe(socket);
    for (const each of [socket, upstream]) each.on('error', () => undefined);
    socket.on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  await using client = new AgentThreads({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api` });
  const id = client.newThreadId();
  const events = await client.events(id);
  await client.start(id, ask('What is a heron?'));
  await held.script.reached;
  const seen: ThreadEvent[] = [];
  for await (const event of events) {
    seen.push(event);
    if (seen.length === 5) for (const socket of sockets) socket.destroy();
    if (seen.length === 6) held.script.release();
    const { data, namespace } = event.params as { data: { event?: string }; namespace: readonly string[] };
    if (event.method === 'lifecycle' && namespace.length === 0 && data.event === 'completed') break;
  }
  const stored = await held.storage.store.read(id, 0, 10_000);
  expect(seen.map(({ seq }) => seq)).toEqual(stored.events.map(({ seq }) => seq));
  proxy.close();
});

test('threads are listed, read in pages, and deleted', async () => {
  const id = threads.newThreadId();
  for await (const _ of await threads.run(id, ask('Compare heron and otter')));
  expect((await threads.list())[0]).toEqual({ id, title: 'Compare heron and otter', updatedAt: expect.any(String) });
  expect(await threads.list({ limit: 1, offset: 0 })).toHaveLength(1);
  const page = await threads.history(id, { limit: 100 });
  const paged = await all(threads.history(id, { limit: 2 }));
  expect(paged.map(({ checkpoint }) => checkpoint)).toEqual(page.items.map(({ checkpoint }) => checkpoint));
  await threads.delete(id);
  await expect(threads.state(id, { bootstrap: false })).rejects.toMatchObject({ code: 'RUNSPAN_NOT_FOUND' });
});
