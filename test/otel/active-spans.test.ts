import { describe, expect, onTestFinished, test } from 'vitest';
import { startRun, traceable, withRun } from '../../src/index.ts';
import { RunSpanProcessor } from '../../src/otel.ts';
import { recordRuns } from '../../src/testing.ts';
import { below, inSpan, notingSink, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Calls `fn` inside a run of this name. */
const inRun = <Result>(name: string, fn: () => Result) => traceable(fn, { name })();

describe('spans and traced functions in one trace', () => {
  test('a traced function inside an active span is its child', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'span', async () => {
      await soon();
      await inRun('run', soon);
    });
    expect(tree(recorder)).toEqual(['span', '  run']);
    expect(runNamed(recorder, 'run').trace_id).toBe(runNamed(recorder, 'span').id);
  });

  test.each([true, false])(
    'a span inside a traced function is its child (context manager: %j)',
    async (contextManager) => {
      const { tracer, recorder } = setUp({ contextManager });
      await inRun('run', async () => {
        await soon();
        tracer.startSpan('span').end();
      });
      expect(tree(recorder)).toEqual(['run', '  span']);
      expect(runNamed(recorder, 'span').trace_id).toBe(runNamed(recorder, 'run').id);
    },
  );

  test('nested spans and functions keep their order', async () => {
    const { tracer, recorder } = setUp();
    await inRun('1 run', () =>
      inSpan(tracer, '2 span', () =>
        inRun('3 run', () =>
          inSpan(tracer, '4 span', async () => [await inRun('5 run', soon), startRun({ name: '6 run' })]),
        ),
      ),
    );
    expect(tree(recorder)).toEqual([
      '1 run',
      '  2 span',
      '    3 run',
      '      4 span',
      '        5 run',
      '        6 run',
    ]);
  });

  test('nested spans and functions keep their order below a span', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, '1 span', () =>
      inRun('2 run', async () => {
        await inSpan(tracer, '3 span', () => inRun('4 run', soon));
        tracer.startSpan('5 span').end();
        await inRun('6 run', soon);
      }),
    );
    expect(tree(recorder)).toEqual(['1 span', '  2 run', '    3 span', '      4 run', '    5 span', '    6 run']);
  });

  test('an explicit parent span takes precedence over the current run', async () => {
    const { tracer, recorder } = setUp();
    const outer = tracer.startSpan('outer');
    await inRun('run', () => tracer.startSpan('inner', {}, below(outer)).end());
    expect(tree(recorder)).toEqual(['outer', '  inner', 'run']);
  });

  test('a span inside `withRun` is below this run', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'span', () =>
      withRun(startRun({ name: 'run' }), () => inSpan(tracer, 'inner', () => inRun('leaf', soon))),
    );
    expect(tree(recorder)).toEqual(['span', '  run', '    inner', '      leaf']);
  });

  test('runs below a span are sent to the exporter of its processor', async () => {
    const own = recordRuns();
    onTestFinished(() => own.stop());
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ exporter: own.exporter })] });
    await inSpan(tracer, 'span', () => inRun('run', () => inSpan(tracer, 'inner', soon)));
    expect(tree(own)).toEqual(['span', '  run', '    inner']);
    expect(recorder.runs).toEqual([]);
  });

  test('spans below a run with its own exporter are sent there, and flushed with the provider', async () => {
    const { sink, asked } = notingSink();
    const { tracer, provider } = setUp();
    traceable(() => tracer.startSpan('span').end(), { name: 'run', exporter: sink })();
    await provider.forceFlush();
    expect(asked).toEqual(['start run', 'start span', 'end span', 'end run', 'flush']);
  });

  test('a span in a run has the project of the run', () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ project: 'spans' })] });
    traceable(() => tracer.startSpan('span').end(), { name: 'run', project: 'shop' })();
    expect(recorder.runs.map(({ session_name }) => session_name)).toEqual(['shop', 'shop']);
  });

  test('traced functions work after the shutdown of the processor', async () => {
    const { tracer, provider, recorder } = setUp();
    await inSpan(tracer, 'span', async () => {
      await provider.shutdown();
      await inRun('run', soon);
    });
    expect(tree(recorder)).toEqual(['run', 'span']);
  });
});
