import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { loadThreadPage, newId, removeThread, startRun, stateOf, statesBefore } from '../page/state/client.ts';
import { eventsOf, type ThreadEvent } from '../page/state/event-stream.ts';
import { MessageAssembler, type StreamedMessage } from '../page/state/message-assembler.ts';
import { type ChatServer, startChatServer } from './support/chat-server.ts';

// The browser tests show what the page makes of the client: it reconnects, lists threads, and pages through histories.

let chat: ChatServer;
const end = new AbortController();
beforeAll(async () => {
  chat = await startChatServer();
  const send = fetch;
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => send(chat.url + path, init));
});
afterAll(async () => {
  end.abort();
  vi.unstubAllGlobals();
  await chat[Symbol.asyncDispose]();
});

let thread: string;
beforeEach(() => {
  thread = newId();
});

const ask = (content: string, more: object = {}) =>
  startRun(thread, { input: { messages: [{ type: 'human', content }] }, ifNotExists: 'create', ...more });
const endOf = ({ method, params }: ThreadEvent): unknown =>
  method === 'lifecycle' && params.namespace.length === 0 ? (params.data as { event: string }).event : undefined;

/** Reads the events of a run to its end. */
async function read(runId: string, since?: number): Promise<ThreadEvent[]> {
  const seen: ThreadEvent[] = [];
  for await (const event of eventsOf(thread, since, end.signal)) {
    if (event === 'live' || event.params.run_id !== runId) continue;
    seen.push(event);
    if (endOf(event) !== undefined && endOf(event) !== 'running') break;
  }
  return seen;
}

test('a run streams the messages that its state has', async () => {
  expect(await stateOf(thread)).toBeUndefined();
  const events = await read(await ask('What is an otter?'));
  const assembler = new MessageAssembler();
  const messages = events.flatMap((event) => assembler.take(event) ?? []);
  const state = await stateOf(thread);
  const last = state?.values.messages?.at(-1);
  expect(messages.at(-1)).toMatchObject({
    id: last?.id,
    role: 'ai',
    status: 'complete',
    namespace: [expect.anything()],
  });
  expect(messages.at(-1)?.blocks).toEqual([{ type: 'text', text: expect.stringContaining('The otter is a swimmer.') }]);
  expect(await loadThreadPage(1, 0)).toMatchObject([{ id: thread, title: 'What is an otter?' }]);
  const [newest, ...older] = await statesBefore(thread, 100);
  expect(newest).toEqual(expect.objectContaining({ checkpoint: state?.checkpoint }));
  expect(await statesBefore(thread, 100, newest?.checkpoint?.checkpoint_id ?? '')).toEqual(older);
  await removeThread(thread);
  expect(await stateOf(thread)).toBeUndefined();
});

test('a stream has the stored events, then `live`, then new events, and ends when its connection ends', async () => {
  const stored = await read(await ask('hello'));
  const events = eventsOf(thread, stored.at(-2)?.seq, end.signal);
  expect(await events.next()).toMatchObject({ value: { seq: stored.at(-1)?.seq } });
  expect(await events.next()).toEqual({ done: false, value: 'live' });
  await ask('hello');
  expect(await events.next()).toMatchObject({ value: { method: 'lifecycle' } });
  chat.cut();
  const rest = async () => {
    for await (const _ of events);
  };
  await expect(rest()).rejects.toThrow();
  await expect(eventsOf('a b', undefined, end.signal).next()).rejects.toMatchObject({ status: 422 });
});

test('a connection without a response ends after 20 s', async () => {
  const real = fetch;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
    vi.stubGlobal('fetch', real);
  });
  vi.stubGlobal(
    'fetch',
    (_: string, { signal }: RequestInit) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  );
  const ended = expect(eventsOf(thread, undefined, end.signal).next()).rejects.toThrow();
  vi.advanceTimersByTime(19_999);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1);
  await ended;
});

test('a request is repeated if the server fails, but a command is not', async () => {
  const real = fetch;
  const send = vi.fn(async () => new Response('', { status: 503 }));
  vi.stubGlobal('fetch', send);
  await expect(stateOf(thread)).rejects.toMatchObject({ status: 503 });
  await expect(ask('hello')).rejects.toMatchObject({ status: 503 });
  vi.stubGlobal('fetch', real);
  expect(send).toHaveBeenCalledTimes(4);
});

/** Returns the messages after each event of a source. */
function assembled(...data: readonly object[]): (StreamedMessage | undefined)[] {
  const assembler = new MessageAssembler();
  return data.map((one) => assembler.take({ method: 'messages', params: { namespace: [], ...one } }));
}
const start = { data: { event: 'message-start', id: 'm' } };
const delta = (index: number, of: object) => ({ data: { event: 'content-block-delta', index, delta: of } });
const text = (said: unknown, index = 0) => delta(index, { type: 'text-delta', text: said });

test('a message grows by text, reasoning, data and tool calls, and each change is a new object', () => {
  const call = { type: 'tool_call', id: 'c', name: 'task', args: {} };
  const all = assembled(
    start,
    delta(0, { type: 'reasoning-delta', reasoning: 'I look' }),
    { data: { event: 'content-block-start', index: 1, content: { type: 'text', text: 'Wait' } } },
    text('.', 1),
    delta(2, { type: 'block-delta', fields: { ...call, type: 'tool_call_chunk', args: '{' } }),
    delta(3, { type: 'data-delta', data: 'UklG' }),
    { data: { event: 'content-block-finish', index: 2, content: call } },
    { data: { event: 'message-finish' } },
  );
  const blocks = [
    { type: 'reasoning', reasoning: 'I look' },
    { type: 'text', text: 'Wait.' },
    call,
    { type: 'data', base64: 'UklG' },
  ];
  expect(all.at(-1)).toEqual({ id: 'm', role: 'ai', namespace: [], status: 'complete', blocks });
  expect(new Set(all).size).toBe(all.length);
  expect(all[2]?.blocks).toHaveLength(2);
});

test('messages of several sources stream at once', () => {
  const other = { node: 'plan' };
  const all = assembled(start, { ...start, ...other }, text('a'), { ...text('b'), ...other });
  expect(all.slice(2).map((message) => message?.blocks[0]?.text)).toEqual(['a', 'b']);
});

test('a message without a start, after its end, or with data of another type changes nothing else', () => {
  const error = { data: { event: 'error', message: 'overloaded' } };
  const [, odd, failed, late] = assembled(start, text(5), error, text('b'));
  expect(odd?.blocks).toEqual([{ type: 'text', text: '' }]);
  expect(failed).toMatchObject({ status: 'failed', error: 'overloaded' });
  expect(late).toBeUndefined();
  const nothing = assembled(text('a'), { data: null }, { data: { event: 'message-start' } });
  expect(nothing).toEqual([undefined, undefined, undefined]);
});
