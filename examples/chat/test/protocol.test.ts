import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStorage } from '../server/storage/storage.ts';
import {
  type ChatServer,
  endOf,
  isEndOf,
  type SeenEvent,
  startChatServer,
  streamedText,
} from './support/chat-server.ts';
import { PostgresServer } from './support/postgres.ts';

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await PostgresServer.start();
});
afterAll(() => postgres?.close());

const HERON = 'The heron is a tall bird.';
const ends = (events: readonly SeenEvent[]) =>
  events.flatMap((event) => (endOf(event) === undefined ? [] : [[event.params.run_id, endOf(event)]]));
const requestOf = (events: readonly SeenEvent[]) =>
  events.find(({ method }) => method === 'input.requested')?.params.data;

describe.each(['SQLite', 'PostgreSQL'])('a chat on %s', (engine) => {
  let chat: ChatServer;
  let thread: string;
  const start = async (limits = {}): Promise<ChatServer> => {
    const choice = engine === 'SQLite' ? {} : { postgres: await postgres.emptyDatabase() };
    return startChatServer({ storage: await openStorage(choice, limits) });
  };
  beforeAll(async () => {
    chat = await start();
  });
  afterAll(() => chat?.[Symbol.asyncDispose]());
  const fresh = (): string => {
    chat.script.set({ say: '', fail: 0 }).release();
    thread = randomUUID();
    return thread;
  };

  test('a run streams messages, tools and subagents, ends once, and leaves its state', async () => {
    const events = await chat.client.ask(fresh(), 'Compare heron and otter');
    expect(streamedText(events)).toContain(HERON);
    expect(ends(events)).toEqual([[events[0]?.params.run_id, 'completed']]);
    expect(events[0]?.params.data).toMatchObject({ event: 'running', graph_name: 'supervisor' });
    const started = events.filter(({ method, params }) => method === 'lifecycle' && params.data.cause !== undefined);
    expect(started.map(({ params }) => params.data.graph_name)).toEqual(['researcher', 'researcher', 'writer']);
    for (const { params } of started) expect(params.namespace[0]).toMatch(/^tools:/);
    const { values, metadata, next } = await chat.client.state(thread);
    expect(values.messages[0]?.id).toBe(events[0]?.params.data.question_id);
    expect(values.messages.map(({ type }) => type)).toEqual(['human', 'ai', 'tool', 'tool', 'ai', 'tool', 'ai']);
    expect({ next, run: metadata.run_id }).toEqual({ next: [], run: events[0]?.params.run_id });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => (events[0]?.seq ?? 0) + index));
  });

  test('a replay has the same events, and continues after `since` or `last-event-id`', async () => {
    const events = await chat.client.ask(fresh(), 'heron');
    const isLast = isEndOf(events[0]?.params.run_id ?? '');
    expect(await chat.client.until(thread, isLast)).toEqual(events);
    const since = events[9]?.seq;
    expect(await chat.client.until(thread, isLast, { since })).toEqual(events.slice(10));
    const seen: SeenEvent[] = [];
    for await (const event of chat.client.events(thread, {}, { 'last-event-id': String(since) })) {
      seen.push(event);
      if (isLast(event)) break;
    }
    expect(seen).toEqual(events.slice(10));
  });

  test('a subscription filters by channel, namespace and depth', async () => {
    const events = await chat.client.ask(fresh(), 'Compare heron and otter');
    const isLast = isEndOf(events[0]?.params.run_id ?? '');
    const filter = { channels: ['lifecycle', 'tools'], namespaces: [[]], depth: 1 };
    expect(await chat.client.until(thread, isLast, filter)).toEqual(
      events.filter(({ method, params }) => /lifecycle|tools/.test(method) && params.namespace.length <= 1),
    );
  });

  test('states are whole, although the log does not contain them', async () => {
    const events = await chat.client.ask(fresh(), 'heron');
    const states = events.filter(({ method, params }) => method === 'values' && params.namespace.length === 0);
    const counts = states.map(({ params }) => (params.data.messages as unknown[]).length);
    expect(counts).toEqual([...counts].sort((one, other) => one - other));
    expect(states.at(-1)?.params.data.messages).toEqual((await chat.client.state(thread)).values.messages);
    const { events: stored } = await chat.storage.store.read(thread, 0, 10_000);
    const roots = stored.filter(({ channel, namespace }) => channel === 'values' && namespace.length === 0);
    for (const { body } of roots) expect(body).not.toContain('messages');
  });

  test('a wrong answer is refused and the request stays; a message rejects it', async () => {
    const request = requestOf(await chat.client.ask(fresh(), 'Save a note: buy milk'));
    const respond = (response: unknown) =>
      chat.client.command(thread, 'input.respond', { interrupt_id: request?.interrupt_id, response });
    for (const response of [
      { decision: 'approve' },
      { decisions: [] },
      { decisions: [{ type: 'maybe' }] },
      { decisions: [{ type: 'edit' }] },
    ])
      expect(await respond(response)).toMatchObject({ type: 'error', error: 'invalid_argument' });
    await chat.client.ask(thread, 'No, leave it');
    const { values } = await chat.client.state(thread);
    expect(values.messages.at(-2)).toMatchObject({ type: 'tool', content: expect.stringContaining('No, leave it') });
    expect(await respond({ decisions: [{ type: 'approve' }] })).toMatchObject({ error: 'no_such_interrupt' });
  });

  test('a second run waits, replaces the first, or is refused', async () => {
    fresh();
    chat.script.set({ hold: 'supervisor', holdPieces: 1 });
    const first = await chat.client.say(thread, 'hello');
    await chat.script.reached;
    const second = await chat.client.say(thread, 'hello');
    expect(await chat.client.start(thread, 'hello', { multitaskStrategy: 'reject' })).toMatchObject({
      type: 'error',
      error: 'busy',
      message: expect.stringContaining(first),
    });
    const third = await chat.client.say(thread, 'hello', { multitaskStrategy: 'interrupt' });
    chat.script.release();
    const events = await chat.client.until(thread, isEndOf(second));
    expect(ends(events)).toEqual([
      [first, 'interrupted'],
      [third, 'completed'],
      [second, 'completed'],
    ]);
  });

  test('ten runs wait at most, and a waiting run can be cancelled', async () => {
    fresh();
    chat.script.set({ hold: 'supervisor', holdPieces: 1 });
    const runs: string[] = [];
    for (let count = 0; count < 11; count++) runs.push(await chat.client.say(thread, 'hello'));
    expect(await chat.client.start(thread, 'hello')).toMatchObject({ type: 'error', error: 'busy' });
    expect(await chat.client.cancel(thread, runs[1] ?? '')).toBe(202);
    chat.script.release();
    const events = await chat.client.until(thread, isEndOf(runs[10] ?? ''));
    expect(ends(events)).toEqual(runs.map((run, index) => [run, index === 1 ? 'interrupted' : 'completed']));
  });

  test('a branch begins at a checkpoint, and both branches keep their messages', async () => {
    await chat.client.ask(fresh(), 'hello');
    const [{ checkpoint } = await chat.client.state(thread)] = [await chat.client.state(thread)];
    chat.script.set({ say: 'First.' });
    await chat.client.ask(thread, 'one');
    chat.script.set({ say: 'Second.' });
    await chat.client.ask(thread, 'two', { config: { configurable: { checkpoint_id: checkpoint.checkpoint_id } } });
    const texts = ({ values }: { values: { messages: readonly { content?: unknown }[] } }) =>
      JSON.stringify(values.messages.map(({ content }) => content));
    const newest = texts(await chat.client.state(thread));
    expect([newest.includes('Second.'), newest.includes('First.')]).toEqual([true, false]);
    const history = await chat.client.history(thread, 3);
    expect(history.map(texts).filter((text) => text.includes('First.') && text.includes('Second.'))).toEqual([]);
    expect(history.map(texts).filter((text) => text.includes('First.'))).not.toEqual([]);
    expect(await chat.client.history(thread, 100)).toEqual(history);
  });

  test('a state can be created, changed, read and deleted', async () => {
    fresh();
    const path = `/threads/${thread}`;
    expect((await chat.client.post(`${path}/history`, {})).status).toBe(404);
    const created = await chat.client.post(`${path}/state`, {});
    expect([created.status, await created.json()]).toMatchObject([200, { values: { messages: [] } }]);
    const values = { messages: [{ type: 'human', id: 'h', content: 'a\0b\ud800 <b>' }] };
    expect((await chat.client.post(`${path}/state`, { values })).status).toBe(200);
    expect((await chat.client.state(thread)).values.messages).toMatchObject([{ id: 'h', type: 'human' }]);
    for (const wrong of [{ type: 'human' }, { type: 'nothing', content: '' }, { type: 'tool', content: '' }, 7])
      expect((await chat.client.post(`${path}/state`, { values: { messages: [wrong] } })).status).toBe(422);
    expect((await chat.client.post(`${path}/state`, { checkpoint_id: 'none' })).status).toBe(404);
    const threads = await chat.client.get<{ id: string; title: string }[]>('/threads');
    expect(threads[0]).toMatchObject({ id: thread, title: 'New conversation' });
    expect(await chat.client.get('/threads?limit=1&offset=1')).not.toEqual([threads[0]]);
    const remove = () => fetch(`${chat.url}/api${path}`, { method: 'DELETE' });
    expect([(await remove()).status, (await remove()).status]).toEqual([204, 204]);
    expect((await fetch(`${chat.url}/api${path}/state`)).status).toBe(404);
  });

  test('a thread can be deleted during a run, and its numbers are not used again', async () => {
    fresh();
    chat.script.set({ hold: 'supervisor', holdPieces: 1 });
    const run = await chat.client.say(thread, 'hello');
    await chat.script.reached;
    const [first] = await chat.client.until(thread, () => true);
    expect((await fetch(`${chat.url}/api/threads/${thread}`, { method: 'DELETE' })).status).toBe(204);
    chat.script.release();
    const events = await chat.client.ask(thread, 'hello');
    expect(events[0]?.seq).toBeGreaterThan((first?.seq ?? 0) + 3);
    expect(events.map(({ params }) => params.run_id)).not.toContain(run);
  });

  test('the oldest events are deleted beyond the limit, and a reader receives `missed_events`', async () => {
    await using small = await start({ eventsMax: 200 });
    const first = await small.client.ask('t', 'hello');
    await small.client.ask('t', 'Compare heron and otter');
    const events = await small.client.until('t', ({ method }) => method === 'messages', { since: first[0]?.seq });
    const { name, payload } = events[0]?.params.data ?? {};
    expect(name).toBe('missed_events');
    const { after, before } = payload as { after: number; before: number };
    expect(after).toBe(first[0]?.seq);
    expect(events[1]?.seq).toBe(before);
    const { events: kept } = await small.storage.store.read('t', 0, 10_000);
    expect(kept.length).toBeLessThanOrEqual(200);
    await small.storage.store.deleteIdleEvents();
    expect((await small.storage.store.read('t', 0, 10_000)).events).toHaveLength(kept.length);
  });

  test('runs whose process ended are reported as interrupted, in their order', async () => {
    await using dead = await start({ leaseMs: 0, heartbeatMs: 3_600_000 });
    const { store } = dead.storage;
    const run = { threadId: 't', title: 'x', strategy: 'enqueue' as const };
    for (const runId of ['a', 'b']) await store.start({ ...run, runId });
    const data = { event: 'interrupted' };
    const lastEvent = (run_id: string) => {
      const body = JSON.stringify({ method: 'lifecycle', params: { namespace: [], run_id, data } });
      return { channel: 'lifecycle', namespace: [], body };
    };
    await expect
      .poll(async () => {
        await store.endLost(lastEvent);
        return store.runs('t');
      })
      .toEqual([]);
    expect(ends(await dead.client.until('t', isEndOf('b'))).slice(0, 2)).toEqual([
      ['a', 'interrupted'],
      ['b', 'interrupted'],
    ]);
    await expect(store.append('t', 'a', [{ channel: 'custom', namespace: [], body: '{}' }])).rejects.toThrow(
      'no longer in the store',
    );
  });
});
