import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';
import type { RunRecord } from '../../src/run/record.ts';
import { currentSink, standIn } from '../../src/run/sink.ts';
import { startRun, withRun } from '../../src/run/start-run.ts';
import { type RunRecorder, recordRuns } from '../../src/testing.ts';
import { makeSink } from '../run/memory-sink.ts';

/** Records until the test has finished. */
function recorder(): RunRecorder {
  const made = recordRuns();
  onTestFinished(() => made.stop());
  return made;
}

describe('recordRuns', () => {
  test('has every run as the service would get it, those still open too', () => {
    const recorded = recorder();
    const run = startRun({ name: 'outer', inputs: { q: 1 }, tags: ['a'] });
    withRun(run, () => startRun({ name: 'inner', runType: 'tool' }).end({ a: 2 }));
    expect(recorded.runs).toMatchObject([
      { id: run.id, name: 'outer', run_type: 'chain', inputs: { q: 1 }, tags: ['a'], session_name: 'default' },
      { parent_run_id: run.id, trace_id: run.id, name: 'inner', run_type: 'tool', inputs: {}, outputs: { a: 2 } },
    ]);
    expect(recorded.runs.map((each) => 'end_time' in each)).toEqual([false, true]);
    run.fail(new Error('no'));
    expect(recorded.runs[0]).toMatchObject({
      error: expect.stringMatching(/^Error: no\n/),
      end_time: expect.any(String),
    });
  });

  test('has parents before children and elders before the younger, whatever the order of their starts', () => {
    const recorded = recorder();
    const [a, b] = [startRun({ name: 'a' }), startRun({ name: 'b' })];
    for (const run of [b, a, b]) run.child({ name: `below ${run.name}` });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['a', 'below a', 'b', 'below b', 'below b']);
  });

  test('gives records that are copies', () => {
    const recorded = recorder();
    startRun({ name: 'a', inputs: { list: [1] } });
    (recorded.runs[0] as RunRecord).inputs.list = 'changed';
    expect(recorded.runs[0]?.inputs).toEqual({ list: [1] });
  });

  test('forgets what there was when it is cleared, and goes on', () => {
    const recorded = recorder();
    const open = startRun({ name: 'a' });
    recorded.clear();
    open.end();
    expect(recorded.runs).toEqual([]);
    startRun({ name: 'b' });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['b']);
  });

  test('records what is given its exporter alone, once it has stopped', () => {
    const recorded = recordRuns();
    recorded.stop();
    startRun({ name: 'elsewhere' });
    startRun({ name: 'here', exporter: recorded.exporter });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['here']);
  });

  test('never has to be waited for', async () => {
    const { exporter } = recorder();
    startRun({ name: 'open' });
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(await exporter.close({ timeoutMs: 1 })).toEqual({ ok: true, pending: 0 });
  });

  test('takes no run of a trace that was refused', () => {
    const recorded = recorder();
    const refused = startRun({ name: 'refused', exporter: makeSink({}, () => true) });
    const child = refused.child({ name: 'below', exporter: recorded.exporter });
    expect(recorded.runs).toEqual([]);
    expect(child.isOpen).toBe(false);
    child.child({ name: 'further below' });
    expect(recorded.runs).toEqual([]);
  });
});

describe('a recorder that stops', () => {
  test('puts tracing back to what it was', () => {
    const before = makeSink();
    onTestFinished(standIn(before));
    recordRuns().stop();
    expect(currentSink()).toBe(before);
  });

  test('with its using block does the same', () => {
    {
      using recorded = recordRuns();
      expect(currentSink()).toBe(recorded.exporter);
    }
    expect(currentSink()).toBeUndefined();
  });

  test('twice, or before one that started earlier, harms nothing', () => {
    const earlier = recordRuns();
    const recorded = recordRuns();
    earlier.stop();
    expect(currentSink()).toBe(recorded.exporter);
    recorded.stop();
    recorded.stop();
    expect(currentSink()).toBeUndefined();
  });
});

test('records have the type of the wire', () => {
  expectTypeOf(recordRuns).returns.toEqualTypeOf<RunRecorder>();
  expectTypeOf<RunRecorder['runs']>().toEqualTypeOf<RunRecord[]>();
  expectTypeOf<RunRecorder>().toExtend<Disposable>();
});
