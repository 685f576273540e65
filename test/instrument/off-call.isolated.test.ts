import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { startRun, withExporter, withRun } from '#src/run/start-run.ts';
import { createExporter } from '#src/runspan.ts';
import { makeSink } from '../run/memory-sink.ts';
import { record } from './recorder.ts';

const off = createExporter({ endpoint: 'http://127.0.0.1:1', tracing: false });
const step = traceable((n: number) => n + 1, { name: 'step' });

/** Counts how often a context is entered until the end of the test. */
function entries(): () => number {
  const entering = vi.spyOn(AsyncLocalStorage.prototype, 'run');
  onTestFinished(() => entering.mockRestore());
  return () => entering.mock.calls.length;
}

describe('runs below a function whose exporter has tracing off', () => {
  test('are not recorded by another exporter, even if they start later', async () => {
    const recorder = record();
    const hidden = traceable(
      async (n: number) => {
        const first = step(n);
        await new Promise((done) => setImmediate(done));
        startRun({ name: 'by hand' }).end();
        return step(first);
      },
      { exporter: off },
    );
    const outer = traceable(async () => [await hidden(1), step(5)], { name: 'outer' });
    expect(await outer()).toEqual([3, 6]);
    expect(await hidden(7)).toBe(9);
    expect(recorder.runs.map(({ name }) => name)).toEqual(['outer', 'step']);
  });

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

  test('are recorded by their own exporter, in a new trace', () => {
    const recorder = record();
    const own = makeSink();
    const inner = traceable(() => step(1), { name: 'inner', exporter: own });
    traceable(() => traceable(() => inner(), { exporter: off })(), { name: 'outer' })();
    expect(own.records().map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([
      ['inner', undefined],
      ['step', own.records()[0]?.id],
    ]);
    expect(recorder.runs.map(({ name }) => name)).toEqual(['outer']);
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
