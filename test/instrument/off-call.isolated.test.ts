import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test, vi } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { fromHeaders, toHeaders } from '#src/run/propagation/propagation.ts';
import { startRun, withExporter, withRun } from '#src/run/start-run.ts';
import { createExporter } from '#src/runspan.ts';
import { makeSink } from '../run/memory-sink.ts';
import { record } from './recorder.ts';

const off = createExporter({ endpoint: 'http://127.0.0.1:1', tracing: false });
const step = traceable((n: number) => n + 1, { name: 'step' });

async function* numbers(): AsyncGenerator<number> {
  yield step(1);
  yield step(2);
}

/** Counts how often a context is entered until the end of the test. */
function entries(): () => number {
  const entering = vi.spyOn(AsyncLocalStorage.prototype, 'run');
  return () => entering.mock.calls.length;
}

describe('runs below a function whose exporter has tracing off', () => {
  test('are not recorded by another exporter in the steps of a generator', () => {
    const recorder = record();
    const numbers = function* () {
      yield step(1);
      yield step(2);
    };
    const [lazy, returned] = [numbers, () => numbers()].map((fn) => traceable(fn, { exporter: off }));
    expect([...(lazy?.() ?? []), ...(returned?.() ?? [])]).toEqual([2, 3, 2, 3]);
    expect(recorder.runs).toEqual([]);
  });

  test.each<[string, () => AsyncIterable<number> | Promise<AsyncIterable<number>>]>([
    ['an async function returns', async () => numbers()],
    ['a function returns in a promise', () => Promise.resolve(numbers())],
    ['an object returns', () => ({ [Symbol.asyncIterator]: numbers })],
    ['a stream reads', () => ReadableStream.from(numbers()) as ReadableStream<number> & AsyncIterable<number>],
  ])('are not recorded by another exporter in the steps of a generator that %s', async (_, fn) => {
    const recorder = record();
    const read: number[] = [];
    for await (const number of await traceable(fn, { exporter: off })()) read.push(number);
    expect([read, recorder.runs]).toEqual([[2, 3], []]);
  });

  test('are not recorded by their own exporter or in their own trace either, unless they have an explicit parent', () => {
    const recorder = record();
    const own = makeSink();
    const inner = traceable(() => step(1), { name: 'inner', exporter: own, root: true, enabled: true });
    const within = (fn: () => unknown) => traceable(fn, { exporter: off })();
    traceable(() => within(inner), { name: 'outer' })();
    within(() => withExporter(own, () => startRun({ name: 'by hand' }).child({ name: 'child', exporter: own })));
    expect([own.records(), own.skipped]).toEqual([[], 0]);
    const parent = startRun({ name: 'parent' });
    within(() => [parent.child({ name: 'child' }), withRun(parent, () => step(1))]);
    within(() => withRun(fromHeaders(toHeaders(parent)), () => step(1)));
    const names = recorder.runs.map(({ name, parent_run_id }) => [name, parent_run_id]);
    expect(names).toEqual([
      ['outer', undefined],
      ['parent', undefined],
      ['child', parent.id],
      ['step', parent.id],
      ['step', parent.id],
    ]);
  });

  test('tell other programs that they are off', () => {
    record();
    const headers = traceable(() => toHeaders(), { exporter: off })();
    expect(headers.baggage).toBe('runspan-sampled=false');
    expect(withRun(fromHeaders(headers), () => startRun({ name: 'elsewhere' })).isOpen).toBe(false);
  });
});

describe('a function whose exporter has tracing off', () => {
  test('enters no context if nothing would be recorded', () => {
    const entered = entries();
    const hidden = traceable(() => step(1), { exporter: off });
    expect(hidden()).toBe(2);
    expect([
      ...traceable(
        function* () {
          yield step(1);
        },
        { exporter: off },
      )(),
    ]).toEqual([2]);
    expect(entered()).toBe(0);
  });

  test('enters one context otherwise, and none within that context', () => {
    record();
    const inner = traceable(() => step(1), { exporter: off });
    const hidden = traceable(() => inner(), { exporter: off });
    const entered = entries();
    expect(hidden()).toBe(2);
    expect(entered()).toBe(1);
    withExporter(off, hidden);
    withRun(startRun({ name: 'by hand', exporter: off }), hidden);
    expect(entered()).toBe(3);
  });
});
