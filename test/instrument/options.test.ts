// The options of `traceable` and of `with`.
import { describe, expect, test } from 'vitest';
import type { TraceableOptions } from '#src/instrument/plan.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { runIdFrom } from '#src/run/ids.ts';
import { currentRun } from '#src/run/start-run.ts';
import { recordRuns } from '#src/testing/record-runs.ts';
import { outlineOf } from '#src/testing/snapshot.ts';
import { makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';
import { record, treeOf } from './recorder.ts';

function runOf(fn: (...args: unknown[]) => unknown, args: unknown[] = [], options: TraceableOptions = {}) {
  const recorder = record();
  traceable(fn, options)(...args);
  return recorder.runs[0];
}

class Money {
  readonly cents = 5;
}

test.each<[string, unknown[], unknown]>([
  ['no argument', [], {}],
  ['one plain object', [{ question: 'why', deep: [1] }], { question: 'why', deep: [1] }],
  ['one object without a prototype', [Object.assign(Object.create(null), { a: 1 })], { a: 1 }],
  ['one text', ['why'], { input: 'why' }],
  ['null', [null], { input: null }],
  ['undefined', [undefined], {}],
  ['one list', [[1, 2]], { input: [1, 2] }],
  ['one instance of a class', [new Money()], { input: { cents: 5 } }],
  ['one Map', [new Map([['a', 1]])], { input: { a: 1 } }],
  ['two values', ['why', 2], { args: ['why', 2] }],
  ['two objects', [{ a: 1 }, { b: 2 }], { args: [{ a: 1 }, { b: 2 }] }],
  ['a function', ['a', () => 1], { args: ['a', '[Function anonymous]'] }],
])('the default inputs of a call with %s', (_, args, inputs) => {
  expect(runOf(() => 0, args)?.inputs).toEqual(inputs);
});

describe('the option', () => {
  const inner = traceable(() => 0, { name: 'inner' });

  test.each([
    ['modell', 'llm'],
    ['generation', 'llm'],
    ['tol', 'tool'],
    ['retreiver', 'retriever'],
  ])('runType %j is recorded as it is, and one line names %j', (runType, meant) => {
    const recorder = record();
    const lines = logLines('warn');
    traceable(() => 1, { name: 'ask', runType })();
    traceable(() => 1, { name: 'ask', runType: 'guardrail' })();
    expect(recorder.runs).toMatchObject([{ run_type: runType }, { run_type: 'guardrail' }]);
    expect(lines).toEqual([
      `warn: traceable: the run type "${runType}" is recorded as it is, but "${meant}" is probably meant.`,
    ]);
  });

  test('name, runType, tags, metadata or project is recorded', () => {
    const options = { name: 'ask', runType: 'llm', tags: ['a', 'b'], metadata: { model: 'm', n: 1 }, project: 'p' };
    expect(runOf(() => 0, [], options)).toMatchObject({
      name: 'ask',
      run_type: 'llm',
      tags: ['a', 'b'],
      extra: { metadata: { model: 'm', n: 1 } },
      session_name: 'p',
    });
  });

  test('root starts a new trace', () => {
    const recorder = record();
    const apart = traceable(() => inner(), { name: 'apart', root: true });
    traceable(() => apart(), { name: 'outer' })();
    expect(outlineOf(recorder)).toBe('outer (chain)\napart (chain)\n  inner (chain)');
  });

  test('exporter applies to the run and to nested runs', () => {
    const other = recordRuns();
    other.stop();
    const recorder = record();
    const tenant = traceable(() => inner(), { name: 'tenant', exporter: other.exporter });
    traceable(() => [tenant(), inner()], { name: 'outer' })();
    expect(recorder.runs.map((run) => run.name)).toEqual(['outer', 'inner']);
    expect(other.runs.map((run) => run.name)).toEqual(['tenant', 'inner']);
  });

  test('enabled: false leaves calls and nested calls untraced', () => {
    const recorder = record();
    const skipped = traceable(() => inner(), { name: 'skipped', enabled: false });
    traceable(() => skipped(), { name: 'outer' })();
    expect(recorder.runs.map(({ name }) => name)).toEqual(['outer']);
    expect(skipped.with({ enabled: true })()).toBe(0);
    expect(recorder.runs.map(({ name }) => name)).toContain('skipped');
  });

  test('inputs or outputs chooses the recorded values', () => {
    const run = runOf((a, b) => `${a}${b}`, ['secret', 2], {
      inputs: ([, second]) => ({ second }),
      outputs: (value) => ({ length: String(value).length }),
    });
    expect(run).toMatchObject({ inputs: { second: 2 }, outputs: { length: 7 } });
  });

  const wrap = traceable as (fn: () => number, options: unknown) => () => number;
  test.each(['false', 'OFF', 0])('enabled: %j turns the function off, and one line is logged', (enabled) => {
    const recorder = record();
    const lines = logLines();
    expect(wrap(() => inner(), { enabled })()).toBe(0);
    expect(recorder.runs).toEqual([]);
    expect(lines).toEqual(['warn: traceable: expected `enabled` to be true or false; false is used.']);
  });

  test.each<[string, unknown, string]>([
    ['of an unknown name', { retries: 3 }, 'unknown option `retries` is ignored'],
    ['enabled', { enabled: 'x' }, 'expected `enabled` to be true or false; the option is ignored'],
    ['inputs', { inputs: { a: 1 } }, 'expected `inputs` to be a function; the option is ignored'],
    ['outputs', { outputs: true }, 'expected `outputs` to be a function; the option is ignored'],
    ['aggregate', { aggregate: [] }, 'expected `aggregate` to be a function; the option is ignored'],
    ['that is not in an object', 'name', 'expected the options to be an object, got string; the options are ignored'],
  ])('%s is left out if it is invalid, and one line is logged', (_, options, line) => {
    const recorder = record();
    const lines = logLines();
    for (const given of [options, options, undefined]) expect(wrap(() => 1, given)()).toBe(1);
    expect(lines).toEqual([`warn: traceable: ${line}.`]);
    expect(recorder.runs).toMatchObject(Array(3).fill({ run_type: 'chain' }));
  });
});

describe('outputs that the application sets', () => {
  const own = { answer: 'short' };
  /** Sets the outputs and returns a different result. */
  const choose = <Value>(value: Value): Value => {
    currentRun()?.set({ outputs: own });
    return value;
  };
  const chunks = async function* () {
    choose(undefined);
    yield 'long';
  };
  const web = () => choose(new Blob(['long']).stream().pipeThrough(new TextDecoderStream() as never));

  test.each<[string, () => unknown, TraceableOptions | undefined, unknown]>([
    ['a returned value', () => choose('long'), undefined, 'long'],
    ['a plain object', () => choose({ answer: 'long' }), undefined, { answer: 'long' }],
    ['undefined', () => choose(undefined), undefined, undefined],
    ['the value of a promise', async () => choose(await 'long'), undefined, 'long'],
    ['the option `outputs`', () => choose('long'), { outputs: () => ({ chosen: true }) }, 'long'],
    ['chunks', () => chunks(), undefined, ['long']],
    ['the option `aggregate`', () => chunks(), { aggregate: (all) => all.join('') }, ['long']],
    ['chunks of a web stream', web, undefined, ['long']],
  ])('take precedence over %s', async (_, fn, options, expected) => {
    const recorder = record();
    const result = await traceable(fn, options)();
    const read: unknown[] = [];
    const isList = Array.isArray(expected);
    if (isList) for await (const chunk of result as AsyncIterable<unknown>) read.push(chunk);
    expect(isList ? read : result).toEqual(expected);
    expect(recorder.runs).toMatchObject([{ end_time: expect.any(String) }]);
    expect(recorder.runs[0]?.outputs).toEqual(own);
  });

  test('are those of the last `set`, and affect no other run', () => {
    const recorder = record();
    const inner = traceable(() => 'inner', { name: 'inner' });
    const outer = traceable(() => {
      choose(undefined);
      currentRun()?.set({ outputs: 'last' });
      return inner();
    });
    outer();
    expect(recorder.runs.map((run) => run.outputs)).toEqual([{ outputs: 'last' }, { outputs: 'inner' }]);
  });
});

describe('a callback', () => {
  const callbacks: [string, () => never, string][] = [
    [
      'throws',
      () => {
        throw new Error('broken');
      },
      'threw Error',
    ],
    // An unhandled rejection would fail this test file.
    ['returns a promise', (() => Promise.reject(new Error('late'))) as never, 'returned a promise instead of a value'],
  ];

  test.each(callbacks)('that %s has a marker as its value, and the payload is not recorded', (_, callback, text) => {
    const recorder = record();
    const lines = logLines('warn');
    const ask = traceable((key: string) => key, { name: 'ask', inputs: callback, outputs: callback });
    expect(ask('secret')).toBe('secret');
    expect(lines).toEqual(
      ['inputs', 'outputs'].map(
        (option) => `warn: traceable: \`${option}\` of "ask" ${text}; the error is recorded in place of the value.`,
      ),
    );
    const secret = function* secret() {
      yield 'secret';
    };
    expect([...traceable(secret, { name: 'ask', aggregate: callback })()]).toEqual(['secret']);
    const marker = (option: string) => ({ error: `\`${option}\` of "ask" ${text}` });
    expect(recorder.runs).toMatchObject([
      { inputs: marker('inputs'), outputs: marker('outputs') },
      { outputs: marker('aggregate') },
    ]);
    expect(JSON.stringify(recorder.runs)).not.toContain('secret');
  });

  test('is not called if its value is hidden, and chunks are hidden too', () => {
    const sink = makeSink({ hideInputs: true, hideOutputs: true });
    const inputs = () => expect.unreachable('called');
    expect(traceable((key: string) => key, { exporter: sink, inputs })('secret')).toBe('secret');
    const stream = function* () {
      yield 'secret';
    };
    expect([...traceable(stream, { exporter: sink })()]).toEqual(['secret']);
    expect(sink.ended).toHaveLength(2);
    expect(JSON.stringify(sink.records())).not.toContain('secret');
  });

  test('is not called for a refused run or a run below it', () => {
    const exporter = { ...makeSink(), start: () => false };
    const callback = () => expect.unreachable('called');
    const inner = traceable((a: number) => a, { inputs: callback, outputs: callback });
    expect(traceable(() => inner(1), { exporter, outputs: callback })()).toBe(1);
  });
});

describe('`with` of a traced function', () => {
  test('sets name, project and id of one call, and adds tags and metadata', () => {
    const recorder = record();
    const options = { name: 'answer', tags: ['shop'], metadata: { team: 'a', region: 'eu' } };
    const answer = traceable((question: string) => question.length, options);
    const id = runIdFrom('order-17');
    const own = { name: 'order', project: 'orders', id, tags: ['vip'], metadata: { region: 'us', user: 7 } };
    expect(answer.with(own)('tea')).toBe(3);
    expect(answer('tea')).toBe(3);
    expect(recorder.runs).toMatchObject([
      { id, name: 'order', session_name: 'orders', tags: ['shop', 'vip'] },
      { name: 'answer', session_name: 'default', tags: ['shop'] },
    ]);
    expect(recorder.runs.map(({ extra }) => extra?.metadata)).toEqual([
      { team: 'a', region: 'us', user: 7 },
      { team: 'a', region: 'eu' },
    ]);
  });

  test('sets the id of one call: later and nested calls get new ids, and one line is logged', () => {
    const recorder = record();
    const lines = logLines();
    const id = runIdFrom('order-18');
    const count: (n: number) => number = traceable((n: number) => (n === 0 ? 0 : count(n - 1) + 1), {
      name: 'count',
      id,
    });
    expect(count(2)).toBe(2);
    const again = traceable(() => 1, { name: 'again' }).with({ id: runIdFrom('order-19') });
    expect([again(), again()]).toEqual([1, 1]);
    const ids = recorder.runs.map((run) => run.id);
    expect([ids[0], ids[3]]).toEqual([id, runIdFrom('order-19')]);
    expect(new Set(ids).size).toBe(5);
    expect(treeOf(recorder.runs)).toEqual({ count: { count: { count: {} } }, again: {} });
    expect(lines).toEqual([
      'warn: traceable: "count" has an `id` and was called again, so the new run gets another id. Give each call its own id: fn.with({ id })(…).',
    ]);
  });

  test('is the property of the original function if it has one', () => {
    const fn = Object.assign(() => 1, { with: () => 'mine' });
    expect((traceable(fn) as unknown as { with: () => string }).with()).toBe('mine');
  });

  test('reports invalid options and calls the function', () => {
    record();
    const lines = logLines();
    const fn = traceable(() => 1) as unknown as { with(options: unknown): () => number };
    expect(fn.with({ nme: 'x', id: 'no uuid' })()).toBe(1);
    expect(fn.with(null)()).toBe(1);
    expect(lines.join('\n')).toContain('with: unknown option `nme` is ignored; use `name`.');
    expect(lines.join('\n')).toContain(
      'with: expected `id` to be a UUID, or the result of runIdFrom(key); the option is ignored.',
    );
  });
});

test('a function that is wrapped again is traced once, and later options take precedence', () => {
  const recorder = record();
  const once = traceable(() => 1, { name: 'first', runType: 'tool', tags: ['a'] });
  expect(traceable(traceable(once, { name: 'second', tags: ['b'] }))()).toBe(1);
  expect(recorder.runs).toMatchObject([{ name: 'second', run_type: 'tool', tags: ['a', 'b'] }]);
});
