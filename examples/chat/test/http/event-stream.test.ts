import { expect, test, vi } from 'vitest';
import { eventStream } from '../../server/http/event-stream.ts';
import type { Subscription } from '../../server/http/subscription.ts';
import { StateWriter } from '../../server/protocol/state-writer.ts';
import { MemorySessions } from '../../server/storage/memory-sessions.ts';
import type { NewEvent, Wake } from '../../server/storage/session-store.ts';

const event = (channel: string, namespace: readonly string[] = [], data: unknown = {}): NewEvent => ({
  channel,
  namespace,
  body: JSON.stringify({ method: channel, params: { namespace, data } }),
});

/** Reads frames; comments are frames of their own. */
class Reader {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = '';

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = (stream as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream()).getReader();
  }

  async next(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end !== -1) {
        const frame = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return frame;
      }
      const { value, done } = await this.#reader.read();
      if (done) return 'end';
      this.#text += value;
    }
  }

  /** The data of the next events, comments passed over. */
  async events(
    count: number,
  ): Promise<{ seq: number; event_id: string; method: string; params: { data: { n: number } } }[]> {
    const found = [];
    while (found.length < count) {
      const frame = await this.next();
      if (frame === 'end') throw new Error(`the stream has ended after ${found.length} of ${count} events`);
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined) found.push(JSON.parse(data));
    }
    return found;
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

const open = (
  sessions: MemorySessions,
  subscription: Subscription = {},
  end: AbortSignal = new AbortController().signal,
): Reader => new Reader(eventStream(sessions, 't', subscription, end));

test('a stream begins at once, with a comment', async () => {
  expect(await open(new MemorySessions()).next()).toBe(': open');
});

test('what has been comes first, then what comes, in order and once', async () => {
  const sessions = new MemorySessions();
  await sessions.append('t', [event('values', [], { n: 1 }), event('values', [], { n: 2 })]);
  const reader = open(sessions);
  const before = await reader.events(2);
  void sessions.append('t', [event('values', [], { n: 3 })]);
  void sessions.append('t', [event('values', [], { n: 4 })]);
  const all = [...before, ...(await reader.events(2))];
  expect(all.map(({ params }) => params.data.n)).toEqual([1, 2, 3, 4]);
  const first = all[0]?.seq ?? 0;
  expect(all.map(({ seq, event_id }) => [seq - first, event_id])).toEqual(
    all.map(({ seq }, index) => [index, String(seq)]),
  );
});

test('what comes while a page is read that does not have it yet comes at once', async () => {
  const sessions = new MemorySessions();
  const { read } = sessions;
  sessions.read = async (threadId, after, limit) => {
    const page = await read.call(sessions, threadId, after, limit);
    if (page.events.length === 0 && after === 0) await sessions.append('t', [event('values', [], { n: 1 })]);
    return page;
  };
  const reader = open(sessions);
  await reader.next();
  expect(await reader.next()).toMatch(/^id: /);
});

test('what a filter leaves out does not come', async () => {
  const sessions = new MemorySessions();
  await sessions.append('t', [
    event('values', [], { n: 1 }),
    event('tools', [], { n: 2 }),
    event('values', ['a'], { n: 3 }),
  ]);
  await sessions.append('t', [event('values', [], { n: 4 })]);
  const found = await open(sessions, { channels: ['values'], namespaces: [[]], depth: 0 }).events(2);
  expect(found.map(({ params }) => params.data.n)).toEqual([1, 4]);
});

test('an event is a frame with its number as id and its method as name', async () => {
  const sessions = new MemorySessions();
  await sessions.append('t', [event('custom:progress'), event('input')]);
  const reader = open(sessions);
  await reader.next();
  expect(await reader.next()).toMatch(
    /^id: (\d+)\nevent: custom\ndata: \{"type":"event","event_id":"\1","seq":\1,"method":/,
  );
  expect(await reader.next()).toMatch(/^id: \d+\nevent: input\.requested\n/);
});

test('a stream goes on after the number that is given', async () => {
  const sessions = new MemorySessions();
  await sessions.append(
    't',
    [1, 2, 3].map((n) => event('values', [], { n })),
  );
  const [, second] = await open(sessions).events(2);
  const [next] = await open(sessions, { since: second?.seq }).events(1);
  expect(next?.params.data.n).toBe(3);
});

test('a stream in which nothing comes has a comment every five seconds', async () => {
  vi.useFakeTimers();
  try {
    const reader = open(new MemorySessions());
    await reader.next();
    const next = reader.next();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(await Promise.race([next, 'nothing'])).toBe('nothing');
    await vi.advanceTimersByTimeAsync(1);
    expect(await next).toBe(': heartbeat');
  } finally {
    vi.useRealTimers();
  }
});

test('a stream whose filter leaves out all that comes has a comment every five seconds as well', async () => {
  vi.useFakeTimers();
  try {
    const sessions = new MemorySessions();
    const reader = open(sessions, { channels: ['lifecycle'] });
    await reader.next();
    const two = reader.next().then(async (first) => [first, await reader.next()]);
    for (let passedMs = 0; passedMs < 12_000; passedMs += 1_000) {
      await sessions.append('t', [event('messages')]);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(await Promise.race([two, 'nothing'])).toEqual([': heartbeat', ': heartbeat']);
  } finally {
    vi.useRealTimers();
  }
});

test('a reader that falls behind what is kept is told what it has missed, and goes on', async () => {
  const sessions = new MemorySessions({ eventsMax: 5 });
  await sessions.append('t', [event('values', [], { n: 0 })]);
  const reader = open(sessions, { channels: ['values'] });
  const [first] = await reader.events(1);
  const start = first?.seq ?? 0;
  await sessions.append(
    't',
    [1, 2, 3, 4, 5, 6, 7, 8].map((n) => event('values', [], { n })),
  );
  const [missed, next] = await reader.events(2);
  expect(missed).toMatchObject({
    method: 'custom',
    event_id: `missed-${start + 3}`,
    params: { namespace: [], data: { name: 'missed_events', payload: { after: start, before: start + 4 } } },
  });
  expect(next?.params.data.n).toBe(4);
});

test('a reader that is one event ahead of what is no longer kept has missed nothing', async () => {
  const sessions = new MemorySessions({ eventsMax: 2 });
  await sessions.append('t', [event('values', [], { n: 0 })]);
  const reader = open(sessions);
  await reader.events(1);
  await sessions.append('t', [event('values', [], { n: 1 }), event('values', [], { n: 2 })]);
  expect((await reader.events(2)).map(({ params }) => params.data.n)).toEqual([1, 2]);
});

/** Counts who is told of what happens. */
class WatchedSessions extends MemorySessions {
  watched = 0;

  override watch(threadId: string, wake: Wake): () => void {
    this.watched += 1;
    const unwatch = super.watch(threadId, wake);
    return () => {
      this.watched -= 1;
      unwatch();
    };
  }
}

test('a reader that leaves is waited for no longer', async () => {
  const sessions = new WatchedSessions();
  const reader = open(sessions);
  await reader.next();
  const waiting = reader.next();
  expect(sessions.watched).toBe(1);
  await reader.leave();
  expect([await waiting, sessions.watched]).toEqual(['end', 0]);
});

test('a stream ends with its chat, after what has been told by then', async () => {
  const sessions = new WatchedSessions();
  const end = new AbortController();
  const [waiting, late] = [open(sessions, {}, end.signal), open(sessions, { channels: ['values'] }, end.signal)];
  await waiting.next();
  const first = waiting.events(1);
  await sessions.append('t', [event('values', [], { n: 1 })]);
  end.abort();
  expect((await first).map(({ params }) => params.data.n)).toEqual([1]);
  expect(await waiting.next()).toBe('end');
  expect((await late.events(1)).map(({ params }) => params.data.n)).toEqual([1]);
  expect([await late.next(), sessions.watched]).toEqual(['end', 0]);
});

test('a reader that is behind is told what it waits for before its stream ends', async () => {
  const sessions = new MemorySessions();
  const end = new AbortController();
  const reader = open(sessions, { channels: ['lifecycle'] }, end.signal);
  await reader.next();
  // As many as are read at once, and those are not for it.
  const others = Array.from({ length: 200 }, (_, n) => event('values', [], { n }));
  await sessions.append('t', [...others, event('lifecycle', [], { n: 200 })]);
  end.abort();
  expect((await reader.events(1)).map(({ params }) => params.data.n)).toEqual([200]);
  expect(await reader.next()).toBe('end');
});

test('what is sent at once is a MiB, and the event with which it becomes one', async () => {
  const sessions = new MemorySessions();
  const text = 'x'.repeat(300_000);
  await sessions.append(
    't',
    Array.from({ length: 10 }, () => event('values', [], { text })),
  );
  const source = eventStream(sessions, 't', {}, new AbortController().signal).getReader();
  await source.read();
  const sizes = [];
  for (let count = 0; count < 3; count++) sizes.push((await source.read()).value?.length ?? 0);
  // Of the ten there are four, four, and the other two.
  expect(sizes.map((size) => Math.floor(size / 300_000))).toEqual([4, 4, 2]);
  await source.cancel();
});

test('a stream ends with its chat, though the store is closed by then', async () => {
  const sessions = new WatchedSessions();
  const end = new AbortController();
  const reader = open(sessions, {}, end.signal);
  await reader.next();
  sessions.read = async () => {
    throw new Error('the store is closed');
  };
  end.abort();
  expect([await reader.next(), sessions.watched]).toEqual(['end', 0]);
});

test('a stream whose store is away ends as one that its reader can ask for again', async () => {
  const sessions = new WatchedSessions();
  sessions.read = async () => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  };
  const reader = open(sessions);
  await reader.next();
  expect([await reader.next(), sessions.watched]).toEqual(['end', 0]);
});

test('a stream whose store fails ends, and is told of nothing more', async () => {
  const sessions = new WatchedSessions();
  sessions.read = async () => {
    throw new Error('the store is away');
  };
  const reader = open(sessions);
  await reader.next();
  await expect(reader.next()).rejects.toThrow('the store is away');
  expect(sessions.watched).toBe(0);
});

test('a slow reader holds nothing but its place: what is read for it is one page', async () => {
  const sessions = new MemorySessions();
  await sessions.append(
    't',
    Array.from({ length: 10_000 }, (_, n) => event('values', [], { n })),
  );
  let read = 0;
  const { read: readPage } = sessions;
  sessions.read = async (threadId, after, limit) => {
    const page = await readPage.call(sessions, threadId, after, limit);
    read += page.events.length;
    return page;
  };
  const source = eventStream(sessions, 't', {}, new AbortController().signal).getReader();
  await source.read();
  await source.read();
  expect(read).toBe(200);
  await source.cancel();
});

/** Writes the states of a thread, each with messages of these ids. */
function stateWriter(sessions: MemorySessions): (method: string, ids: string) => Promise<void> {
  const writer = new StateWriter('r');
  return async (method, ids) => {
    const messages = [...ids].map((id) => ({ id, content: 'x'.repeat(1_000) }));
    const data = method === 'values' ? { messages } : { input: { messages } };
    const body = writer.bodyOf(method, { namespace: [] }, data);
    await sessions.append('t', [{ channel: method, namespace: [], body }]);
  };
}

/** Method, the number of messages that stay, and the ids of those that came. */
function statesIn(events: readonly { method: string; params: object }[]): unknown[] {
  return events.map(({ method, params }) => {
    const { data, kept } = params as { data: { messages: []; input: { messages: [] } }; kept?: number };
    const messages: { id: string }[] = method === 'values' ? data.messages : data.input?.messages;
    return [method, kept, messages?.map(({ id }) => id).join('')];
  });
}

test('each state comes with all of its messages, whatever else is wanted', async () => {
  const sessions = new MemorySessions();
  const write = stateWriter(sessions);
  for (const [method, ids] of [
    ['values', 'ab'],
    ['tasks', 'ab'],
    ['values', 'abc'],
    ['tasks', 'abc'],
  ] as const)
    await write(method, ids);
  expect(statesIn(await open(sessions).events(4))).toEqual([
    ['values', undefined, 'ab'],
    ['tasks', undefined, 'ab'],
    ['values', undefined, 'abc'],
    ['tasks', undefined, 'abc'],
  ]);
  expect(statesIn(await open(sessions, { channels: ['tasks'] }).events(2))).toEqual([
    ['tasks', undefined, 'ab'],
    ['tasks', undefined, 'abc'],
  ]);
  const since = (await sessions.lastSeq('t')) - 2;
  expect(statesIn(await open(sessions, { channels: ['values'], since }).events(1))).toEqual([
    ['values', undefined, 'abc'],
  ]);
});

test('a reader who asks for changes is told of each state what differs from the one before, tasks aside', async () => {
  const sessions = new MemorySessions();
  const write = stateWriter(sessions);
  for (const [method, ids] of [
    ['values', 'ab'],
    ['values', 'abc'],
    ['tasks', 'abc'],
  ] as const)
    await write(method, ids);
  const reader = open(sessions, { values: 'changes' });
  const before = await reader.events(3);
  await write('values', 'ad');
  expect(statesIn([...before, ...(await reader.events(1))])).toEqual([
    ['values', undefined, 'ab'],
    ['values', 2, 'c'],
    ['tasks', undefined, 'abc'],
    ['values', 1, 'd'],
  ]);
});

test('of states whose messages are no longer kept a reader is told once, by their channels', async () => {
  const sessions = new MemorySessions({ eventsMax: 5 });
  const write = stateWriter(sessions);
  await write('values', 'abcdefg');
  await write('values', 'hijklmn');
  await write('tasks', 'hijklmn');
  await sessions.append('t', [event('lifecycle')]);
  // It is more than all before it that the log has of the first.
  await write('values', 'abcdefg');
  await write('values', 'abcdefgh');
  const reader = open(sessions);
  const [dropped, lifecycle, missed, ...states] = await reader.events(5);
  const last = await sessions.lastSeq('t');
  expect(dropped?.params.data).toMatchObject({ payload: { after: 0, before: last - 4 } });
  expect(lifecycle?.method).toBe('lifecycle');
  expect(missed).toMatchObject({
    method: 'custom',
    event_id: `missed-${last - 2}-values,tasks`,
    params: {
      data: { name: 'missed_events', payload: { after: last - 5, before: last - 1, channels: ['values', 'tasks'] } },
    },
  });
  expect(statesIn(states)).toEqual([
    ['values', undefined, 'abcdefg'],
    ['values', undefined, 'abcdefgh'],
  ]);
});
