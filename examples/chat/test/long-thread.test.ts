import { expect, test } from 'vitest';
import type { ThreadState } from '../page/protocol.ts';
import { wholeStates } from '../page/whole-states.ts';
import { ChatServer } from './support/chat-server.ts';
import { eventsOf, isEnd } from './support/events.ts';
import { Script, ScriptedModel } from './support/scripted-model.ts';

const TURNS = 40;
const ANSWER = 'A sentence of words, say. '.repeat(58);

test('what is stored of a long thread, and what the page reads, grows with its turns and not with their square', async () => {
  const script = new Script();
  script.set({ say: ANSWER });
  await using chat = await ChatServer.start({ chatModel: new ScriptedModel(script) });
  await say(chat, TURNS);
  const [stored, read] = [await storedChars(chat), await readChars(chat)];
  await say(chat, TURNS);
  expect((await storedChars(chat)) / stored).toBeLessThan(2.2);
  expect((await readChars(chat)) / read).toBeLessThan(2.2);
});

test('a page of the history as changes has each message in few places, and is the same laid together', async () => {
  const script = new Script();
  script.set({ say: ANSWER });
  await using chat = await ChatServer.start({ chatModel: new ScriptedModel(script) });
  await say(chat, 10);
  const whole = await (await chat.post('/threads/long/history', { limit: 30 })).text();
  const changes = await (await chat.post('/threads/long/history', { limit: 30, values: 'changes' })).text();
  const states = JSON.parse(changes) as ThreadState[];
  const { kept, ...first } = states[0] as ThreadState;
  expect([states.length, kept, first.values.messages?.length]).toEqual([30, 0, 20]);
  expect(changes.length).toBeLessThan(4 * JSON.stringify(first).length);
  expect(wholeStates(states).map(({ kept: _, ...state }) => state)).toEqual(JSON.parse(whole));
});

/** Has so many turns, one after the other. */
async function say(chat: ChatServer, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    const since = await chat.storage.sessions.lastSeq('long');
    const runId = await chat.say('long', 'Go on.');
    for await (const event of eventsOf(chat, 'long', { channels: ['lifecycle'], since }))
      if (isEnd(event) && event.params.run_id === runId) break;
  }
}

async function storedChars({ storage }: ChatServer): Promise<number> {
  const { events, droppedThrough } = await storage.sessions.read('long', 0, 100_000);
  expect(droppedThrough).toBe(0);
  return events.reduce((sum, { body }) => sum + body.length, 0);
}

/** As the page asks for them. */
async function readChars(chat: ChatServer): Promise<number> {
  const last = await chat.storage.sessions.lastSeq('long');
  let chars = 0;
  for await (const event of eventsOf(chat, 'long', {
    channels: ['messages', 'lifecycle', 'values', 'checkpoints'],
    values: 'changes',
  })) {
    chars += JSON.stringify(event).length;
    if (event.seq === last) break;
  }
  return chars;
}
