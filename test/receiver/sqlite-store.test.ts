import { renameSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { RunspanError } from '#src/base/errors.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { type ReaderCalls, SqliteStore, type WriterCalls } from '#src/receiver/store/sqlite/sqlite-store.ts';
import { StatisticsCache } from '#src/receiver/store/sqlite/statistics-cache.ts';
import type { Thread } from '#src/receiver/store/sqlite/threads/thread.ts';
import { Subscribers } from '#src/receiver/store/subscribers.ts';
import {
  DEFAULT_SCOPE,
  type ListQuery,
  parsedQuery,
  type RunOperation,
  type StatisticsQuery,
  StoreError,
} from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import { id, simple } from './conformance/support.ts';
import { LIMITS, openLocalStore, runsIn, storePath } from './local-store.ts';

const [ID, OTHER_ID] = [id(1), id(2)];
const post = (text = ''): RunOperation => simple(1, { inputs: { text } });

const answerNothing = async (): Promise<unknown> => ({ items: [] });

function make({ write = answerNothing, read = answerNothing, readSlowly = answerNothing, isReadOnly = false } = {}) {
  const subscribers = new Subscribers();
  const asked: string[] = [];
  const linkNamed = <Calls>(name: string, answer: () => Promise<unknown>): Thread<Calls> => ({
    call: ((method: string) => {
      asked.push(`${name} ${method}`);
      return answer();
    }) as never,
    hasEnded: false,
    close: async () => void asked.push(`${name} close`),
  });
  const links = {
    ...(!isReadOnly && { writer: linkNamed<WriterCalls>('writer', write) }),
    reader: linkNamed<ReaderCalls>('reader', read),
    openSlowReader: async () => linkNamed<ReaderCalls>('slow reader', readSlowly),
  };
  return { asked, subscribers, store: new SqliteStore('runs.db', links, subscribers) };
}

const list = (store: SqliteStore, query: ListQuery = {}) => store.list(DEFAULT_SCOPE, parsedQuery(query));
const traces = (store: SqliteStore, query: ListQuery = {}) => store.traces(DEFAULT_SCOPE, parsedQuery(query));

test('the deletions of the last minute are logged when the store is closed', async () => {
  const lines = logLines('warn');
  const { store, subscribers } = make();
  for (const traces of [3, 1]) {
    const limit = { option: 'a limit', level: 'warn' } as const;
    subscribers.report({ tenant: '', traces: [], forgotten: { traces, runs: traces }, limit });
  }
  await store.close();
  expect(lines).toEqual([
    "warn: the receiver's store has deleted 3 traces with 3 runs, the oldest first, to stay within a limit",
    "warn: the receiver's store has deleted 1 trace with 1 run, the oldest first, to stay within a limit",
  ]);
});

describe('a store on disk', () => {
  test('rejects a path that is not a string, and unknown and invalid options', async () => {
    const path = new URL('file:///runs.db') as unknown as string;
    await expect(SqliteStore.open(path)).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    const open = (options: object) => SqliteStore.open(storePath(), options);
    await expect(open({ maxBytes: 1024 ** 2 - 1 })).rejects.toThrow(
      'Expected `maxBytes` to be a whole number from 1048576',
    );
    await expect(open({ maxAgeMs: 0 })).rejects.toThrow('Expected `maxAgeMs` to be a whole number from 1');
    await expect(open({ prices: { m: 1 } })).rejects.toThrow('Expected the price of "m"');
    await expect(open({ readonly: true })).rejects.toThrow(
      'Expected the options to contain only maxAgeMs, projectMaxAgeMs, maxBytes, prices, priceTable, readOnly, got `readonly`',
    );
  });

  test('reads lists that an index has in order in the fast reader, and other lists in the slow one', async () => {
    const { asked, store } = make();
    await traces(store, { project: 'a', limit: 5, filter: 'status:error' });
    await traces(store, { project: 'a', filter: 'b' });
    await list(store, { sort: 'latency' });
    await list(store, { sort: 'latency', traceId: ID });
    await list(store, { filter: 'tag:a' });
    await list(store, { sort: 'latency', filter: `run:${ID},${OTHER_ID}` });
    await list(store, { filter: `trace:${ID},${OTHER_ID} tag:a` });
    await list(store, { filter: `run:${ID} OR tag:a` });
    expect(asked).toEqual([
      ...['reader traces', 'slow reader traces', 'slow reader list', 'reader list', 'slow reader list'],
      ...['reader list', 'reader list', 'slow reader list'],
    ]);
  });

  test('reads an export in the slow reader, unless it names runs or traces', async () => {
    const { asked, store } = make();
    for (const query of [{}, { project: 'a' }, { filter: 'user:ada' }]) await runsIn(store, query);
    for (const query of [{ traceId: ID }, { filter: `run:${ID},${OTHER_ID}` }]) await runsIn(store, query);
    const slow = ['slow reader runKeys', 'slow reader runKeys', 'slow reader runKeys'];
    expect(asked).toEqual([...slow, 'reader runKeys', 'reader runKeys']);
  });

  test('asks a slow reader if a query takes too long in the fast one, but not after another error', async () => {
    for (const reason of ['busy', 'unavailable'] as const) {
      const { asked, store } = make({ read: () => Promise.reject(new StoreError(reason, 'no')) });
      const answers = [store.outline(DEFAULT_SCOPE, ID), traces(store), store.details(DEFAULT_SCOPE, ID)];
      const outcomes = await Promise.allSettled(answers);
      const isBusy = reason === 'busy';
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([isBusy ? 'fulfilled' : 'rejected']));
      const slow = ['slow reader outline', 'slow reader traces', 'slow reader details'];
      expect(asked.filter((call) => call.startsWith('slow'))).toEqual(isBusy ? slow : []);
    }
  });

  test('does not let slow queries delay a query that was expected to be quick', async () => {
    const read = () => Promise.reject(new StoreError('busy', 'no'));
    const { asked, store } = make({ read, readSlowly: () => new Promise(() => {}) });
    for (let at = 0; at < 4; at += 1) void list(store, { filter: 'a' });
    await expect.poll(() => asked).toHaveLength(3);
    void store.outline(DEFAULT_SCOPE, ID);
    await expect.poll(() => asked.slice(3)).toEqual(['reader outline', 'slow reader outline']);
  });

  test('sends no signal to a thread', async () => {
    const store = await openLocalStore();
    const scope = { ...DEFAULT_SCOPE, signal: new AbortController().signal };
    await store.apply(scope, [post('zebra')]);
    expect((await store.list(scope, parsedQuery({ filter: 'zebra' }))).items).toHaveLength(1);
    expect((await store.traces(scope, parsedQuery({}))).items).toHaveLength(1);
  });

  test('writes pending runs, then closes its readers, and its writer once', async () => {
    const { asked, store } = make({ write: async () => {} });
    await list(store, { filter: 'a' });
    const posts = Array.from({ length: 100 }, () => post());
    void store.apply(DEFAULT_SCOPE, posts);
    await Promise.all([store.close(), store.close()]);
    expect(asked.slice(1)).toEqual(['writer apply', 'reader close', 'slow reader close', 'writer close']);
    await expect(list(store, { filter: 'a' })).rejects.toThrow('it is closed');
  });

  test('opens its slow reader again after a failure, and can be closed while that fails', async () => {
    const path = storePath();
    const store = await openLocalStore(path);
    await store.apply(DEFAULT_SCOPE, [post('zebra')]);
    renameSync(path, `${path}-moved`);
    await expect(list(store, { filter: 'zebra' })).rejects.toThrow(`There is no store at ${path}`);
    renameSync(`${path}-moved`, path);
    expect((await list(store, { filter: 'zebra' })).items).toHaveLength(1);
    await store.close();

    const broken = await openLocalStore(path);
    renameSync(path, `${path}-moved`);
    const failed = list(broken, { filter: 'zebra' }).catch(({ code }) => code);
    await broken.close();
    expect(await failed).toBe('RUNSPAN_STORE_FAILED');
    renameSync(`${path}-moved`, path);
    // The writer has released its lock.
    await openLocalStore(path);
  });
});

test('while 64 MiB are pending, requests are rejected as busy, and accepted again when these are written', async () => {
  const bareBytes = encodedOperation(post()).sizeBytes;
  for (const [waitingBytes, isTaken] of [
    [64 * 1024 * 1024 - 1, true],
    [64 * 1024 * 1024, false],
  ] as const) {
    const writes: (() => void)[] = [];
    const { store } = make({ write: () => new Promise<void>((resolve) => writes.push(resolve)) });
    const first = store.apply(DEFAULT_SCOPE, [post('x'.repeat(waitingBytes - bareBytes))]);
    const second = store.apply(DEFAULT_SCOPE, [post()]);
    if (!isTaken) {
      await expect(second).rejects.toMatchObject({ reason: 'busy', retryAfterS: 1 });
    }
    expect(writes).toHaveLength(isTaken ? 2 : 1);
    for (const write of writes) write();
    await first;
    void store.apply(DEFAULT_SCOPE, [post()]);
    expect(writes).toHaveLength(isTaken ? 3 : 2);
  }
});

test('a tenant with half of the 64 MiB is rejected as busy for a minute after another was', async () => {
  const writes: (() => void)[] = [];
  const { store } = make({ write: () => new Promise<void>((resolve) => writes.push(resolve)) });
  const [acme, bolt] = [{ tenant: 'acme' }, { tenant: 'bolt' }];
  const large = post('x'.repeat(33 * 1024 * 1024));
  const first = store.apply(acme, [large]);
  void store.apply(acme, [large]);
  await expect(store.apply(bolt, [post()])).rejects.toMatchObject({ reason: 'busy' });
  writes[0]?.();
  await first;
  await expect(store.apply(acme, [post()])).rejects.toMatchObject({ reason: 'busy' });
  void store.apply(bolt, [large]);
  // The test of readiness counts for no tenant.
  void store.apply(DEFAULT_SCOPE, []);
  expect(writes).toHaveLength(4);
});

test('if nothing can be written, requests are rejected as unavailable, with one line in the log per minute', async () => {
  const lines = logLines('warn');
  vi.useFakeTimers({ toFake: ['performance'] });
  const problem = 'The store runs.db cannot be used: the disk is full: free some space';
  const { store } = make({ write: () => Promise.reject(new RunspanError('RUNSPAN_STORE_FAILED', problem)) });
  const message = 'The disk of the store is full: see the log of the receiver';
  const told = { reason: 'unavailable', message, retryAfterS: 10 };
  for (let second = 0; second <= 60; second += 1) {
    await expect(store.apply(DEFAULT_SCOPE, [post()])).rejects.toMatchObject(told);
    await expect(store.revokeTokens(DEFAULT_SCOPE, 'id', 1)).rejects.toMatchObject(told);
    vi.advanceTimersByTime(1_000);
  }
  expect(lines).toEqual(Array(2).fill(`error: runs cannot be stored: ${problem}`));
});

describe('statistics', () => {
  const ask = (store: SqliteStore, query: StatisticsQuery = {}, scope: object = {}) =>
    store.statistics({ ...DEFAULT_SCOPE, ...scope }, parsedQuery(query));
  /** A store that answers the number of times that it was read. */
  const makeCounted = (isReadOnly = false) => {
    let reads = 0;
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    return make({ isReadOnly, readSlowly: async () => ++reads }).store;
  };

  test('are kept for 2 seconds, also if a time of the filter is relative to now, and until the store is closed', async () => {
    for (const query of [{}, { filter: 'since:24h type:llm before:1m' }]) {
      const store = makeCounted();
      const answers = [await ask(store, query)];
      for (const ms of [1_999, 1, 1_999]) {
        vi.advanceTimersByTime(ms);
        answers.push(await ask(store, query));
      }
      expect(answers).toEqual([1, 1, 2, 2]);
      await store.close();
      await expect(ask(store, query)).rejects.toThrow('it is closed');
    }
  });

  test('are not kept if another process may change the file', async () => {
    const store = makeCounted(true);
    expect([await ask(store), await ask(store)]).toEqual([1, 2]);
  });

  test('are kept for their scope and query alone, for 100 of them, and cannot be changed', async () => {
    const filters = 'a user:a user:b tokens>1e999 tokens>-1e999 since:1h since:2h before:1h'.split(' ');
    const queries: StatisticsQuery[] = [
      ...[{}, { groupBy: 'user' as const }, { groups: 1 }, { buckets: 1 }, { series: 1 }, { rankBy: 'cost' as const }],
      ...[{ timeZone: '60' }, { project: 'p' }, ...filters.map((filter) => ({ filter }))],
    ];
    const scopes = [{}, { project: 'p' }, { tenant: 'p' }, { tenant: 'p', project: 'p' }, { project: 'q' }];
    const store = makeCounted();
    const answers = () => Promise.all(scopes.flatMap((scope) => queries.map((query) => ask(store, query, scope))));
    const first = await answers();
    expect(first.toSorted((a, b) => Number(a) - Number(b))).toEqual(first.map((_, at) => at + 1));
    expect(await answers()).toEqual(first);
    for (let groups = 100; groups < 200; groups += 1) await ask(store, { groups });
    expect(await ask(store)).toBe(first.length + 101);

    const local = await openLocalStore(storePath(), LIMITS, undefined, new StatisticsCache());
    for (let times = 0; times < 2; times += 1) (await ask(local)).total.runs = 7;
    expect((await ask(local)).total.runs).toBe(0);
  });

  test('are without the runs of a deletion as soon as it is answered, also if they were being read', async () => {
    const store = await openLocalStore(storePath(), LIMITS, undefined, new StatisticsCache());
    await store.apply(DEFAULT_SCOPE, [post(), simple(2)]);
    expect((await ask(store)).total.runs).toBe(2);
    await store.remove(DEFAULT_SCOPE, { kind: 'trace', id: ID });
    expect((await ask(store)).total.runs).toBe(1);

    const reads: ((answer: unknown) => void)[] = [];
    const { store: slow } = make({ readSlowly: () => new Promise((resolve) => reads.push(resolve)) });
    const answers = [ask(slow), ask(slow, {}, { tenant: 'other' })];
    await expect.poll(() => reads).toHaveLength(2);
    await slow.remove(DEFAULT_SCOPE, { kind: 'trace', id: ID });
    for (const [at, answer] of ['outdated', 'of another tenant'].entries()) reads[at]?.(answer);
    await expect.poll(() => reads).toHaveLength(3);
    // Only one deletion makes the store read again, or many would leave no answer.
    await slow.remove(DEFAULT_SCOPE, { kind: 'trace', id: ID });
    reads[2]?.('new');
    expect(await Promise.all(answers)).toEqual(['new', 'of another tenant']);
  });
});
