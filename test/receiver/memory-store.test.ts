import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { RunState } from '../../src/receiver/store/run-state.ts';
import {
  MemoryStore,
  type MemoryStoreOptions,
  type RunFields,
  type RunOperation,
  type StoreChange,
} from '../../src/receiver.ts';
import { describeStore } from './store-conformance.ts';

const id = (index: number) => `00000000-0000-7000-8000-${index.toString().padStart(12, '0')}`;

/** Run `index` of the trace that begins with run `trace`. */
function post(index: number, trace: number, fields: RunFields = {}): RunOperation {
  const dotted_order = [...new Set([trace, index])].map((each) => `20261120T072240000000Z${id(each)}`).join('.');
  const place = { trace_id: id(trace), dotted_order };
  const start_time = '2026-11-20T07:22:40.000000Z';
  return {
    kind: 'post',
    id: id(index),
    fields: { name: 'run', run_type: 'chain', start_time, ...place, ...fields },
    attachments: [],
  };
}

/** What the run weighs by itself. */
function sizeOf(operation: RunOperation): number {
  const run = new RunState(operation.id);
  run.take(operation);
  return run.sizeBytes;
}

async function indexesAfter(limits: MemoryStoreOptions, ...batches: RunOperation[][]): Promise<number[]> {
  const store = new MemoryStore(limits);
  for (const batch of batches) await store.apply(batch);
  return (await store.runs({})).map((run) => Number(run.id.slice(-12)));
}

beforeEach(() => diagnostics.setLog('silent'));
afterEach(() => diagnostics.setLog('warn'));

describe('a memory store keeps no more than its limits', () => {
  const three = [[post(1, 1), post(2, 1)], [post(3, 3)]];

  test('of runs: at the limit all stay, above it the oldest trace goes whole', async () => {
    expect(await indexesAfter({ runsMax: 4 }, ...three)).toEqual([1, 2, 3]);
    expect(await indexesAfter({ runsMax: 3 }, ...three)).toEqual([1, 2, 3]);
    expect(await indexesAfter({ runsMax: 2 }, ...three)).toEqual([3]);
  });

  test('of bytes: at the limit all stay, above it the oldest trace goes whole', async () => {
    const sizeBytes = three.flat().reduce((sum, operation) => sum + sizeOf(operation), 0);
    expect(await indexesAfter({ bytesMax: sizeBytes + 1 }, ...three)).toEqual([1, 2, 3]);
    expect(await indexesAfter({ bytesMax: sizeBytes }, ...three)).toEqual([1, 2, 3]);
    expect(await indexesAfter({ bytesMax: sizeBytes - 1 }, ...three)).toEqual([3]);
  });

  test('attachments among the bytes', async () => {
    const attached = { ...post(2, 2), attachments: [{ name: 'a', bytes: new Uint8Array(1_000), mimeType: 'x/y' }] };
    const bytesMax = sizeOf(post(1, 1)) + sizeOf(attached);
    expect(await indexesAfter({ bytesMax }, [post(1, 1), attached])).toEqual([1, 2]);
    expect(await indexesAfter({ bytesMax: bytesMax - 1 }, [post(1, 1), attached])).toEqual([2]);
  });

  test('the oldest is the one whose first run came first, whatever came later', async () => {
    expect(await indexesAfter({ runsMax: 2 }, [post(1, 1)], [post(3, 3)], [post(2, 1)])).toEqual([3]);
  });

  test('a message that comes again counts once', async () => {
    const bytesMax = sizeOf(post(1, 1)) + sizeOf(post(2, 2));
    const again = Array.from({ length: 50 }, () => post(2, 2));
    expect(await indexesAfter({ bytesMax, runsMax: 2 }, [post(1, 1)], again)).toEqual([1, 2]);
  });

  test('a trace that is too large by itself is forgotten as well', async () => {
    const large = post(2, 2, { inputs: { text: 'x'.repeat(1_000) } });
    expect(await indexesAfter({ bytesMax: sizeOf(large) - 1 }, [post(1, 1)], [large], [post(3, 3)])).toEqual([3]);
  });

  test('orders made for runs of simple ingestion count, and runs that cannot be seen yet do', async () => {
    const fields = { name: 'n', run_type: 'chain', start_time: '2026-11-20T07:22:40.000000Z' };
    const simple = (index: number): RunOperation => ({ kind: 'post', id: id(index), fields, attachments: [] });
    // A stamp of 22 characters and a UUID of 36.
    const bytesMax = 2 * (sizeOf(simple(1)) + 22 + 36);
    expect(await indexesAfter({ bytesMax }, [simple(1), simple(2)])).toEqual([1, 2]);
    expect(await indexesAfter({ bytesMax: bytesMax - 1 }, [simple(1), simple(2)])).toEqual([2]);
    const patch: RunOperation = { kind: 'patch', id: id(9), fields: { outputs: {} }, attachments: [] };
    expect(await indexesAfter({ runsMax: 1 }, [post(1, 1)], [patch])).toEqual([]);
  });

  test('limits are whole numbers from 1', () => {
    expect(() => new MemoryStore({ runsMax: 0 })).toThrow(
      'Expected `runsMax` to be a whole number from 1, got the number 0',
    );
    expect(() => new MemoryStore({ bytesMax: Number.NaN })).toThrow('Expected `bytesMax`');
  });

  test.each<[unknown, string]>([
    [{ bytesmax: 1 }, 'Expected the options to have no more than runsMax, bytesMax, prices, got `bytesmax`'],
    [{ runsMax: '5' }, 'Expected `runsMax` to be a whole number from 1, got "5"'],
    [null, 'Expected the options to be an object, got null'],
    [5, 'Expected the options to be an object, got the number 5'],
    [[], 'Expected the options to be an object, got an array'],
  ])('the options %j are refused by name', (options, message) => {
    const make = () => new MemoryStore(options as MemoryStoreOptions);
    expect(make).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message }));
  });

  test('options that are undefined are the defaults', async () => {
    const none = { runsMax: undefined, bytesMax: undefined } as unknown as MemoryStoreOptions;
    expect(await indexesAfter(none, ...three)).toEqual([1, 2, 3]);
  });

  test('payloads of small values weigh what they take and not what they are as text', async () => {
    const brackets = post(2, 2, { inputs: { a: Array.from({ length: 1_000 }, () => []) } });
    expect(sizeOf(brackets)).toBeGreaterThan(60_000);
    expect(await indexesAfter({ bytesMax: 60_000 }, [post(1, 1)], [brackets])).toEqual([]);
  });
});

describe('what a store has forgotten', () => {
  test('is told to its listeners, in traces and runs', async () => {
    const store = new MemoryStore({ runsMax: 3 });
    const told: StoreChange['forgotten'][] = [];
    store.subscribe(({ forgotten }) => told.push(forgotten));
    await store.apply([post(1, 1), post(2, 1)]);
    await store.apply([post(3, 3)]);
    await store.apply([post(4, 4)]);
    await store.apply([post(5, 5), post(6, 6), post(7, 7), post(8, 8)]);
    expect(told).toEqual([undefined, undefined, { traces: 1, runs: 2 }, { traces: 3, runs: 3 }]);
  });

  test('is told in one line at first and no line for each', async () => {
    const lines: string[] = [];
    diagnostics.setLog((_, message) => lines.push(message));
    onTestFinished(() => diagnostics.setLog('warn'));
    const store = new MemoryStore({ runsMax: 1 });
    await store.apply([post(1, 1)]);
    expect(lines).toEqual([]);
    for (let index = 2; index < 10; index += 1) await store.apply([post(index, index)]);
    expect(lines).toEqual([
      "the receiver's store has forgotten 1 trace of 1 run, the oldest first, to stay within runsMax and bytesMax",
    ]);
  });
});

describe('a subscription', () => {
  test('tells after each apply which traces have changed, those left and forgotten among them', async () => {
    const store = new MemoryStore({ runsMax: 3 });
    const told: number[][] = [];
    const stop = store.subscribe(({ traceIds }) => told.push(traceIds.map((traceId) => Number(traceId.slice(-12)))));
    await store.apply([post(1, 1), post(2, 1), post(3, 3)]);
    await store.apply([]);
    await store.apply([{ kind: 'patch', id: id(3), fields: { tags: ['a'] }, attachments: [] }]);
    await store.apply([post(3, 4)]);
    await store.apply([post(5, 5)]);
    stop();
    stop();
    await store.apply([post(6, 6)]);
    expect(told).toEqual([[1, 3], [3], [3, 4], [5, 1]]);
  });
});

describe('a memory store', () => {
  describeStore(async () => new MemoryStore(), 300);
});
