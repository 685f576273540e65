import { EventEmitter, once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { traceable, withTrace } from '#src/instrument/traceable.ts';
import { enteredContext } from '#src/run/context/current.ts';
import { currentRun } from '#src/run/start-run.ts';
import { gate } from '../support/gate.ts';
import { logLines } from '../support/log-lines.ts';
import { moduleText, runNode } from '../support/program.ts';
import { record, treeOf } from './recorder.ts';
import { runProgram } from './run-program.ts';

test('an asynchronous function starts in the same turn, and its run ends when its promise settles', async () => {
  const recorder = record();
  const model = gate<string>();
  const ask = traceable(async (question: string) => `${await model} of ${question}`);
  const answer = ask('life');
  expect(Object.getPrototypeOf(answer)).toBe(Promise.prototype);
  expect(recorder.runs).toMatchObject([{ inputs: { input: 'life' } }]);
  expect(recorder.runs[0]).not.toHaveProperty('end_time');
  model.open('meaning');
  expect(await answer).toBe('meaning of life');
  expect(recorder.runs).toMatchObject([{ outputs: { outputs: 'meaning of life' }, end_time: expect.any(String) }]);
});

describe('a traced function has, like its function,', () => {
  test('its name, length and own properties', () => {
    const key = Symbol('key');
    const fn = Object.assign(function sum(_a: number, _b: number) {}, { help: 'adds', [key]: 1 });
    Object.defineProperty(fn, 'hidden', { value: 2, enumerable: false });
    const traced = traceable(fn);
    expect(traced).not.toBe(fn);
    expect([traced.name, traced.length, traced.help, traced[key]]).toEqual(['sum', 2, 'adds', 1]);
    expect(Object.getOwnPropertyDescriptor(traced, 'hidden')).toEqual(Object.getOwnPropertyDescriptor(fn, 'hidden'));
    expect(Object.keys(traced)).toEqual(['help']);
  });

  const kinds = {
    arrow: () => 0,
    function: function named() {},
    method: { method() {} }.method,
    async: async () => 0,
    generator: function* () {},
    'async generator': async function* () {},
    bound: function plain() {}.bind(undefined),
    sloppy: new Function('a', 'return a') as () => unknown,
  };

  test.each(Object.entries(kinds))('its prototypes and own keys: %s', (name, fn) => {
    const traced = traceable(fn);
    expect(traced).not.toBe(fn);
    expect(Object.getPrototypeOf(traced)).toBe(Object.getPrototypeOf(fn));
    // A bound function is a constructor without `prototype`. The `prototype` of a wrapper cannot be deleted.
    const own = (target: object) =>
      new Set(Reflect.ownKeys(target).filter((key) => name !== 'bound' || key !== 'prototype'));
    expect(own(traced)).toEqual(own(fn).add('with'));
    expect(Object.keys(traced)).toEqual(Object.keys(fn));
    expect((traced as { prototype?: unknown }).prototype).toBe((fn as { prototype?: unknown }).prototype);
  });

  test.each(Object.entries(kinds))('the same result of `new`: %s', (_, fn) => {
    record();
    const construct = (target: unknown) => {
      try {
        return Object.getPrototypeOf(new (target as new () => object)());
      } catch (thrown) {
        return (thrown as Error).name;
      }
    };
    expect(construct(traceable(fn))).toBe(construct(fn));
  });
});

test('`new` on a traced constructor function creates its instances, without a run', () => {
  function Point(this: { x: number; target: unknown }, x: number) {
    this.x = x;
    this.target = new.target;
  }
  Point.prototype.double = function (this: { x: number }) {
    return this.x * 2;
  };
  type PointClass = new (x: number) => { x: number; target: unknown; double(): number };
  const recorder = record();
  const Traced = traceable(Point) as unknown as PointClass;
  const point = new Traced(3);
  expect(point).toBeInstanceOf(Point);
  expect(point).toBeInstanceOf(Traced);
  expect([point.x, point.double(), point.target]).toEqual([3, 6, Point]);
  class Pixel extends Traced {}
  expect(new Pixel(4).target).toBe(Pixel);
  expect(recorder.runs).toEqual([]);
});

describe('the tree of runs', () => {
  const step = traceable(async (wait: Promise<unknown>) => wait, { name: 'step' });

  test('has nested calls below the calls that make them', async () => {
    const recorder = record();
    const search = traceable(() => {}, { name: 'search' });
    const model = traceable(async () => search(), { name: 'model' });
    const answerAll = traceable(async () => [search(), await model()], { name: 'answer' });
    await answerAll();
    expect(treeOf(recorder.runs)).toEqual({ answer: { search: {}, model: { search: {} } } });
    const [answer, , , deepest] = recorder.runs;
    expect(deepest?.trace_id).toBe(answer?.id);
    expect(deepest?.dotted_order.split('.')).toHaveLength(3);
    expect(deepest?.dotted_order).toContain(`${answer?.dotted_order}.`);
  });

  test('separates concurrent calls', async () => {
    const recorder = record();
    const gates = [gate(), gate(), gate()];
    const calls = gates.map((wait, index) =>
      traceable(
        async () => {
          await wait;
          await step(Promise.resolve());
        },
        { name: `call ${index}` },
      )(),
    );
    for (const index of [2, 0, 1]) gates[index]?.open();
    await Promise.all(calls);
    const expected = { 'call 0': { step: {} }, 'call 1': { step: {} }, 'call 2': { step: {} } };
    expect(treeOf(recorder.runs)).toEqual(expected);
    expect(new Set(recorder.runs.map((run) => run.trace_id)).size).toBe(3);
  });

  test('contains a run that ends after its parent', async () => {
    const recorder = record();
    const late = gate();
    let child: Promise<unknown> | undefined;
    traceable(
      () => {
        child = step(late);
      },
      { name: 'parent' },
    )();
    expect(recorder.runs.map((run) => 'end_time' in run)).toEqual([true, false]);
    late.open();
    await child;
    expect(treeOf(recorder.runs)).toEqual({ parent: { step: {} } });
    expect(recorder.runs[1]).toHaveProperty('end_time');
  });
});

describe('withTrace', () => {
  test('calls a function in a new trace, also inside a run, and returns its result in the same turn', async () => {
    const recorder = record();
    const result = {};
    const inner = traceable(() => currentRun()?.name, { name: 'inner' });
    const outer = traceable(() => [withTrace('job', () => result), withTrace('other', inner)], { name: 'outer' });
    expect(outer()).toEqual([result, 'other']);
    expect(await withTrace('third', async () => inner())).toBe('inner');
    expect(treeOf(recorder.runs)).toEqual({ outer: {}, job: {}, other: {}, third: { inner: {} } });
    expect(recorder.runs[1]).toMatchObject({ inputs: {}, trace_id: recorder.runs[1]?.id });
  });

  test('records an error and throws the same object, or rejects with it', async () => {
    const recorder = record();
    const error = new RangeError('of the job');
    const fail = () => {
      throw error;
    };
    expect(() => withTrace('job', fail)).toThrow(error);
    const rejected: unknown = await withTrace('later', async () => fail()).catch((thrown: unknown) => thrown);
    expect(rejected).toBe(error);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(Array(2).fill('RangeError: of the job'));
  });
});

describe('the run of a call is the current run', () => {
  const inner = traceable(() => currentRun()?.id, { name: 'inner' });
  const emitter = new EventEmitter();
  emitter.on('event', (done: () => void) => {
    inner();
    done();
  });

  test.each<[string, () => unknown]>([
    ['synchronously', () => inner()],
    ['after an await', async () => [await undefined, inner()]],
    ['in a timer', () => new Promise((done) => setTimeout(() => done(inner()), 0))],
    ['in setImmediate', () => new Promise((done) => setImmediate(() => done(inner())))],
    ['in a listener that was added before', () => new Promise<void>((done) => emitter.emit('event', done))],
    [
      'after an awaited event',
      async () => [setImmediate(() => emitter.emit('once')), await once(emitter, 'once'), inner()],
    ],
    ['in a callback of then', () => Promise.resolve().then(inner)],
  ])('%s', async (_, body) => {
    const recorder = record();
    await traceable(body, { name: 'outer' })();
    expect(treeOf(recorder.runs)).toEqual({ outer: { inner: {} } });
  });

  test('only during the call', async () => {
    record();
    const ids: (string | undefined)[] = [];
    const call = traceable(async () => {
      ids.push(currentRun()?.id);
      await undefined;
      ids.push(currentRun()?.id);
    });
    const done = call();
    expect(currentRun()).toBeUndefined();
    await done;
    expect(currentRun()).toBeUndefined();
    expect(ids).toEqual([expect.any(String), ids[0]]);
  });
});

describe('a value that is not a function is returned, and one line is logged:', () => {
  class Service {
    answer = 42;
  }

  test.each<[string, unknown, string]>([
    ['a class', Service, 'got a class'],
    ['a class without a name', class {}, 'got a class'],
    ['an object', { a: 1 }, 'got object'],
    ['text', 'fn', 'got string'],
    ['null', null, 'got null'],
    ['undefined', undefined, 'got undefined'],
  ])('%s', (_, value, got) => {
    const lines = logLines();
    const wrap = traceable as (value: unknown) => unknown;
    expect(wrap(value)).toBe(value);
    expect(wrap(value)).toBe(value);
    expect(lines).toEqual([`warn: traceable(fn): expected a function, ${got}; the value is not traced.`]);
  });

  test('but a method with the name `class` is traced', () => {
    const recorder = record();
    const lines = logLines();
    const html = { class: traceable({ class() {} }.class), $: traceable({ class$x() {} }.class$x) };
    html.class();
    html.$();
    expect(recorder.runs.map((run) => run.name)).toEqual(['class', 'class$x']);
    expect(lines).toEqual([]);
  });
});

describe('with tracing off', () => {
  test('the function is called directly and its result does not change', () => {
    const promise = Promise.resolve(1);
    expect(traceable(() => promise)()).toBe(promise);
    expect(Reflect.ownKeys(traceable(function* () {})())).toEqual([]);
    expect(traceable(() => enteredContext())()).toBeUndefined();
    const callback = () => expect.fail('called');
    expect(traceable(() => currentRun(), { inputs: callback, outputs: callback })()).toBeUndefined();
  });

  test('the wrapper adds one stack frame to a call, until tracing is configured', () => {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = Number.POSITIVE_INFINITY;
    onTestFinished(() => {
      Error.stackTraceLimit = limit;
    });
    const frames = (fn: () => string | undefined): number => (fn()?.match(/^ +at /gm) ?? []).length;
    const arrow = () => new Error('here').stack;
    function ordinary() {
      return new Error('here').stack;
    }
    for (const plain of [arrow, ordinary]) {
      const wrapped = traceable(plain);
      expect(frames(wrapped)).toBe(frames(plain) + 1);
      expect(frames(traceable(plain, { enabled: false }))).toBe(frames(plain) + 1);
      const recorder = record();
      wrapped();
      expect(recorder.runs).toHaveLength(1);
      recorder.stop();
      expect(frames(wrapped)).toBe(frames(plain) + 1);
    }
  });

  test('a recursion of 3,000 calls fits the stack', async () => {
    const program = `
      import { traceable } from 'runspan';
      const sum = traceable((n) => (n === 0 ? 0 : n + sum(n - 1)));
      console.log(sum(3_000));
    `;
    expect(await runNode(moduleText(program))).toMatchObject({ code: 0, stdout: '4501500\n', stderr: '' });
  });

  test('a program never enters an AsyncLocalStorage', async () => {
    expect(await runProgram('off', ['off'])).toEqual({
      code: 0,
      signal: null,
      stdout: 'never entered plain promises\n',
      stderr: '',
      runs: [],
    });
  });

  test('the same program enters one if tracing is on', async () => {
    const ended = await runProgram('off', ['on']);
    expect(ended.stdout).toMatch(/^entered /);
    expect(ended.runs.map((run) => run.name)).toEqual(['anonymous', 'anonymous', 'anonymous', 'anonymous', 'by hand']);
  });
});
