import { expect, onTestFinished, test } from 'vitest';
import { LocalModel } from '../server/agent/local-model.ts';
import { ChatServer } from './support/chat-server.ts';
import { eventsOf, isEnd, type SeenEvent } from './support/events.ts';

const THREADS = 200;
const MIB = 1_024 * 1_024;

test('two hundred threads stream at once, and each reader has every event of its thread once', async () => {
  await using chat = await ChatServer.start({ chatModel: new LocalModel({ wordDelayMs: 5 }) });
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const before = process.memoryUsage().rss;
  const ids = Array.from({ length: THREADS }, (_, index) => `load-${index}`);
  // Each reader is there before its run.
  const counts = await Promise.all(
    ids.map(async (id) => {
      const reader = countUntilEnd(chat, id);
      await chat.say(id, 'Compare heron and otter');
      return reader;
    }),
  );
  const grown = process.memoryUsage().rss - before;

  for (const [index, { seqs, doubled }] of counts.entries()) {
    const stored = await chat.storage.sessions.read(ids[index] ?? '', 0, 10_000);
    expect(seqs).toEqual(stored.events.map(({ seq }) => seq));
    expect(doubled).toBe(0);
  }
  const total = counts.reduce((sum, { seqs }) => sum + seqs.length, 0);
  expect(total).toBeGreaterThan(THREADS * 150);
  // The clients are in this process as well.
  expect(grown / MIB).toBeLessThan(1_024);
  expect(warnings).not.toContain('MaxListenersExceededWarning');
  process.stdout.write(
    `${total} events in ${THREADS} threads; ${Math.round(grown / MIB)} MiB more, the clients included\n`,
  );
});

test('a thread of more than ten thousand events is replayed whole', async () => {
  await using chat = await ChatServer.start();
  const body = JSON.stringify({ method: 'custom', params: { namespace: [], data: { payload: 'x'.repeat(200) } } });
  const events = Array.from({ length: 10_001 }, () => ({ channel: 'custom', namespace: [], body }));
  await chat.storage.sessions.append('long', events);
  const runId = await chat.say('long', 'Hello');
  let replayed = 0;
  for await (const event of eventsOf(chat, 'long')) {
    if (event.method === 'custom') replayed += 1;
    if (isEnd(event) && event.params.run_id === runId) break;
  }
  expect(replayed).toBe(10_001);
});

async function countUntilEnd(chat: ChatServer, threadId: string): Promise<{ seqs: number[]; doubled: number }> {
  const seqs: number[] = [];
  const seen = new Set<string>();
  const take = (event: SeenEvent): void => {
    seqs.push(event.seq);
    seen.add(event.event_id);
  };
  for await (const event of eventsOf(chat, threadId)) {
    take(event);
    if (isEnd(event)) break;
  }
  return { seqs, doubled: seqs.length - seen.size };
}
