import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { memoryStorage, type Storage, sqliteStorage } from '../../server/storage/storage.ts';
import { ChatServer } from '../support/chat-server.ts';
import { Deferred } from '../support/deferred.ts';
import { courseOf, type SeenEvent, untilEnd } from '../support/events.ts';
import { temporaryFolder } from '../support/folder.ts';
import { Gate, HeldModel } from '../support/held-model.ts';

const said = (text: string) => ({ input: { messages: [{ role: 'user', content: text }] } });

test('a run waits for the one before it', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  const second = await chat.say('t', 'What is an otter?');
  const third = await chat.say('t', 'Hello', { multitaskStrategy: 'enqueue' });
  gate.open();
  expect(courseOf(await untilEnd(chat, 't', third))).toEqual(
    [first, second, third].flatMap((runId) => [`${runId} running`, `${runId} completed`]),
  );
});

test('a run takes the place of the one before it, and goes ahead of those that wait', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  const waiting = await chat.say('t', 'What is an otter?');
  const urgent = await chat.say('t', 'Hello', { multitaskStrategy: 'interrupt' });
  gate.open();
  expect(courseOf(await untilEnd(chat, 't', waiting))).toEqual([
    `${first} running`,
    `${first} interrupted`,
    `${urgent} running`,
    `${urgent} completed`,
    `${waiting} running`,
    `${waiting} completed`,
  ]);
});

test('a run that cannot end the one before it is taken all the same, and waits for that', async () => {
  const gate = new Gate();
  const storage = memoryStorage();
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  storage.sessions.cancel = async () => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  };
  const second = await chat.say('t', 'Hello', { multitaskStrategy: 'interrupt' });
  gate.open();
  expect(courseOf(await untilEnd(chat, 't', second))).toEqual(
    [first, second].flatMap((runId) => [`${runId} running`, `${runId} completed`]),
  );
  expect(chat.lines).toEqual([`run ${first} cannot be cancelled: connect ECONNREFUSED`]);
});

test('ten runs may wait in a thread, and the eleventh is refused', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  await chat.say('t', 'Hello');
  for (let waiting = 1; waiting <= 10; waiting += 1) await chat.say('t', `Hello ${waiting}`);
  expect(await chat.command('t', 'run.start', said('Hello'))).toMatchObject({
    error: 'invalid_argument',
    message: '10 runs wait in thread t already.',
  });
});

test('a run that is cancelled while it waits ends when its turn comes', async () => {
  const gate = new Gate();
  await using chat = await ChatServer.start({ chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  const second = await chat.say('t', 'Save a note: never');
  expect((await chat.post(`/threads/t/runs/${second}/cancel`, {})).status).toBe(202);
  gate.open();
  expect(courseOf(await untilEnd(chat, 't', second))).toEqual([
    `${first} running`,
    `${first} completed`,
    `${second} running`,
    `${second} interrupted`,
  ]);
  const state = (await (await fetch(`${chat.url}/api/threads/t/state`)).json()) as { values: { messages: unknown[] } };
  expect(JSON.stringify(state.values.messages)).not.toContain('never');
});

test('a thread that is left while the next run asks for it is taken by that run', async () => {
  const gate = new Gate();
  const storage = memoryStorage({ renewMs: 60_000 });
  const { claim, end } = storage.sessions;
  const released = new Deferred();
  storage.sessions.end = async (...args) => {
    const isEnded = await end.apply(storage.sessions, args);
    released.resolve();
    return isEnded;
  };
  let claims = 0;
  // The answer to the second says that it waits, and comes when it has the thread already.
  storage.sessions.claim = async (...args) => {
    const holder = await claim.apply(storage.sessions, args);
    claims += 1;
    if (claims !== 2) return holder;
    gate.open();
    await released.promise;
    return holder;
  };
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  await chat.say('t', 'Hello');
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  expect(courseOf(await untilEnd(chat, 't', second)).at(-1)).toBe(`${second} completed`);
});

test('a thread that a run is given while it asks whether it has it is not left lying', async () => {
  const gate = new Gate();
  const storage = memoryStorage({ renewMs: 60_000 });
  const { renew, end } = storage.sessions;
  const released = new Deferred();
  storage.sessions.end = async (...args) => {
    const isEnded = await end.apply(storage.sessions, args);
    released.resolve();
    return isEnded;
  };
  let isFirst = true;
  storage.sessions.renew = async (...args) => {
    const lease = await renew.apply(storage.sessions, args);
    if (lease !== 'waiting' || !isFirst) return lease;
    isFirst = false;
    gate.open();
    await released.promise;
    return lease;
  };
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  await chat.say('t', 'Hello');
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  expect(courseOf(await untilEnd(chat, 't', second)).at(-1)).toBe(`${second} completed`);
});

test('a run that waits is tried again when its store has been away', async () => {
  const gate = new Gate();
  const storage = memoryStorage({ renewMs: 20 });
  const { renew } = storage.sessions;
  let isAway = false;
  storage.sessions.renew = async (...args) => {
    if (isAway) throw new Error('away');
    return renew.apply(storage.sessions, args);
  };
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'Hello');
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  isAway = true;
  gate.open();
  await untilEnd(chat, 't', first);
  isAway = false;
  expect(courseOf(await untilEnd(chat, 't', second)).at(-1)).toBe(`${second} completed`);
});

test('a run that waits when the server is closed is told of as interrupted, behind the one before it', async () => {
  const gate = new Gate();
  const storage = memoryStorage();
  const told = toldAtClose(storage);
  const chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  const first = await chat.say('t', 'What is a heron?');
  await gate.reached;
  const second = await chat.say('t', 'What is an otter?');
  await chat[Symbol.asyncDispose]();
  expect(courseOf(told)).toEqual([`${first} running`, `${first} interrupted`, `${second} interrupted`]);
});

test('a run that is asked for while the server is closed is refused, and one that was asked for before is told of', async () => {
  const storage = memoryStorage();
  const told = toldAtClose(storage);
  const { claim } = storage.sessions;
  const [asked, closing] = [new Deferred(), new Deferred()];
  storage.sessions.claim = async (...args) => {
    asked.resolve();
    await closing.promise;
    return claim.apply(storage.sessions, args);
  };
  const chat = await ChatServer.start({ storage, chatModel: new HeldModel(new Gate()) });
  const before = chat.say('t', 'What is a heron?');
  await asked.promise;
  const closed = chat[Symbol.asyncDispose]();
  expect(await chat.command('t', 'run.start', said('What is an otter?'))).toMatchObject({
    error: 'unknown_error',
    message: 'The server is about to end, and begins no more runs; try again.',
  });
  closing.resolve();
  const run = await before;
  await closed;
  expect(courseOf(told)).toEqual([`${run} running`, `${run} interrupted`]);
});

test('a thread that is deleted does not come back by a run that has waited', async () => {
  const gate = new Gate();
  const storage = memoryStorage();
  const { renew } = storage.sessions;
  // As a store does that is elsewhere.
  storage.sessions.renew = async (...args) => {
    await wait(20);
    return renew.apply(storage.sessions, args);
  };
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate) });
  await chat.say('t', 'What is a heron?');
  await gate.reached;
  const second = await chat.say('t', 'What is an otter?');
  const reading = untilEnd(chat, 't', second);
  expect((await fetch(`${chat.url}/api/threads/t`, { method: 'DELETE' })).status).toBe(204);
  expect(courseOf(await reading).at(-1)).toBe(`${second} interrupted`);
  expect(await (await fetch(`${chat.url}/api/threads`)).json()).toEqual([]);
});

test('runs that wait in two instances begin in the order in which they came, and can be cancelled from either', async () => {
  const gate = new Gate();
  const storage = memoryStorage();
  const chatModel = new HeldModel(gate);
  await using here = await ChatServer.start({ storage, chatModel });
  await using there = await ChatServer.start({ storage: { ...storage, close: async () => {} }, chatModel });
  const first = await here.say('t', 'What is a heron?');
  await gate.reached;
  const [second, third] = [await there.say('t', 'Hello'), await here.say('t', 'Hello')];
  const last = await there.say('t', 'Hello');
  expect((await there.post(`/threads/t/runs/${third}/cancel`, {})).status).toBe(202);
  gate.open();
  expect(courseOf(await untilEnd(here, 't', last))).toEqual([
    `${first} running`,
    `${first} completed`,
    `${second} running`,
    `${second} completed`,
    `${third} running`,
    `${third} interrupted`,
    `${last} running`,
    `${last} completed`,
  ]);
});

test('ten runs may wait in a thread, whichever instance they wait in', async () => {
  const storage = memoryStorage();
  const chatModel = new HeldModel(new Gate());
  await using here = await ChatServer.start({ storage, chatModel });
  await using there = await ChatServer.start({ storage: { ...storage, close: async () => {} }, chatModel });
  for (let runs = 1; runs <= 11; runs += 1) await (runs % 2 === 0 ? here : there).say('t', `Hello ${runs}`);
  for (const chat of [here, there]) {
    expect(await chat.command('t', 'run.start', said('Hello'))).toMatchObject({ error: 'invalid_argument' });
  }
});

test('runs that have waited in a process that is gone are told of before the next one takes requests', async () => {
  using folder = temporaryFolder();
  const before = sqliteStorage(folder.path);
  for (const run of ['first', 'second', 'third']) await before.sessions.claim('t', run, 'last');
  await before.close();
  const storage = sqliteStorage(folder.path, { renewMs: 60_000 });
  await using chat = await ChatServer.start({ storage });
  expect(await storage.sessions.activeRun('t')).toBeUndefined();
  expect(courseOf(await untilEnd(chat, 't', 'third'))).toEqual([
    'first interrupted',
    'second interrupted',
    'third interrupted',
  ]);
});

test('a run that has lost its place does not begin, and the log says so', async () => {
  const gate = new Gate();
  const storage = memoryStorage({ renewMs: 20 });
  const logged = new Deferred<string>();
  await using chat = await ChatServer.start({ storage, chatModel: new HeldModel(gate), log: logged.resolve });
  const first = await chat.say('t', 'Hello');
  await gate.reached;
  const second = await chat.say('t', 'Hello');
  // As an instance does that takes this one for gone.
  await storage.sessions.end('t', second, { channel: 'lifecycle', namespace: [], body: interrupted(second) });
  expect(await logged.promise).toBe(`run ${second} waits no longer in thread t: the store has it no more`);
  gate.open();
  const next = await chat.say('t', 'Hello');
  expect(courseOf(await untilEnd(chat, 't', next)).filter((text) => !text.startsWith(first))).toEqual([
    `${second} interrupted`,
    `${next} running`,
    `${next} completed`,
  ]);
});

/** The events that thread `t` has when the storage is closed, which are gone with it. */
function toldAtClose(storage: Storage): readonly SeenEvent[] {
  const told: SeenEvent[] = [];
  const { close } = storage.sessions;
  storage.sessions.close = async () => {
    const { events } = await storage.sessions.read('t', 0, 1_000);
    told.push(...events.map(({ body }) => JSON.parse(body) as SeenEvent));
    return close.call(storage.sessions);
  };
  return told;
}

function interrupted(run_id: string): string {
  return JSON.stringify({ method: 'lifecycle', params: { namespace: [], run_id, data: { event: 'interrupted' } } });
}
