import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { samplingDecision, shareOf } from '#src/run/sampling/sampling.ts';
import type { TraceStart } from '#src/run/sink.ts';
import { currentRun, startRun, withRun } from '#src/run/start-run.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { forAll } from '../support/campaign.ts';
import { logLines } from '../support/log-lines.ts';
import { makeSink } from './memory-sink.ts';

const TRACE = '0195c0de-0000-7000-8000-000000000000';
const start = (fields: Partial<TraceStart> = {}): TraceStart => ({
  traceId: TRACE,
  name: 'answer',
  runType: 'chain',
  project: 'default',
  ...fields,
});
const samplingTo = (isKept: boolean) => makeSink({ sampling: () => isKept });

// Made with a program of its own, in Python, from the description in the docstring.
test.each([
  ['00000000-0000-0000-0000-000000000000', 0.21612153016],
  ['0195c0de-0000-7000-8000-000000000000', 0.145027334802],
  ['ffffffff-ffff-ffff-ffff-ffffffffffff', 0.138935853029],
])('the share of a trace id of %s is %d, in every version', (id, share) => {
  expect(shareOf(id)).toBeCloseTo(share, 9);
});

describe('a sampling decision', () => {
  test('is missing if every trace is recorded', () => {
    expect(samplingDecision(1, undefined)).toBeUndefined();
  });

  test('keeps no trace at 0, and at a higher rate every trace of a lower rate', () => {
    forAll(100, [fc.uuid(), fc.double({ min: 0, max: 1 }), fc.double({ min: 0, max: 1 })], (traceId, a, b) => {
      const isKept = (rate: number) => (samplingDecision(rate, undefined)?.(start({ traceId })) ?? true) === true;
      expect(isKept(0)).toBe(false);
      expect(isKept(Math.min(a, b)) && !isKept(Math.max(a, b))).toBe(false);
    });
  });

  test('keeps a trace only if the rate is above the share of its id', () => {
    const share = shareOf(TRACE);
    const isKept = (rate: number) => samplingDecision(rate, undefined)?.(start()) === true;
    for (let time = 0; time < 20; time++) {
      expect([share - 2 ** -32, share, share + 2 ** -32].map(isKept)).toEqual([false, false, true]);
    }
  });

  test('is made by the sampler: true, false or a rate, which is returned if it drops the trace', () => {
    const decide = samplingDecision(1, ({ name, runType }) => {
      if (runType === 'tool') return false;
      return name === 'health' ? 0 : undefined;
    });
    expect(decide?.(start())).toBe(true);
    expect(decide?.(start({ runType: 'tool' }))).toBe(false);
    expect(decide?.(start({ name: 'health' }))).toBe(0);
    expect(samplingDecision(0, () => true)?.(start())).toBe(true);
    expect(samplingDecision(0, () => 1)?.(start())).toBe(true);
    expect(samplingDecision(0, () => undefined)?.(start())).toBe(0);
    expect(samplingDecision(1, () => 0.1)?.(start())).toBe(0.1);
  });

  test('is made by the rate if the sampler throws or returns an invalid value', () => {
    const lines = logLines();
    const throwing = () => {
      throw new Error('sampler broke');
    };
    const nonsense = ['yes', Number.NaN, -1, null, {}];
    expect(samplingDecision(1, throwing)?.(start())).toBe(true);
    expect(samplingDecision(0, throwing)?.(start())).toBe(0);
    for (const answer of nonsense) expect(samplingDecision(1, () => answer as never)?.(start())).toBe(true);
    expect(lines).toEqual([
      'warn: sampler failed, the application is not affected: sampler broke',
      'warn: sampler: expected true, false, a number from 0 to 1 or undefined, got "yes"; `sampleRate` is used.',
    ]);
  });

  test('is made by the rate if the sampler returns a promise, whose rejection is handled', async () => {
    const lines = logLines();
    const unhandled = unhandledRejections();
    const decide = samplingDecision(0, (async () => {
      throw new Error('too late');
    }) as never);
    expect(decide?.(start())).toBe(0);
    expect(await unhandled()).toEqual([]);
    expect(lines.join('\n')).toContain('or undefined, got a promise;');
  });
});

describe('a trace that is left out', () => {
  test('is not passed to the sink, and its runs are counted', async () => {
    const exporter = samplingTo(false);
    const seen: unknown[] = [];
    const inputs = () => ({ seen: seen.push('inputs') });
    const tool = traceable(async () => seen.push('tool'), { name: 'tool', inputs });
    const stream = traceable(function* () {
      yield traceable(() => 1, { name: 'in stream' })();
    });
    const outer = traceable(
      async () => {
        await tool();
        startRun({ name: 'by hand' }).end();
        return [...stream()];
      },
      { exporter, inputs },
    );

    expect(await outer()).toEqual([1]);
    expect(seen).toEqual(['tool']);
    expect([exporter.started, exporter.skipped]).toEqual([[], 5]);
  });

  test('has runs with ids that record nothing', () => {
    const exporter = samplingTo(false);
    const run = startRun({ name: 'job', exporter, inputs: { a: 1 } });
    withRun(run, () => {
      expect(currentRun()).toBe(run);
      expect(run.child({ name: 'child' }).traceId).toBe(run.id);
    });
    run.event('e');
    run.end({ b: 1 });
    expect([exporter.started, exporter.ended, exporter.skipped]).toEqual([[], [], 2]);
  });

  test('does not include runs that start with `root`', () => {
    const exporter = makeSink({ sampling: ({ name }) => name !== 'outer' });
    const own = traceable(() => 1, { name: 'own', root: true, exporter });
    traceable(() => own(), { name: 'outer', exporter })();
    expect(exporter.records().map(({ name }) => name)).toEqual(['own']);
  });
});

describe('a trace that is kept', () => {
  test('is sampled once, at its first run, with the id of the trace', () => {
    const asked: TraceStart[] = [];
    const exporter = makeSink({ sampling: (trace) => asked.push(trace) > 0 });
    const inner = traceable(() => 1, { name: 'inner' });
    traceable(() => inner(), { name: 'outer', runType: 'tool', project: 'shop', exporter })();
    const [outer] = exporter.records();
    expect(asked).toEqual([{ traceId: outer?.id, name: 'outer', runType: 'tool', project: 'shop' }]);
    expect(exporter.records().map(({ trace_id }) => trace_id)).toEqual([outer?.id, outer?.id]);
  });

  test('has the explicit id of its first run', () => {
    const exporter = samplingTo(true);
    const id = 'AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE';
    expect(startRun({ name: 'job', exporter, id }).id).toBe(id.toLowerCase());
    expect(traceable(() => currentRun()?.id, { exporter, id })()).toBe(id.toLowerCase());
  });
});
