import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SessionStore } from '../../server/storage/session-store.ts';
import { LAST, RUN_OUT, SHARED_KINDS, STORE_KINDS, type StoreKind } from './stores.ts';

describe.each(Object.keys(STORE_KINDS))('runs that wait in %s', (name) => {
  let kind: StoreKind;
  let here: SessionStore;
  let there: SessionStore;

  beforeAll(async () => {
    kind = await (STORE_KINDS[name] as () => Promise<StoreKind>)();
    [here, there] = [await kind.sessions(), await kind.sessions()];
  });
  afterAll(() => kind?.close());

  it('have the thread in their order, each by the end of the one before it', async () => {
    const thread = randomUUID();
    expect(await here.claim(thread, 'first', 'last')).toBe('first');
    expect(await there.claim(thread, 'third', 'last')).toBe('first');
    expect(await here.claim(thread, 'fourth', 'last')).toBe('first');
    expect(await there.claim(thread, 'second', 'next')).toBe('first');
    expect(await leases(here, thread)).toEqual(['held', 'waiting', 'waiting', 'waiting']);
    await here.end(thread, 'first', LAST);
    expect(await here.claim(thread, 'other')).toBe('second');
    expect(await leases(there, thread)).toEqual(['lost', 'held', 'waiting', 'waiting']);
    await there.end(thread, 'second', LAST);
    expect(await there.activeRun(thread)).toBe('third');
    await here.end(thread, 'third', LAST);
    expect(await leases(here, thread)).toEqual(['lost', 'lost', 'lost', 'held']);
    await there.end(thread, 'fourth', LAST);
    expect(await there.activeRun(thread)).toBeUndefined();
  });

  it('are those that asked with a place', async () => {
    const thread = randomUUID();
    await here.claim(thread, 'first');
    expect(await here.claim(thread, 'second')).toBe('first');
    expect(await here.renew(thread, 'second')).toBe('lost');
    await here.end(thread, 'first', LAST);
    expect(await there.activeRun(thread)).toBeUndefined();
  });

  it('can be ended before their turn, with an event that tells so, and the others keep theirs', async () => {
    const thread = randomUUID();
    await line(here, thread, 'first', 'second', 'third', 'fourth');
    const { length } = (await here.read(thread, 0, 10)).events;
    expect(await there.end(thread, 'third', LAST)).toBe(true);
    expect(await there.end(thread, 'third', LAST)).toBe(false);
    expect((await here.read(thread, 0, 10)).events).toHaveLength(length + 1);
    expect(await leases(here, thread)).toEqual(['held', 'waiting', 'lost', 'waiting']);
    await here.end(thread, 'first', LAST);
    await here.end(thread, 'second', LAST);
    expect(await leases(here, thread)).toEqual(['lost', 'lost', 'lost', 'held']);
    await here.end(thread, 'fourth', LAST);
  });

  it.each(['last', 'next'] as const)('are ten at most, asked for the place %s', async (place) => {
    const thread = randomUUID();
    await here.claim(thread, 'run');
    for (let waiting = 1; waiting <= 10; waiting += 1)
      expect(await (waiting % 2 ? here : there).claim(thread, `${waiting}`, place)).toBe('run');
    expect(await there.claim(thread, '11', place)).toBeUndefined();
    expect(await there.renew(thread, '11')).toBe('lost');
    // Whoever does not wait is told as ever.
    expect(await there.claim(thread, '11')).toBe('run');
    await here.end(thread, '5', LAST);
    expect(await there.claim(thread, '11', place)).toBe('run');
    expect(await there.claim(thread, '12', place)).toBeUndefined();
    await here.delete(thread);
  });

  it('are ten of however many ask at once, and each has the thread once', async () => {
    const thread = randomUUID();
    const ids = Array.from({ length: 20 }, (_, at) => `run-${at}`);
    const holders = await Promise.all(ids.map((id, at) => (at % 2 ? here : there).claim(thread, id, 'last')));
    expect(holders.filter((holder) => holder === undefined)).toHaveLength(9);
    const seen: string[] = [];
    for (let run = await here.activeRun(thread); run !== undefined; run = await here.activeRun(thread)) {
      seen.push(run);
      await Promise.all([here.end(thread, run, LAST), there.end(thread, run, LAST)]);
    }
    expect(seen).toHaveLength(11);
    expect(seen.sort()).toEqual(ids.filter((_, at) => holders[at] !== undefined).sort());
  });

  it('are told that they are cancelled when they have the thread, and they alone', async () => {
    const thread = randomUUID();
    await line(here, thread, 'first', 'second', 'third', 'fourth');
    expect(await there.cancel(thread, 'third')).toBe(true);
    expect(await there.cancel(thread, 'other')).toBe(false);
    expect(await leases(here, thread)).toEqual(['held', 'waiting', 'waiting', 'waiting']);
    await here.end(thread, 'first', LAST);
    expect(await here.renew(thread, 'second')).toBe('held');
    await here.end(thread, 'second', LAST);
    expect(await here.renew(thread, 'third')).toBe('cancelled');
    await here.end(thread, 'third', LAST);
    expect(await here.renew(thread, 'fourth')).toBe('held');
    await here.end(thread, 'fourth', LAST);
  });

  it('are forgotten with their thread', async () => {
    const thread = randomUUID();
    await line(here, thread, 'first', 'second');
    await there.delete(thread);
    expect(await leases(here, thread)).toEqual(['lost', 'lost', 'lost', 'lost']);
    expect(await here.claim(thread, 'next')).toBe('next');
    await here.end(thread, 'next', LAST);
    expect(await here.activeRun(thread)).toBeUndefined();
  });

  if (!SHARED_KINDS.has(name)) return;

  it('are given to tell of, when their process is gone, each in its turn and to one caller', async () => {
    const thread = randomUUID();
    const gone = await kind.sessions(RUN_OUT);
    await line(gone, thread, 'first', 'second', 'third');
    await here.claim(thread, 'fourth', 'last');
    for (const runId of ['first', 'second', 'third']) {
      const taken = await Promise.all([here, there, here, there].map((store) => store.takeCutRuns()));
      expect(taken.flat()).toEqual([{ threadId: thread, runId }]);
      expect(await gone.renew(thread, runId)).toBe('lost');
      expect(await here.end(thread, runId, LAST)).toBe(true);
    }
    expect(await here.takeCutRuns()).toEqual([]);
    expect(await here.renew(thread, 'fourth')).toBe('held');
    await here.end(thread, 'fourth', LAST);
  });

  it.each([
    ['before it', -30_000, []],
    ['after it', -90_000, ['second', 'fourth']],
  ])(
    'are given to tell of behind a run that goes on, %s when the next renewal is overdue',
    async (_when, leaseMs, given) => {
      const thread = randomUUID();
      const [gone, teller] = [await kind.sessions({ leaseMs }), await kind.sessions({ renewMs: 60_000 })];
      await here.claim(thread, 'first');
      await gone.claim(thread, 'second', 'last');
      await here.claim(thread, 'third', 'last');
      await gone.claim(thread, 'fourth', 'last');
      expect(await teller.takeCutRuns()).toEqual(given.map((runId) => ({ threadId: thread, runId })));
      for (const runId of given) expect(await teller.end(thread, runId, LAST)).toBe(true);
      expect(await teller.takeCutRuns()).toEqual([]);
      expect(await here.renew(thread, 'first')).toBe('held');
      await here.end(thread, 'first', LAST);
      expect(await here.activeRun(thread)).toBe(given.length === 0 ? 'second' : 'third');
      await here.delete(thread);
    },
  );

  it('are given to nobody while the one before them is being told of', async () => {
    const thread = randomUUID();
    const gone = await kind.sessions({ leaseMs: -60_000 });
    await line(gone, thread, 'first', 'second');
    expect(await here.takeCutRuns()).toEqual([{ threadId: thread, runId: 'first' }]);
    expect(await there.takeCutRuns()).toEqual([]);
    await here.delete(thread);
  });

  it('are given to nobody who renewed their lease', async () => {
    const thread = randomUUID();
    const gone = await kind.sessions(RUN_OUT);
    await here.claim(thread, 'first');
    await gone.claim(thread, 'second', 'last');
    await gone.claim(thread, 'third', 'last');
    expect(await there.takeCutRuns()).toEqual([]);
    expect(await here.renew(thread, 'second')).toBe('waiting');
    await here.end(thread, 'first', LAST);
    expect(await there.takeCutRuns()).toEqual([]);
    expect(await here.renew(thread, 'second')).toBe('held');
    await here.end(thread, 'second', LAST);
    expect(await there.takeCutRuns()).toEqual([{ threadId: thread, runId: 'third' }]);
    await here.end(thread, 'third', LAST);
  });
});

/** The first has the thread, the others wait. */
async function line(store: SessionStore, thread: string, ...runs: string[]): Promise<void> {
  for (const run of runs) await store.claim(thread, run, 'last');
}

function leases(store: SessionStore, thread: string): Promise<string[]> {
  return Promise.all(['first', 'second', 'third', 'fourth'].map((run) => store.renew(thread, run)));
}
