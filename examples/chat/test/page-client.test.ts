import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { startRun, stateOf } from '../page/state/client.ts';
import { eventsOf } from '../page/state/event-stream.ts';
import { MessageAssembler, type StreamedMessage } from '../page/state/message-assembler.ts';

// The browser tests cover the page of a chat that responds as usual.

afterEach(() => void vi.unstubAllGlobals());

test('a connection without a response ends after 20 s', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  vi.stubGlobal(
    'fetch',
    (_: string, { signal }: RequestInit) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  );
  const { signal } = new AbortController();
  const ended = expect(eventsOf('t', undefined, signal).next()).rejects.toThrow();
  vi.advanceTimersByTime(19_999);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1);
  await ended;
});

test('a request is repeated if the server fails, but a command is not', async () => {
  const send = vi.fn(async () => new Response('', { status: 503 }));
  vi.stubGlobal('fetch', send);
  await expect(stateOf('t')).rejects.toMatchObject({ status: 503 });
  await expect(startRun('t', { input: { messages: [] }, ifNotExists: 'create' })).rejects.toMatchObject({
    status: 503,
  });
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
