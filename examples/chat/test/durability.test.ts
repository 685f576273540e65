import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StorageChoice } from '../server/storage/storage.ts';
import { ChatClient, endOf, isEndOf, type SeenEvent } from './support/chat-client.ts';
import { temporaryFolder } from './support/folder.ts';
import { emptyDatabase, type StoreServer, startPostgres, startRedis } from './support/server-process.ts';

const SERVE = fileURLToPath(new URL('programs/serve.mjs', import.meta.url));
/** Longer than a machine that is busy takes to come to a renewal. */
const LIMITS = { leaseMs: 2_500, renewMs: 250 };
const LIFE_MAX_MS = 100_000;
const CUT = 'the process that it ran in has ended';

let servers: { readonly postgres: StoreServer; readonly redis: StoreServer };
beforeAll(async () => {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  servers = { postgres, redis };
});
afterAll(() => Promise.all([servers?.postgres.close(), servers?.redis.close()]));

describe('a chat on a folder', () => {
  it('has threads, their states and histories, and the events of the last run, after it was killed', async () => {
    using folder = temporaryFolder();
    const [thread, other] = [randomUUID(), randomUUID()];
    await using before = await startChat({ data: folder.path });
    for (const text of ['hello', 'compare spool and queue']) {
      const { result } = await before.client.start(thread, text);
      await before.client.events(thread, isEndOf(result.run_id));
    }
    const { result } = await before.client.start(other, 'hello');
    const events = await before.client.events(other, isEndOf(result.run_id));
    const told = await tellAll(before.client, thread);
    expect(told.threads.map(({ id, title }) => [id, title])).toEqual([
      [other, 'hello'],
      [thread, 'hello'],
    ]);
    expect(told.history.length).toBeGreaterThan(8);
    await before.kill();

    await using after = await startChat({ data: folder.path });
    expect(await tellAll(after.client, thread)).toEqual(told);
    expect(await after.client.events(other, isEndOf(result.run_id))).toEqual(events);
    expect(events.map(endOf).filter(Boolean)).toEqual(['completed']);
  });

  it('tells that a run was interrupted when it was killed in the middle of it, and goes on with the next', async () => {
    using folder = temporaryFolder();
    const thread = randomUUID();
    await using before = await startChat({ data: folder.path }, true);
    const cut = (await before.client.start(thread, 'hello')).result.run_id;
    const seen = await before.client.events(thread, isOf(cut, 'messages'));
    await before.kill();

    await using after = await startChat({ data: folder.path });
    const replayed = await after.client.events(thread, isEndOf(cut));
    expect(replayed.slice(0, seen.length)).toEqual(seen);
    expect(replayed.at(-1)?.params.data).toMatchObject({ event: 'interrupted' });
    expect((await after.client.state(thread)).values.messages.map(({ type }) => type)).toEqual(['human']);
    const next = (await after.client.start(thread, 'hello again', 'reject')).result.run_id;
    const all = await after.client.events(thread, isEndOf(next));
    expect(all.map(endOf).filter(Boolean)).toEqual(['interrupted', 'completed']);
    expect((await after.client.state(thread)).values.messages.map(({ type }) => type)).toEqual([
      'human',
      'human',
      'ai',
    ]);
  });

  it('tells of the runs that waited when it was killed, each once and behind the one that they waited for', async () => {
    using folder = temporaryFolder();
    const thread = randomUUID();
    await using before = await startChat({ data: folder.path }, true);
    const runs: string[] = [];
    for (const text of ['first', 'second', 'third']) runs.push((await before.client.start(thread, text)).result.run_id);
    await before.client.events(thread, isOf(runs[0] as string, 'messages'));
    await before.kill();

    await using after = await startChat({ data: folder.path });
    const next = (await after.client.start(thread, 'hello again', 'reject')).result.run_id;
    const events = await after.client.events(thread, isEndOf(next));
    expect(ends(events)).toEqual([...runs.map((run) => [run, 'interrupted']), [next, 'completed']]);
    expect(events.filter(endOf).map(({ params }) => params.data.error)).toEqual([CUT, CUT, CUT, undefined]);
  });
});

describe.each(['PostgreSQL', 'PostgreSQL and Redis'])('two instances on %s', (name) => {
  let choice: StorageChoice;
  let endless: RunningChat;
  let quick: RunningChat;

  beforeAll(async () => {
    const postgres = await emptyDatabase(servers.postgres);
    choice = { postgres, redis: name.includes('Redis') ? servers.redis.url : undefined };
    [endless, quick] = await Promise.all([startChat(choice, true), startChat(choice)]);
  });
  afterAll(() => Promise.all([endless?.kill(), quick?.kill()]));

  it('stream a run that is on the other, and end it from there', async () => {
    const thread = randomUUID();
    const reading = quick.client.events(thread, ({ method }) => method === 'messages');
    const run = (await endless.client.start(thread, 'hello')).result.run_id;
    const live = await reading;
    expect(live.map(endOf).filter(Boolean)).toEqual([]);
    expect(await quick.client.cancel(thread, run)).toBe(202);
    const replays = await Promise.all([endless, quick].map(({ client }) => client.events(thread, isEndOf(run))));
    expect(replays[0]).toEqual(replays[1]);
    expect(replays[0]?.slice(0, live.length)).toEqual(live);
    expect(replays[0]?.at(-1)?.params.data).toMatchObject({ event: 'interrupted', error: 'cancelled' });
    expect(await quick.client.cancel(thread, run)).toBe(404);
  });

  it('have the same threads, states and histories', async () => {
    const thread = randomUUID();
    const run = (await quick.client.start(thread, 'compare spool and queue')).result.run_id;
    const events = await endless.client.events(thread, isEndOf(run));
    expect(await quick.client.events(thread, isEndOf(run))).toEqual(events);
    expect(events.map(({ event_id }) => event_id)).toEqual([...new Set(events.map(({ event_id }) => event_id))]);
    expect(await tellAll(endless.client, thread)).toEqual(await tellAll(quick.client, thread));
    expect((await tellAll(endless.client, thread)).threads[0]?.id).toBe(thread);
  });

  it('do two runs of a thread one after the other, or refuse the second', async () => {
    const thread = randomUUID();
    const first = (await endless.client.start(thread, 'hello')).result.run_id;
    expect(await quick.client.start(thread, 'refused', 'reject')).toMatchObject({
      type: 'error',
      message: expect.stringContaining(first),
    });
    const second = (await quick.client.start(thread, 'hello', 'enqueue')).result.run_id;
    await endless.client.cancel(thread, first);
    expect(ends(await endless.client.events(thread, isEndOf(second)))).toEqual([
      [first, 'interrupted'],
      [second, 'completed'],
    ]);
    expect(runsOf(await endless.client.events(thread, isEndOf(second)))).toEqual([first, second]);
  });

  it('have runs wait in one order, wherever they do, and cancel those that wait in the other', async () => {
    const thread = randomUUID();
    const first = (await endless.client.start(thread, 'hello')).result.run_id;
    const second = (await endless.client.start(thread, 'hello')).result.run_id;
    const third = (await quick.client.start(thread, 'hello')).result.run_id;
    expect(await quick.client.cancel(thread, second)).toBe(202);
    expect(await quick.client.cancel(thread, first)).toBe(202);
    expect(ends(await quick.client.events(thread, isEndOf(third)))).toEqual([
      [first, 'interrupted'],
      [second, 'interrupted'],
      [third, 'completed'],
    ]);
  });

  it('do runs that are started on both at once one after the other', async () => {
    const thread = randomUUID();
    const started = await Promise.all(
      Array.from({ length: 6 }, (_, at) => (at === 0 ? endless : quick).client.start(thread, `hello ${at}`)),
    );
    const runs = started.map(({ result }) => result.run_id);
    // The one without an end has to be given one, whenever its turn comes.
    await endless.client.cancel(thread, runs[0] as string);
    let left = runs.length;
    const events = await endless.client.events(thread, (event) => {
      left -= endOf(event) === undefined ? 0 : 1;
      return left === 0;
    });
    expect(runsOf(events).sort()).toEqual([...runs].sort());
    expect(Object.fromEntries(ends(events))).toEqual(
      Object.fromEntries(runs.map((run, at) => [run, at === 0 ? 'interrupted' : 'completed'])),
    );
  });

  it('tell of a run that waited in one that was killed, while the run before it goes on', async () => {
    const thread = randomUUID();
    await using third = await startChat(choice, true);
    const run = (await endless.client.start(thread, 'hello')).result.run_id;
    const waiting = (await third.client.start(thread, 'hello')).result.run_id;
    await third.kill();
    expect(ends(await quick.client.events(thread, isEndOf(waiting)))).toEqual([[waiting, 'interrupted']]);
    expect(await quick.client.cancel(thread, run)).toBe(202);
    expect(ends(await quick.client.events(thread, isEndOf(run)))).toEqual([
      [waiting, 'interrupted'],
      [run, 'interrupted'],
    ]);
  });

  it('tell the readers of one that was killed that its run was interrupted, and so were those that waited in it', async () => {
    const thread = randomUUID();
    const run = (await endless.client.start(thread, 'hello')).result.run_id;
    await quick.client.events(thread, isOf(run, 'messages'));
    const second = (await endless.client.start(thread, 'hello')).result.run_id;
    const third = (await endless.client.start(thread, 'hello')).result.run_id;
    const next = (await quick.client.start(thread, 'hello')).result.run_id;
    const reading = quick.client.events(thread, isEndOf(next));
    await endless.kill();
    const events = await reading;
    expect(ends(events)).toEqual([
      [run, 'interrupted'],
      [second, 'interrupted'],
      [third, 'interrupted'],
      [next, 'completed'],
    ]);
    expect(runsOf(events)).toEqual([run, second, third, next]);
    expect(events.filter(endOf).map(({ params }) => params.data.error)).toEqual([CUT, CUT, CUT, undefined]);
  });
});

interface RunningChat extends AsyncDisposable {
  readonly client: ChatClient;
  /** Ends it as nothing can be done about. */
  kill(): Promise<void>;
}

async function startChat(choice: StorageChoice, isEndless = false): Promise<RunningChat> {
  const options = JSON.stringify({ choice, limits: LIMITS, isEndless });
  const child = spawn(process.execPath, [SERVE, options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIFE_MAX_MS,
  });
  const ended = once(child, 'close');
  // One that ends before it is ready has no line.
  const { value: url } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (url === undefined) throw new Error('the chat did not start');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return { client: new ChatClient(url), kill, [Symbol.asyncDispose]: kill };
}

/** All that is told of a thread beside its events. */
async function tellAll(client: ChatClient, thread: string) {
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

/** The runs by the order of their events; one that was mixed with another would be there twice. */
function runsOf(events: readonly SeenEvent[]): string[] {
  return events.map(({ params }) => params.run_id).filter((run, at, runs) => run !== runs[at - 1]);
}
