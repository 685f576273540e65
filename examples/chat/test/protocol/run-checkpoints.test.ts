import { expect, onTestFinished, test } from 'vitest';
import { memoryStorage } from '../../server/storage/storage.ts';
import { ChatServer } from '../support/chat-server.ts';
import { untilEnd } from '../support/events.ts';

test.each(['put', 'putWrites'] as const)(
  'a checkpointer whose %s fails ends the run, and not the process',
  async (name) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const storage = memoryStorage();
    const { checkpointer } = storage;
    const whole = checkpointer[name].bind(checkpointer) as (...args: unknown[]) => Promise<never>;
    let calls = 0;
    let isAway = true;
    Object.assign(checkpointer, {
      [name]: async (...args: unknown[]) => {
        calls += 1;
        if (calls <= 2 || !isAway) return whole(...args);
        // As a store does whose connection is refused: a little later.
        await new Promise(setImmediate);
        throw new Error('connection refused');
      },
    });
    await using chat = await ChatServer.start({ storage });
    const runId = await chat.say('t', 'Compare heron and otter');
    const events = await untilEnd(chat, 't', runId);
    expect(events.at(-1)?.params.data).toMatchObject({ event: 'failed', error: 'Its checkpoints could not be kept.' });
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
    expect(chat.lines[0]).toBe(`the checkpoints of run ${runId} cannot be written: connection refused`);
    isAway = false;
    const next = await untilEnd(chat, 't', await chat.say('t', 'Hello'));
    expect(next.at(-1)?.params.data.event).toBe('completed');
  },
);
