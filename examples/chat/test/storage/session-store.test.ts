import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewEvent, SessionStore, StoredEvent, Wake } from '../../server/storage/session-store.ts';
import { LAST, RUN_OUT, SHARED_KINDS, STORE_KINDS, type StoreKind } from './stores.ts';

describe.each(Object.keys(STORE_KINDS))('sessions in %s', (name) => {
  let kind: StoreKind;
  let here: SessionStore;
  let there: SessionStore;

  beforeAll(async () => {
    kind = await (STORE_KINDS[name] as () => Promise<StoreKind>)();
    [here, there] = [await kind.sessions(), await kind.sessions()];
  });
  afterAll(() => kind?.close());

  it('gives events back as they were, in their order', async () => {
    const thread = randomUUID();
    const events = [event('a'), { ...event('b'), channel: 'custom:x', namespace: ['tools:1', 'model:2'] }, event('c')];
    await here.append(thread, events.slice(0, 2));
    await there.append(thread, events.slice(2));
    const read = await there.read(thread, 0, 10);
    expect(read.droppedThrough).toBe(0);
    expect(read.events.map(({ seq: _, ...rest }) => rest)).toEqual(events);
  });

  it('has nothing of a thread that is unknown', async () => {
    expect(await here.read(randomUUID(), 0, 10)).toEqual({ events: [], droppedThrough: 0 });
    expect(await here.activeRun(randomUUID())).toBeUndefined();
    expect(await here.renew(randomUUID(), 'run')).toBe('lost');
    expect(await here.cancel(randomUUID(), 'run')).toBe(false);
    expect(await here.end(randomUUID(), 'run', LAST)).toBe(false);
    await here.delete(randomUUID());
  });

  it('numbers events without a gap, and never twice, though the thread is deleted', async () => {
    const thread = randomUUID();
    const numbers: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await here.append(thread, events(500));
      await there.append(thread, events(1));
      const seqs = (await here.read(thread, 0, 1_000)).events.map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_, at) => (seqs[0] as number) + at));
      numbers.push(...seqs);
      await here.delete(thread);
      expect((await there.read(thread, 0, 10)).events).toEqual([]);
    }
    expect(numbers).toHaveLength(3 * 501);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
  });

  it.each([9, 10, 11])('gives a page of %i where there are 10', async (limit) => {
    const thread = randomUUID();
    await here.append(thread, events(10));
    const page = await here.read(thread, 0, limit);
    expect(page.events.map(({ body }) => body)).toEqual(bodies(0, Math.min(limit, 10)));
    const last = page.events.at(-1)?.seq as number;
    expect((await here.read(thread, last, limit)).events.map(({ body }) => body)).toEqual(bodies(limit, 10));
    expect((await here.read(thread, last - 1, 1)).events[0]?.seq).toBe(last);
  });

  it.each([39, 40, 41, 95])('keeps 40 events of %i where 40 are its bound', async (count) => {
    const store = await kind.sessions({ eventsMax: 40 });
    const thread = randomUUID();
    for (let at = 0; at < count; at += 1) await store.append(thread, [event(`${at}`)]);
    const { events: kept, droppedThrough } = await store.read(thread, 0, 1_000);
    expect(kept.map(({ body }) => body)).toEqual(bodies(Math.max(0, count - 40), count));
    expect(droppedThrough).toBe(count <= 40 ? 0 : (kept[0]?.seq as number) - 1);
  });

  it.each([10, 11, 25])('keeps 1000 bytes of %i events with 100 each', async (count) => {
    const store = await kind.sessions({ bytesMax: 1_000 });
    const thread = randomUUID();
    await store.append(thread, sized(count - 1));
    await store.append(thread, sized(1));
    const { events: kept, droppedThrough } = await store.read(thread, 0, 1_000);
    expect(kept).toHaveLength(10);
    expect(droppedThrough).toBe(count === 10 ? 0 : (kept[0]?.seq as number) - 1);
  });

  it('wakes those who watch a thread, in each instance, and nobody else', async () => {
    const thread = randomUUID();
    const watched = [watch(here, thread), watch(there, thread)];
    const other = watch(there, randomUUID());
    await here.append(thread, [event('a')]);
    await Promise.all(watched.map((watcher) => watcher.heard('events')));
    expect(await here.claim(thread, 'run')).toBe('run');
    expect(await there.cancel(thread, 'run')).toBe(true);
    await Promise.all(watched.map((watcher) => watcher.heard('run')));
    watched[0]?.end();
    await here.end(thread, 'run', LAST);
    await here.delete(thread);
    await watched[1]?.heard('run', 3);
    expect(watched[0]?.count('run')).toBe(1);
    expect(other.count('events') + other.count('run')).toBe(0);
    other.end();
    watched[1]?.end();
  });

  it('gives a thread to one run, of however many that ask at once', async () => {
    const thread = randomUUID();
    const ids = Array.from({ length: 20 }, (_, at) => `run-${at}`);
    const holders = await Promise.all(ids.map((id, at) => (at % 2 === 0 ? here : there).claim(thread, id)));
    const [holder, ...others] = [...new Set(holders)] as [string, ...string[]];
    expect(others).toEqual([]);
    expect(ids).toContain(holder);
    expect(await there.activeRun(thread)).toBe(holder);
    expect(await there.claim(thread, holder)).toBe(holder);
    expect(await here.end(thread, 'run-of-nobody', LAST)).toBe(false);
    expect(await there.activeRun(thread)).toBe(holder);
    expect(await there.end(thread, holder, LAST)).toBe(true);
    expect(await here.claim(thread, 'next')).toBe('next');
    await here.end(thread, 'next', LAST);
    expect(await here.activeRun(thread)).toBeUndefined();
  });

  it('adds the last event of a run when it takes the thread from it, and nothing for a run that has it no more', async () => {
    const thread = randomUUID();
    await here.append(thread, [event('before')]);
    await here.claim(thread, 'run');
    const watcher = watch(there, thread);
    expect(await here.end(thread, 'other', event('of another'))).toBe(false);
    expect(await here.end(thread, 'run', event('last'))).toBe(true);
    await watcher.heard('run');
    watcher.end();
    expect(await there.activeRun(thread)).toBeUndefined();
    expect(await here.end(thread, 'run', event('again'))).toBe(false);
    await here.append(thread, [event('after')]);
    const { events: kept } = await there.read(thread, 0, 10);
    expect(kept.map(({ body }) => body)).toEqual(['before', 'last', 'after'].map((text) => event(text).body));
    const first = kept[0]?.seq ?? 0;
    expect(kept.map(({ seq }) => seq - first)).toEqual([0, 1, 2]);
    expect(await there.lastSeq(thread)).toBe(first + 2);
  });

  it('tells a run that it is to end, or that it has lost its thread', async () => {
    const thread = randomUUID();
    await here.claim(thread, 'first');
    expect(await here.renew(thread, 'first')).toBe('held');
    expect(await there.cancel(thread, 'second')).toBe(false);
    expect(await here.renew(thread, 'first')).toBe('held');
    expect(await there.cancel(thread, 'first')).toBe(true);
    expect(await here.renew(thread, 'first')).toBe('cancelled');
    await here.end(thread, 'first', LAST);
    expect(await here.renew(thread, 'first')).toBe('lost');
    await here.claim(thread, 'second');
    expect(await here.renew(thread, 'second')).toBe('held');
    await there.delete(thread);
    expect(await here.renew(thread, 'second')).toBe('lost');
  });

  it('takes no lease away that has not run out', async () => {
    const thread = randomUUID();
    await here.claim(thread, 'run');
    expect(await there.takeCutRuns()).toEqual([]);
    await here.end(thread, 'run', LAST);
    expect(await there.takeCutRuns()).toEqual([]);
  });

  it('loses none of 1000 appends at once, doubles none, and shows none before those with smaller numbers', async () => {
    const thread = randomUUID();
    const appends = Promise.all(
      Array.from({ length: 1_000 }, (_, at) => (at % 2 === 0 ? here : there).append(thread, [event(`${at}`)])),
    );
    const seen = await Promise.all([here, there].map((store) => follow(store, thread, 1_000)));
    await appends;
    for (const read of seen) {
      const seqs = read.map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_, at) => (seqs[0] as number) + at));
      expect(new Set(read.map(({ body }) => body)).size).toBe(1_000);
    }
    expect(seen[1]).toEqual(seen[0]);
  });

  it.each([
    ['NUL', '\u0000'],
    ['halves of characters', '\ud83d \ude00'],
    ['1 MiB', 'x'.repeat(1024 * 1024)],
    ['quotes and braces', `'"\\{},;--$1 ${'\n'.repeat(3)} \u2028`],
  ])('keeps %s', async (_what, text) => {
    const thread = randomUUID();
    const hostile = {
      channel: `custom:${text.slice(0, 100)}`,
      namespace: [text.slice(0, 100)],
      body: JSON.stringify({ text }),
    };
    await here.append(thread, [hostile]);
    const [read] = (await there.read(thread, 0, 1)).events;
    expect(read).toEqual({ ...hostile, seq: read?.seq });
  });

  it('keeps threads apart whatever their ids are', async () => {
    const ids = ['%', '_', 'a:b', 'a', '*', 'chat:log:a', '{a}', "'", '\\', 'é', 'x'.repeat(9_000)];
    for (const id of ids) await here.append(id, [event(id)]);
    for (const id of ids) {
      expect((await there.read(id, 0, 10)).events.map(({ body }) => body)).toEqual([event(id).body]);
      const watcher = watch(there, id);
      await here.append(id, [event('more')]);
      await watcher.heard('events');
      watcher.end();
      await here.delete(id);
    }
  });

  if (!SHARED_KINDS.has(name)) return;

  it('gives each lease that has run out to one caller, and the thread to nobody before that is told', async () => {
    const threads = Array.from({ length: 20 }, () => randomUUID());
    const gone = await kind.sessions(RUN_OUT);
    for (const thread of threads) await gone.claim(thread, `run of ${thread}`);
    const watcher = watch(here, threads[0] as string);
    const taken = await Promise.all(Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? here : there).takeCutRuns()));
    const cut = taken.flat().sort((a, b) => a.threadId.localeCompare(b.threadId));
    expect(cut).toEqual(threads.sort().map((threadId) => ({ threadId, runId: `run of ${threadId}` })));
    for (const { threadId, runId } of cut) {
      expect(await gone.renew(threadId, runId)).toBe('lost');
      expect(await here.claim(threadId, 'next')).toBe(runId);
      await there.end(threadId, runId, LAST);
      expect(await here.claim(threadId, 'next')).toBe('next');
      expect(await here.renew(threadId, 'next')).toBe('held');
      await here.end(threadId, 'next', LAST);
    }
    await watcher.heard('run');
    watcher.end();
  });

  it('gives a lease to another when its taker has not told of it in time', async () => {
    const thread = randomUUID();
    const gone = await kind.sessions(RUN_OUT);
    await gone.claim(thread, 'run');
    expect(await gone.takeCutRuns()).toEqual([{ threadId: thread, runId: 'run' }]);
    expect(await here.takeCutRuns()).toEqual([{ threadId: thread, runId: 'run' }]);
    expect(await there.takeCutRuns()).toEqual([]);
    await here.end(thread, 'run', LAST);
  });

  it('rejects while the store is away, and goes on when it is back', async () => {
    const server = kind.server as NonNullable<StoreKind['server']>;
    const thread = randomUUID();
    await here.append(thread, [event('before')]);
    await here.claim(thread, 'run');
    const watchers = [watch(here, thread), watch(there, thread)];
    await server.kill();
    for (const call of [
      () => here.append(thread, [event('lost')]),
      () => here.read(thread, 0, 10),
      () => here.renew(thread, 'run'),
      () => here.takeCutRuns(),
      () => kind.sessions(),
    ]) {
      const error: unknown = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(`${(error as Error).stack} ${JSON.stringify(error)}`).not.toContain('secret-of-chat');
    }
    await server.start();
    await Promise.all(watchers.map((watcher) => watcher.heard('events')));
    await Promise.all(watchers.map((watcher) => watcher.heard('run')));
    await until(() => here.append(thread, [event('after')]));
    expect((await there.read(thread, 0, 10)).events.map(({ body }) => body)).toEqual([
      event('before').body,
      event('after').body,
    ]);
    expect(await here.renew(thread, 'run')).toBe('held');
    await watchers[1]?.heard('events', 2);
    for (const watcher of watchers) watcher.end();
    await here.end(thread, 'run', LAST);
  });
});

function event(text: string): NewEvent {
  return { channel: 'messages', namespace: [], body: JSON.stringify({ text }) };
}

function events(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, at) => event(`${at}`));
}

function bodies(from: number, to: number): string[] {
  return events(to)
    .map(({ body }) => body)
    .slice(from);
}

/** Of 100 bytes each. */
function sized(count: number): NewEvent[] {
  return Array.from({ length: count }, () => ({ ...event(''), body: JSON.stringify({ text: 'x'.repeat(89) }) }));
}

/** Reads a thread as a stream does: what is there, then what comes, until there were so many. */
async function follow(store: SessionStore, thread: string, count: number): Promise<StoredEvent[]> {
  const read: StoredEvent[] = [];
  const watcher = watch(store, thread);
  for (let wakes = 1; read.length < count; wakes += 1) {
    for (;;) {
      const { events: page } = await store.read(thread, read.at(-1)?.seq ?? 0, 50);
      if (page.length === 0) break;
      read.push(...page);
    }
    if (read.length < count) await watcher.heard('events', wakes);
  }
  watcher.end();
  return read;
}

/** Counts what a watcher is woken with. */
function watch(store: SessionStore, thread: string) {
  const heard = { events: 0, run: 0 };
  const waiting: (() => void)[] = [];
  const wake: Wake = (what) => {
    heard[what] += 1;
    for (const resolve of waiting.splice(0)) resolve();
  };
  const end = store.watch(thread, wake);
  return {
    end,
    count: (what: 'events' | 'run') => heard[what],
    heard: async (what: 'events' | 'run', times = 1) => {
      while (heard[what] < times) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

/** Tries until it goes: one of two connections may be back before the other. */
async function until(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
