import { expect, test } from 'vitest';
import { ChangeReader, StateReader } from '../../server/http/state-reader.ts';
import { StateWriter } from '../../server/protocol/state-writer.ts';
import { MemorySessions } from '../../server/storage/memory-sessions.ts';
import type { StoredEvent } from '../../server/storage/session-store.ts';

const message = (id: string) => ({ id, content: 'x'.repeat(500) });
const data = (method: string, ids: string) => {
  const messages = [...ids].map(message);
  return method === 'values' ? { messages, n: 1 } : { name: 'model', input: { messages, n: 1 } };
};

/** A log of states, `values` unless they begin with a colon, which are `tasks`. */
async function logOf(...states: readonly string[]): Promise<[MemorySessions, readonly StoredEvent[]]> {
  const [sessions, writer] = [new MemorySessions(), new StateWriter('r')];
  for (const state of states) {
    const [method, ids] = state.startsWith(':') ? ['tasks', state.slice(1)] : ['values', state];
    const body = writer.bodyOf(method, { namespace: [], node: 'n' }, data(method, ids));
    await sessions.append('t', [{ channel: method, namespace: [], body }]);
  }
  return [sessions, (await sessions.read('t', 0, 10_000)).events];
}

const bodyOf = (method: string, ids: string) => ({
  method,
  params: { namespace: [], node: 'n', data: data(method, ids) },
});
const parsed = (body: string | undefined) => (body === undefined ? undefined : JSON.parse(body));

test('each state has all of its messages, as the graph has told them', async () => {
  const [sessions, events] = await logOf('ab', ':ab', 'abc', 'abcd', 'ae', ':a', 'aef', 'xef', '', 'a');
  const reader = new StateReader(sessions, 't');
  const read = [];
  for (const event of events) read.push(parsed(await reader.bodyOf(event)));
  expect(read).toEqual(
    ['ab', ':ab', 'abc', 'abcd', 'ae', ':a', 'aef', 'xef', '', 'a'].map((state) =>
      state.startsWith(':') ? bodyOf('tasks', state.slice(1)) : bodyOf('values', state),
    ),
  );
});

test('a reader that comes later has all messages of its first state', async () => {
  const [sessions, events] = await logOf('ab', 'abc', ':abc', 'abcd');
  for (const [place, whole] of [bodyOf('values', 'ab'), bodyOf('values', 'abc'), bodyOf('tasks', 'abc')].entries()) {
    const event = events[place] as StoredEvent;
    expect(parsed(await new StateReader(sessions, 't').bodyOf(event))).toEqual(whole);
  }
});

test('a reader of changes has the first state whole, and of the others what differs', async () => {
  const [sessions, events] = await logOf('ab', 'abc', 'abcd', 'ae');
  const reader = new ChangeReader(sessions, 't');
  const read = [];
  for (const event of events.slice(1)) {
    const { kept, data } = parsed(await reader.bodyOf(event)).params;
    read.push([kept, data.messages.map(({ id }: { id: string }) => id).join(''), data.n]);
  }
  expect(read).toEqual([
    [undefined, 'abc', 1],
    [3, 'd', 1],
    [1, 'e', 1],
  ]);
});

test('a reader of changes has what differs also of a state that has all of its messages in the log', async () => {
  // The fourth is one: what is before it is more than it.
  const [sessions, events] = await logOf('ab', 'cd', 'ef', 'efg');
  expect(events.map(({ body }) => body.includes('"isWhole":true'))).toEqual([true, false, true, false]);
  const reader = new ChangeReader(sessions, 't');
  await reader.bodyOf(events[0] as StoredEvent);
  await reader.bodyOf(events[1] as StoredEvent);
  expect(parsed(await reader.bodyOf(events[2] as StoredEvent)).params).toMatchObject({ kept: 0 });
  expect(parsed(await reader.bodyOf(events[3] as StoredEvent)).params).toMatchObject({ kept: 2 });
});

test('an event that is complete by itself is given as it is', async () => {
  const event: StoredEvent = { seq: 1, channel: 'values', namespace: [], body: '{"method":"values","params":{}}' };
  const sessions = new MemorySessions();
  expect(await new StateReader(sessions, 't').bodyOf(event)).toBe(event.body);
  expect(await new ChangeReader(sessions, 't').bodyOf(event)).toBe(event.body);
});

test('a state is not laid together from another than the one that it is based on', async () => {
  const [sessions] = await logOf('ab');
  const [one, other] = [new StateWriter('r'), new StateWriter('lost')];
  one.bodyOf('values', { namespace: [], node: 'n' }, data('values', 'ab'));
  // A process that has lost its run may write once more.
  for (const [writer, ids] of [
    [other, 'xy'],
    [one, 'abc'],
  ] as const) {
    const body = writer.bodyOf('values', { namespace: [], node: 'n' }, data('values', ids));
    await sessions.append('t', [{ channel: 'values', namespace: [], body }]);
  }
  const { events } = await sessions.read('t', 0, 10);
  const reader = new StateReader(sessions, 't');
  const read = [];
  for (const event of events) read.push(parsed(await reader.bodyOf(event)));
  expect(read).toEqual([bodyOf('values', 'ab'), bodyOf('values', 'xy'), undefined]);
});

const MIB = 1_024 * 1_024;

test('of the states that have been the last 64 MiB are given', async () => {
  const sessions = new MemorySessions();
  const state = (id: string, total: number) => {
    const body = JSON.stringify({ state: { id, total, isWhole: true }, ...bodyOf('values', id) });
    return { channel: 'values', namespace: [], body };
  };
  await sessions.append('t', [state('a', 1_000), state('b', 1_001), state('c', 64 * MIB + 1_000)]);
  const reader = new StateReader(sessions, 't');
  const read = [];
  for (const event of (await sessions.read('t', 0, 10)).events) read.push(parsed(await reader.bodyOf(event)));
  expect(read).toEqual([undefined, bodyOf('values', 'b'), bodyOf('values', 'c')]);
});

test('a state is not given whose messages are no longer kept, until one has all of them', async () => {
  const sessions = new MemorySessions({ eventsMax: 3 });
  const writer = new StateWriter('r');
  const add = async (ids: string, isWhole: boolean) => {
    const body = writer.bodyOf('values', { namespace: [], node: 'n' }, data('values', ids));
    expect(body.includes('"isWhole":true')).toBe(isWhole);
    await sessions.append('t', [{ channel: 'values', namespace: [], body }]);
  };
  await add('abcdefg', true);
  await add('abcdefgh', false);
  // As much as they all are.
  writer.bodyOf('custom', { namespace: [] }, 'x'.repeat(5_000));
  await add('abcdefghi', true);
  await add('abcdefghij', false);
  const { events } = await sessions.read('t', 0, 10);
  const reader = new StateReader(sessions, 't');
  const read = [];
  for (const event of events) read.push(parsed(await reader.bodyOf(event)));
  expect(read).toEqual([undefined, bodyOf('values', 'abcdefghi'), bodyOf('values', 'abcdefghij')]);
  const changes = new ChangeReader(sessions, 't');
  const changed = [];
  for (const event of events) changed.push(parsed(await changes.bodyOf(event)));
  expect(changed).toEqual([
    undefined,
    bodyOf('values', 'abcdefghi'),
    { method: 'values', params: { namespace: [], node: 'n', kept: 9, data: { messages: [message('j')], n: 1 } } },
  ]);
});

test('a reader that joins before many tasks looks for the state that they were given once', async () => {
  const [sessions, events] = await logOf('ab', ':ab', ':ab', ':abc');
  let reads = 0;
  const read = sessions.read.bind(sessions);
  sessions.read = (...given) => {
    reads += 1;
    return read(...given);
  };
  const reader = new StateReader(sessions, 't');
  await reader.bodyOf(events[1] as StoredEvent);
  const first = reads;
  expect(first).toBeGreaterThan(0);
  expect(parsed(await reader.bodyOf(events[2] as StoredEvent))).toEqual(bodyOf('tasks', 'ab'));
  expect(parsed(await reader.bodyOf(events[3] as StoredEvent))).toEqual(bodyOf('tasks', 'abc'));
  expect(reads).toBe(first);
});
