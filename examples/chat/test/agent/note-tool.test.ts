import { expect, test } from 'vitest';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';

test.each([
  [{ decision: 'sure' }, 'Nothing was saved: the answer neither approves nor declines.'],
  [{ decision: 'decline' }, 'The user declined; nothing was saved.'],
  [{ decision: 'approve', text: 5 }, 'Nothing was saved: what is to be saved instead is no text.'],
])('a tool that is given %j saves nothing, and says why', async (input, result) => {
  await using chat = await ChatServer.start();
  await untilEnd(chat, 't', await chat.say('t', 'Save a note: buy milk'));
  const run = await chat.command('t', 'run.start', { input });
  const events = await untilEnd(chat, 't', (run.result as { run_id: string }).run_id);
  expect(chat.notes).toEqual([]);
  expect(JSON.stringify(events)).toContain(result);
});
