import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { PACKAGE_COPY } from '#src/run/context/context.ts';
import { setSpanSource } from '#src/run/context/current.ts';
import { overrideSink } from '#src/run/sink.ts';
import { currentRun, startRun, withRun } from '#src/run/start-run.ts';
import { logLines } from '../support/log-lines.ts';
import { makeSink } from './memory-sink.ts';

/** A sink that is installed for the process until the test has finished. */
function installedSink() {
  const sink = makeSink();
  onTestFinished(overrideSink(sink));
  return sink;
}

describe('startRun', () => {
  test('starts a root if there is no current run, and does not enter it', () => {
    installedSink();
    expect(startRun({ name: 'a' }).parentRunId).toBeUndefined();
    expect(currentRun()).toBeUndefined();
    expect(startRun({ name: 'b' }).parentRunId).toBeUndefined();
  });

  test('starts below the current run, except with `root`', () => {
    installedSink();
    const run = startRun({ name: 'outer' });
    withRun(run, () => {
      expect(startRun({ name: 'below' }).parentRunId).toBe(run.id);
      expect(startRun({ name: 'apart', root: true })).toMatchObject({ parentRunId: undefined });
    });
  });

  test('uses the sink of the current run, even if another was installed since', () => {
    const sink = makeSink();
    const run = startRun({ name: 'outer', exporter: sink });
    const other = installedSink();
    withRun(run, () => startRun({ name: 'below' }));
    withRun(run, () => startRun({ name: 'apart', root: true }));
    expect(sink.started.map(({ name }) => name)).toEqual(['outer', 'below']);
    expect(other.started.map(({ name }) => name)).toEqual(['apart']);
  });

  test('starts below the active span if that became a run', () => {
    installedSink();
    const above = startRun({ name: 'span' }).context;
    setSpanSource({ activeSpan: () => above, traceOf: () => undefined, contextOf: () => above });
    onTestFinished(() => setSpanSource(undefined));
    expect(startRun({ name: 'below' }).parentRunId).toBe(above.id);
  });

  test('uses the sink of the run of the active span', () => {
    const [installed, sink] = [installedSink(), makeSink()];
    const above = {
      ...startRun({ name: 'span', exporter: sink }).context,
      owner: { packageCopy: PACKAGE_COPY, sink, modelCall: undefined },
    };
    setSpanSource({ activeSpan: () => above, traceOf: () => undefined, contextOf: () => above });
    onTestFinished(() => setSpanSource(undefined));
    startRun({ name: 'below' });
    expect(sink.started.map(({ name }) => name)).toEqual(['span', 'below']);
    expect(installed.started).toEqual([]);
  });
});

describe('withRun', () => {
  test('makes a run current for the function and its asynchronous work', async () => {
    installedSink();
    const [a, b] = [startRun({ name: 'a' }), startRun({ name: 'b' })];
    const names: (string | undefined)[] = [];
    await withRun(a, async () => {
      names.push(currentRun()?.name);
      withRun(b, () => names.push(currentRun()?.name));
      await Promise.resolve();
      names.push(currentRun()?.name);
    });
    expect(names).toEqual(['a', 'b', 'a']);
    expect(currentRun()).toBeUndefined();
  });

  test('returns and throws like the function', () => {
    installedSink();
    const run = startRun({ name: 'a' });
    const [result, error] = [{}, new Error('mine')];
    const fail = (): never => {
      throw error;
    };
    expect(withRun(run, () => result)).toBe(result);
    expect(() => withRun(run, fail)).toThrow(error);
    expect(run.isOpen).toBe(true);
  });

  test('calls the function without a run too, and logs one line', () => {
    const lines = logLines();
    expect(withRun({ id: 'mine' } as never, () => 7)).toBe(7);
    expect(withRun(undefined as never, () => 8)).toBe(8);
    expect(lines).toEqual([
      'warn: withRun(run, fn): expected `run` to be a Run; the function was called without a run.',
    ]);
  });
});

test('two copies of the package both refuse the children of a run that one of them refused', async () => {
  const refused = startRun({ name: 'refused', exporter: makeSink({}, () => true) });
  vi.resetModules();
  const copy = await import('#src/run/start-run.ts');
  const sink = makeSink();
  withRun(refused, () => copy.startRun({ name: 'theirs', exporter: sink }));
  expect(sink.started).toEqual([]);
});
