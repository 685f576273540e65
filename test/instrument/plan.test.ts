import { describe, expect, test } from 'vitest';
import type { TraceableOptions } from '../../src/instrument/plan.ts';
import { traceable } from '../../src/instrument/traceable.ts';
import type { RunSink } from '../../src/run/sink.ts';
import { currentRun } from '../../src/run/start-run.ts';
import { recordRuns } from '../../src/testing/record-runs.ts';
import { told } from '../support/told.ts';
import { record } from './recorder.ts';

/** The run of one call. */
function runOf(fn: (...args: unknown[]) => unknown, args: unknown[] = [], options: TraceableOptions = {}) {
  const recorder = record();
  traceable(fn, options)(...args);
  return recorder.runs[0];
}

class Money {
  readonly cents: number;

  constructor(cents: number) {
    this.cents = cents;
  }
}

describe('default inputs', () => {
  test.each<[string, unknown[], unknown]>([
    ['no argument', [], {}],
    ['one plain object', [{ question: 'why', deep: [1] }], { question: 'why', deep: [1] }],
    ['one object without a prototype', [Object.assign(Object.create(null), { a: 1 })], { a: 1 }],
    ['one text', ['why'], { input: 'why' }],
    ['one null', [null], { input: null }],
    ['one undefined', [undefined], {}],
    ['one array', [[1, 2]], { input: [1, 2] }],
    ['one instance of a class', [new Money(5)], { input: { cents: 5 } }],
    ['one Map', [new Map([['a', 1]])], { input: { a: 1 } }],
    ['two values', ['why', 2], { args: ['why', 2] }],
    ['two objects', [{ a: 1 }, { b: 2 }], { args: [{ a: 1 }, { b: 2 }] }],
    ['a function among several', ['a', () => 1], { args: ['a', '[Function anonymous]'] }],
  ])('%s', (_, args, inputs) => {
    expect(runOf(() => 0, args)?.inputs).toEqual(inputs);
  });
});

describe('options', () => {
  test('name, type, tags, metadata and project are recorded', () => {
    const options = { name: 'ask', runType: 'llm', tags: ['a', 'b'], metadata: { model: 'm', n: 1 }, project: 'p' };
    expect(runOf(() => 0, [], options)).toMatchObject({
      name: 'ask',
      run_type: 'llm',
      tags: ['a', 'b'],
      extra: { metadata: { model: 'm', n: 1 } },
      session_name: 'p',
    });
  });

  test('`root` starts a trace of its own, and what is below belongs to it', () => {
    const recorder = record();
    const inner = traceable(() => 0, { name: 'inner' });
    const apart = traceable(() => inner(), { name: 'apart', root: true });
    traceable(() => apart(), { name: 'outer' })();
    expect(recorder).toMatchTrace(['outer', { name: 'apart', children: ['inner'] }]);
  });

  test('`exporter` takes the whole subtree, and nothing else', () => {
    const other = recordRuns();
    other.stop();
    const recorder = record();
    const inner = traceable(() => 0, { name: 'inner' });
    const tenant = traceable(() => inner(), { name: 'tenant', exporter: other.exporter });
    traceable(() => [tenant(), inner()], { name: 'outer' })();
    expect(recorder.runs.map((run) => run.name)).toEqual(['outer', 'inner']);
    expect(other.runs.map((run) => run.name)).toEqual(['tenant', 'inner']);
  });

  test('`enabled: false` leaves calls untraced, and what they call is traced', () => {
    const recorder = record();
    const inner = traceable(() => 0, { name: 'inner' });
    const skipped = traceable(() => inner(), { name: 'skipped', enabled: false });
    traceable(() => skipped(), { name: 'outer' })();
    expect(recorder).toMatchTrace({ name: 'outer', children: ['inner'] });
    expect(skipped.with({ enabled: true })()).toBe(0);
    expect(recorder.runs.map(({ name }) => name)).toContain('skipped');
  });

  test('`inputs` and `outputs` say what is recorded, of the arguments and of the result', () => {
    const run = runOf((a, b) => `${a}${b}`, ['secret', 2], {
      inputs: ([, second]) => ({ second }),
      outputs: (value) => ({ length: String(value).length }),
    });
    expect(run).toMatchObject({ inputs: { second: 2 }, outputs: { length: 7 } });
  });
});

describe('outputs that the function sets on its run', () => {
  const own = { answer: 'short' };
  /** Sets the outputs and returns a different result. */
  const choose = <Value>(value: Value): Value => {
    currentRun()?.set({ outputs: own });
    return value;
  };
  const readAll = async (chunks: AsyncIterable<unknown>): Promise<unknown[]> => {
    const read: unknown[] = [];
    for await (const chunk of chunks) read.push(chunk);
    return read;
  };

  const chunks = async function* () {
    choose(undefined);
    yield 'long';
  };
  const decoder = () => new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>;

  test.each<[string, () => unknown, TraceableOptions | undefined, unknown]>([
    ['a returned value', () => choose('long'), undefined, 'long'],
    ['a plain object', () => choose({ answer: 'long' }), undefined, { answer: 'long' }],
    ['nothing returned', () => choose(undefined), undefined, undefined],
    ['what a promise resolves to', async () => choose('long'), undefined, 'long'],
    ['what a promise resolves to later', async () => choose(await 'long'), undefined, 'long'],
    ['what `outputs` chooses', () => choose('long'), { outputs: () => ({ chosen: true }) }, 'long'],
    ['chunks', () => chunks(), undefined, ['long']],
    ['what `aggregate` makes of chunks', () => chunks(), { aggregate: (all) => all.join('') }, ['long']],
    ['chunks of a web stream', () => choose(new Blob(['long']).stream().pipeThrough(decoder())), undefined, ['long']],
  ])('take precedence over %s', async (_, fn, options, expected) => {
    const recorder = record();
    const result = await traceable(fn, options)();
    const isSequence = typeof (result as AsyncIterable<unknown> | undefined)?.[Symbol.asyncIterator] === 'function';
    expect(isSequence ? await readAll(result as AsyncIterable<unknown>) : result).toEqual(expected);
    expect(recorder.runs).toMatchObject([{ outputs: own, end_time: expect.any(String) }]);
    expect(recorder.runs[0]?.outputs).toEqual(own);
  });

  test('are taken from the last `set` and affect no other run', () => {
    const recorder = record();
    const inner = traceable(() => 'inner', { name: 'inner' });
    traceable(
      () => {
        choose(undefined);
        currentRun()?.set({ outputs: 'last' });
        return inner();
      },
      { name: 'outer' },
    )();
    expect(recorder.runs.map((run) => run.outputs)).toEqual([{ outputs: 'last' }, { outputs: 'inner' }]);
  });
});

describe('a callback that fails', () => {
  const throws = () => {
    throw new Error('broken');
  };

  test('that throws leaves a marker, never what it was given, and the call alone', () => {
    const recorder = record();
    const ask = traceable((key: string) => key, { name: 'ask', inputs: throws, outputs: throws });
    expect(ask('secret')).toBe('secret');
    expect(recorder.runs[0]?.inputs).toEqual({ error: '`inputs` of "ask" threw Error' });
    expect(recorder.runs[0]?.outputs).toEqual({ error: '`outputs` of "ask" threw Error' });
    expect(JSON.stringify(recorder.runs)).not.toContain('secret');
  });

  test('that answers with a promise leaves a marker, and its rejection is nobody’s', async () => {
    const recorder = record();
    const answer = (() => Promise.reject(new Error('late'))) as unknown as () => Record<string, unknown>;
    traceable((key: string) => key, { name: 'ask', inputs: answer, outputs: answer })('secret');
    const marker = (option: string) => `\`${option}\` of "ask" returned a promise instead of a value`;
    expect(recorder.runs[0]?.inputs).toEqual({ error: marker('inputs') });
    expect(recorder.runs[0]?.outputs).toEqual({ error: marker('outputs') });
    // An unhandled rejection would fail this test file.
    await new Promise(setImmediate);
  });
});

describe('what is not to be recorded', () => {
  /** A recorder that is not installed, and an exporter into it that differs from its own. */
  function exporterWith(changes: (exporter: RunSink) => Partial<RunSink>) {
    const recorder = recordRuns();
    recorder.stop();
    const { exporter } = recorder;
    const [start, end] = [exporter.start.bind(exporter), exporter.end.bind(exporter)];
    const [flush, close] = [exporter.flush.bind(exporter), exporter.close.bind(exporter)];
    const skip = () => {};
    return { recorder, exporter: { capture: exporter.capture, start, end, skip, flush, close, ...changes(exporter) } };
  }

  test('is hidden, in generators too, and `inputs` is not even asked for', () => {
    const { recorder, exporter } = exporterWith(({ capture }) => ({
      capture: { ...capture, hideInputs: true, hideOutputs: true },
    }));
    let asked = 0;
    const inputs = () => ({ asked: ++asked });
    expect(traceable((key: string) => key, { exporter, inputs })('secret')).toBe('secret');
    const stream = function* () {
      yield 'secret';
    };
    expect([...traceable(stream, { exporter })()]).toEqual(['secret']);
    expect([asked, recorder.runs.length]).toEqual([0, 2]);
    expect(JSON.stringify(recorder.runs)).not.toContain('secret');
  });

  test('is not asked for when the run is refused, nor below it', () => {
    const { recorder, exporter } = exporterWith(() => ({ start: () => false }));
    const asked: string[] = [];
    const ask = (what: string) => () => ({ asked: asked.push(what) });
    const inner = traceable((a: number) => a, { inputs: ask('inner inputs'), outputs: ask('inner outputs') });
    const outer = traceable(() => inner(1), { exporter, outputs: ask('outer outputs') });
    expect(outer()).toBe(1);
    expect([asked, recorder.runs]).toEqual([[], []]);
  });
});

describe('wrong options are one line each and left out:', () => {
  const wrap = traceable as (fn: () => number, options: unknown) => () => number;

  test.each<[string, unknown, string]>([
    ['an unknown one', { retries: 3 }, 'unknown option `retries`'],
    ['enabled', { enabled: 0 }, 'expected `enabled` to be true or false'],
    ['inputs', { inputs: { a: 1 } }, 'expected `inputs` to be a function'],
    ['outputs', { outputs: true }, 'expected `outputs` to be a function'],
    ['aggregate', { aggregate: [] }, 'expected `aggregate` to be a function'],
  ])('%s', (_, options, complaint) => {
    const recorder = record();
    const lines = told();
    expect(wrap(() => 1, { ...(options as object), metadata2: undefined })()).toBe(1);
    expect(wrap(() => 1, options)()).toBe(1);
    expect(lines).toEqual([`warn: traceable: ${complaint}; left out.`]);
    expect(recorder.runs).toMatchObject([{ run_type: 'chain' }, { run_type: 'chain' }]);
  });

  test('options that are none', () => {
    const recorder = record();
    const lines = told();
    expect(wrap(() => 1, 'name')()).toBe(1);
    expect(wrap(() => 1, undefined)()).toBe(1);
    expect(lines).toEqual(['warn: traceable: expected the options to be an object, got string; left out.']);
    expect(recorder.runs).toHaveLength(2);
  });
});
