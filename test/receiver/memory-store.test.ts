import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { AssembledRun } from '#src/receiver/domain/trace/assemble.ts';
import {
  DEFAULT_SCOPE,
  type ListQuery,
  MemoryStore,
  type MemoryStoreOptions,
  type Parsed,
  parsedQuery,
  type RunOperation,
  type Scope,
  type StoreChange,
} from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import { id, numberOf, post } from './conformance/support.ts';
import { runsIn } from './local-store.ts';

const attached = (index: number, size: number): RunOperation => ({
  ...post(index),
  attachments: [{ name: 'a', bytes: new Uint8Array(size), mimeType: 'x/y' }],
});

function sizeOf(operation: RunOperation): number {
  const run = new AssembledRun(operation.id, 1);
  run.take(operation);
  return run.sizeBytes;
}

async function indexesAfter(limits: MemoryStoreOptions, ...batches: RunOperation[][]): Promise<number[]> {
  const store = new MemoryStore(limits);
  for (const batch of batches) await store.apply(DEFAULT_SCOPE, batch);
  return (await runsIn(store)).map((run) => numberOf(run.id));
}

beforeEach(() => diagnostics.setLog('silent'));
afterEach(() => diagnostics.setLog('warn'));

test('a record that cannot be read leaves the run as it was', () => {
  const [run, other] = [new AssembledRun(id(1), 1), new AssembledRun(id(1), 1)];
  for (const one of [run, other]) one.take(post(1, { inputs: { question: 'Why?' } }));
  const outputs = new Proxy({}, { ownKeys: () => expect.fail('unreadable') });
  const { attachments } = attached(1, 1);
  const fields = { name: 'other', outputs };
  expect(() => run.take({ kind: 'patch', id: id(1), fields, attachments })).toThrow('unreadable');
  expect(run).toEqual(other);
  for (const one of [run, other]) one.take({ ...post(1, { name: 'late', tags: ['a'] }), kind: 'post' });
  expect(run.fields).toEqual(other.fields);
});

describe('a memory store', () => {
  const three = [[post(1), post(2, { parent: 1 })], [post(3)]];
  const bytes = three.flat().reduce((sum, operation) => sum + sizeOf(operation), 0);
  const large = post(2, { inputs: { text: 'x'.repeat(10_000) } });
  const brackets = post(2, { inputs: { a: Array.from({ length: 1_000 }, () => []) } });
  const hidden: RunOperation = { kind: 'patch', id: id(9), fields: { outputs: {} }, attachments: [] };

  test.each<[string, MemoryStoreOptions, RunOperation[][], number[]]>([
    ['keeps all runs at the limit of runs', { runsMax: 3 }, three, [1, 2, 3]],
    ['deletes the oldest trace as a whole above the limit of runs', { runsMax: 2 }, three, [3]],
    ['keeps all runs at the limit of bytes', { bytesMax: bytes }, three, [1, 2, 3]],
    ['deletes the oldest trace as a whole above the limit of bytes', { bytesMax: bytes - 1 }, three, [3]],
    ['counts attachments', { bytesMax: 20_000 }, [[attached(1, 9_000)], [attached(2, 9_000)]], [2]],
    ['keeps a small run at the lowest limit of bytes', { bytesMax: 4_096 }, [[post(1)]], [1]],
    [
      'deletes the trace whose first run is oldest',
      { runsMax: 2 },
      [[post(1)], [post(3)], [post(2, { parent: 1 })]],
      [3],
    ],
    ['counts repeated messages once', { bytesMax: 9_000, runsMax: 2 }, [[post(1)], Array(50).fill(post(2))], [1, 2]],
    ['deletes a trace that exceeds the limit alone', { bytesMax: 9_000 }, [[post(1)], [large], [post(3)]], [3]],
    ['counts small values by their size in memory', { bytesMax: 60_000 }, [[post(1)], [brackets]], []],
    ['counts runs that are not visible, and deletes them first', { runsMax: 1 }, [[post(1)], [hidden]], [1]],
    [
      'uses defaults for undefined options',
      { runsMax: undefined as never, bytesMax: undefined as never },
      three,
      [1, 2, 3],
    ],
  ])('%s', async (_, limits, batches, kept) => {
    expect(await indexesAfter(limits, ...batches)).toEqual(kept);
  });

  test.each<[unknown, string]>([
    [{ runsMax: 0 }, 'Expected `runsMax` to be a whole number from 1, got the number 0'],
    [{ bytesMax: Number.NaN }, 'Expected `bytesMax` to be a whole number from 4096, got the number NaN'],
    [{ bytesMax: 4_095 }, 'Expected `bytesMax` to be a whole number from 4096, got the number 4095'],
    [{ bytesmax: 1 }, 'Expected the options to contain only runsMax, bytesMax, prices, priceTable, got `bytesmax`'],
    [{ runsMax: '5' }, 'Expected `runsMax` to be a whole number from 1, got "5"'],
    [null, 'Expected the options to be an object, got null'],
    [[], 'Expected the options to be an object, got an array'],
  ])('refuses the options %j', (options, message) => {
    const make = () => new MemoryStore(options as MemoryStoreOptions);
    expect(make).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message }));
  });

  test('reports deleted traces to listeners, and logs them once a minute at most', async () => {
    const lines = logLines('warn');
    const store = new MemoryStore({ runsMax: 3 });
    const changes: StoreChange[] = [];
    store.subscribe(DEFAULT_SCOPE, (change) => changes.push(change));
    for (const batch of [[1, 2], [3], [4], [5, 6, 7, 8]]) {
      const posts = batch.map((index) => post(index, index === 2 ? { parent: 1 } : {}));
      await store.apply(DEFAULT_SCOPE, posts);
    }
    expect(changes.map(({ forgotten }) => forgotten)).toEqual([
      undefined,
      undefined,
      { traces: 1, runs: 2 },
      { traces: 3, runs: 3 },
    ]);
    expect(changes[2]?.traceIds).toEqual([id(4), id(1)]);
    expect(lines).toEqual([
      "warn: the receiver's store has deleted 1 trace with 2 runs, the oldest first, to stay within runsMax",
    ]);
  });

  test('reports a change to all listeners, also if one of them throws', async () => {
    const lines = logLines('warn');
    const store = new MemoryStore();
    const received: (readonly string[])[] = [];
    store.subscribe(DEFAULT_SCOPE, () => {
      throw new Error('no');
    });
    store.subscribe(DEFAULT_SCOPE, ({ traceIds }) => received.push(traceIds));
    await store.apply(DEFAULT_SCOPE, [post(1)]);
    expect([received, lines]).toEqual([[[id(1)]], ["error: a listener of the receiver's store failed: no"]]);
  });
});

describe('pages with the same filter object', () => {
  const lists = async (store: MemoryStore, scope: Scope, query: Parsed<ListQuery>) => {
    const pages = [await store.list(scope, query), await store.traces(scope, query)];
    return pages.map(({ items }) => items.map((run) => numberOf(run.id)));
  };

  test('show the list as it was at the first page, and a new first page shows all', async () => {
    const store = new MemoryStore();
    const query = { ...parsedQuery<ListQuery>({ order: 'ascending' }), limit: 2 };
    await store.apply(DEFAULT_SCOPE, [post(1), post(2), post(3)]);
    const { next: cursor = '' } = await store.list(DEFAULT_SCOPE, query);
    await store.apply(DEFAULT_SCOPE, [post(4)]);
    expect((await store.list(DEFAULT_SCOPE, { ...query, cursor })).items.map((run) => run.id)).toEqual([id(3)]);
    const all = [1, 2, 3, 4];
    expect(await lists(store, DEFAULT_SCOPE, { ...query, limit: 9 })).toEqual([all, all]);
  });

  test('show no runs of another tenant, list or order', async () => {
    const store = new MemoryStore();
    const query = { ...parsedQuery<ListQuery>({}), limit: 1 };
    await store.apply(DEFAULT_SCOPE, [post(1), post(2, { parent: 1 }), post(3, { parent: 1 })]);
    await store.apply({ tenant: 'other' }, [post(7)]);
    const { next: cursor = '' } = await store.list(DEFAULT_SCOPE, query);
    expect(await lists(store, { tenant: 'other' }, { ...query, cursor })).toEqual([[], []]);
    expect(await lists(store, DEFAULT_SCOPE, { ...query, cursor })).toEqual([[2], [1]]);
    expect(await lists(store, DEFAULT_SCOPE, { ...query, cursor, order: 'ascending' })).toEqual([[], []]);
  });
});
