import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StorageChoice } from '../server/storage/storage.ts';
import { ChatClient, endOf, isEndOf, type SeenEvent } from './support/chat-server.ts';
import { temporaryFolder } from './support/folder.ts';
import { PostgresServer } from './support/postgres.ts';

const SERVE = fileURLToPath(new URL('programs/serve.mjs', import.meta.url));
/** Limits for the tests. The lease is longer than a busy machine can delay a heartbeat. */
const LIMITS = { leaseMs: 2_500, heartbeatMs: 250 };
const LIFE_MAX_MS = 100_000;
const ENDED = 'the process of the run has ended';

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await PostgresServer.start();
});
afterAll(() => postgres?.close());

describe('a chat on a folder', () => {
  it('has its threads, states, histories and events after a crash', async () => {
    using folder = temporaryFolder();
    const [thread, other] = [randomUUID(), randomUUID()];
    await using before = await startChat({ data: folder.path });
    for (const text of ['hello', 'compare spool and queue']) {
      const { result } = await before.client.start(thread, text);
      await before.client.until(thread, isEndOf(result.run_id));
    }
    const { result } = await before.client.start(other, 'hello');
    const events = await before.client.until(other, isEndOf(result.run_id));
    const known = await everything(before.client, thread);
    expect(known.threads.map(({ id, title }) => [id, title])).toEqual([
      [other, 'hello'],
      [thread, 'hello'],
    ]);
    expect(known.history.length).toBeGreaterThan(8);
    await before.kill();

    await using after = await startChat({ data: folder.path });
    expect(await everything(after.client, thread)).toEqual(known);
    expect(await after.client.until(other, isEndOf(result.run_id))).toEqual(events);
    expect(events.map(endOf).filter(Boolean)).toEqual(['completed']);
  });

  it('reports a run that was in progress during a crash as interrupted, and continues with the next', async () => {
    using folder = temporaryFolder();
    const thread = randomUUID();
    await using before = await startChat({ data: folder.path }, true);
    const cut = await before.client.say(thread, 'hello');
    const seen = await before.client.until(thread, isOf(cut, 'messages'));
    await before.kill();

    await using after = await startChat({ data: folder.path });
    const replayed = await after.client.until(thread, isEndOf(cut));
    expect(replayed.slice(0, seen.length)).toEqual(seen);
    expect(replayed.at(-1)?.params.data).toMatchObject({ event: 'interrupted' });
    expect((await after.client.state(thread)).values.messages.map(({ type }) => type)).toEqual(['human']);
    const next = (await after.client.start(thread, 'hello again', { multitaskStrategy: 'reject' })).result.run_id;
    const all = await after.client.until(thread, isEndOf(next));
    expect(all.map(endOf).filter(Boolean)).toEqual(['interrupted', 'completed']);
    expect((await after.client.state(thread)).values.messages.map(({ type }) => type)).toEqual([
      'human',
      'human',
      'ai',
    ]);
  });
});

describe('two instances on PostgreSQL', () => {
  let choice: StorageChoice;
  let endless: RunningChat;
  let quick: RunningChat;

  beforeAll(async () => {
    choice = { postgres: await postgres.emptyDatabase() };
    [endless, quick] = await Promise.all([startChat(choice, true), startChat(choice)]);
  });
  afterAll(() => Promise.all([endless?.kill(), quick?.kill()]));

  it('stream a run of the other instance, and cancel it', async () => {
    const thread = randomUUID();
    const reading = quick.client.until(thread, ({ method }) => method === 'messages');
    const run = (await endless.client.start(thread, 'hello')).result.run_id;
    const live = await reading;
    expect(live.map(endOf).filter(Boolean)).toEqual([]);
    expect(await quick.client.cancel(thread, run)).toBe(202);
    const replays = await Promise.all([endless, quick].map(({ client }) => client.until(thread, isEndOf(run))));
    expect(replays[0]).toEqual(replays[1]);
    expect(replays[0]?.slice(0, live.length)).toEqual(live);
    expect(replays[0]?.at(-1)?.params.data).toMatchObject({ event: 'interrupted', error: 'cancelled' });
    expect(await quick.client.cancel(thread, run)).toBe(404);
  });

  it('keep one order of the runs of a thread, refuse a run, and cancel runs of the other instance', async () => {
    const thread = randomUUID();
    const first = (await endless.client.start(thread, 'hello')).result.run_id;
    expect(await quick.client.start(thread, 'refused', { multitaskStrategy: 'reject' })).toMatchObject({
      type: 'error',
      message: expect.stringContaining(first),
    });
    const second = (await endless.client.start(thread, 'hello')).result.run_id;
    const third = (await quick.client.start(thread, 'hello')).result.run_id;
    expect(await quick.client.cancel(thread, second)).toBe(202);
    expect(await quick.client.cancel(thread, first)).toBe(202);
    const events = await quick.client.until(thread, isEndOf(third));
    expect(ends(events)).toEqual([
      [first, 'interrupted'],
      [second, 'interrupted'],
      [third, 'completed'],
    ]);
    expect(runsOf(events)).toEqual([first, second, third]);
  });

  it('run one after the other if both start runs at once', async () => {
    const thread = randomUUID();
    const started = await Promise.all(
      Array.from({ length: 6 }, (_, at) => (at === 0 ? endless : quick).client.start(thread, `hello ${at}`)),
    );
    const runs = started.map(({ result }) => result.run_id);
    // This run would never end without being cancelled.
    await endless.client.cancel(thread, runs[0] as string);
    let left = runs.length;
    const events = await endless.client.until(thread, (event) => {
      left -= endOf(event) === undefined ? 0 : 1;
      return left === 0;
    });
    expect(runsOf(events).sort()).toEqual([...runs].sort());
    expect(Object.fromEntries(ends(events))).toEqual(
      Object.fromEntries(runs.map((run, at) => [run, at === 0 ? 'interrupted' : 'completed'])),
    );
  });

  it('report the runs of an instance that was killed as interrupted, in their order', async () => {
    const thread = randomUUID();
    const run = (await endless.client.start(thread, 'hello')).result.run_id;
    await quick.client.until(thread, isOf(run, 'messages'));
    const second = (await endless.client.start(thread, 'hello')).result.run_id;
    const third = (await endless.client.start(thread, 'hello')).result.run_id;
    const next = (await quick.client.start(thread, 'hello')).result.run_id;
    const reading = quick.client.until(thread, isEndOf(next));
    await endless.kill();
    const events = await reading;
    expect(ends(events)).toEqual([
      [run, 'interrupted'],
      [second, 'interrupted'],
      [third, 'interrupted'],
      [next, 'completed'],
    ]);
    expect(runsOf(events)).toEqual([run, second, third, next]);
    expect(events.filter(endOf).map(({ params }) => params.data.error)).toEqual([ENDED, ENDED, ENDED, undefined]);
  });
});

interface RunningChat extends AsyncDisposable {
  readonly client: ChatClient;
  kill(): Promise<void>;
}

async function startChat(choice: StorageChoice, isEndless = false): Promise<RunningChat> {
  const options = JSON.stringify({ choice, limits: LIMITS, isEndless });
  const child = spawn(process.execPath, [SERVE, options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIFE_MAX_MS,
  });
  const ended = once(child, 'close');
  const { value: url } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (url === undefined) throw new Error('the chat did not start');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return { client: new ChatClient(url), kill, [Symbol.asyncDispose]: kill };
}

/** Returns all data about a thread except its events. */
async function everything(client: ChatClient, thread: string) {
  return {
    threads: await client.get<{ readonly id: string; readonly title: string }[]>('/threads'),
    state: await client.state(thread),
    history: await client.history(thread, 3),
  };
}

function isOf(run: string, method: string): (event: SeenEvent) => boolean {
  return (event) => event.params.run_id === run && event.method === method;
}

function ends(events: readonly SeenEvent[]): [run: string, end: string][] {
  return events.flatMap((event): [string, string][] => {
    const end = endOf(event);
    return end === undefined ? [] : [[event.params.run_id, end]];
  });
}

/**
 * Returns the ids of runs in the order of their events. If the events of two runs were mixed, a run would be listed
 * twice.
 */
function runsOf(events: readonly SeenEvent[]): string[] {
  return events.map(({ params }) => params.run_id).filter((run, at, runs) => run !== runs[at - 1]);
}
