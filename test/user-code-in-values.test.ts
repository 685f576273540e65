import { describe, expect, onTestFinished, test } from 'vitest';
import { currentRun, type Run, startRun, traceable } from '../src/index.ts';
import { recordRuns } from '../src/testing.ts';

function recorder(): ReturnType<typeof recordRuns> {
  const recorded = recordRuns();
  onTestFinished(() => recorded.stop());
  return recorded;
}

/** An object whose properties note that they are read. */
function noting(notes: string[], values: Record<string, unknown>): object {
  const value = {};
  for (const [key, of] of Object.entries(values)) {
    Object.defineProperty(value, key, {
      enumerable: true,
      configurable: true,
      get: () => {
        notes.push(key);
        return typeof of === 'function' ? of() : of;
      },
    });
  }
  return value;
}

/** Every way in which a value reaches a run. */
const places: [string, (value: object) => unknown][] = [
  ['an argument', (value) => traceable((_: object) => {})(value)],
  ['one of several arguments', (value) => traceable((_: object, __: number) => {})(value, 1)],
  ['a result', (value) => traceable(() => value)()],
  ['the result of a promise', (value) => traceable(async () => value)()],
  [
    'a chunk',
    (value) => [
      ...traceable(function* () {
        yield value;
      })(),
    ],
  ],
  ['inputs of a run', (value) => startRun({ name: 'run', inputs: { value } }).end()],
  ['outputs of a run', (value) => startRun({ name: 'run' }).end(value)],
  ['metadata', (value) => startRun({ name: 'run', metadata: { value } }).end()],
  ['an event', (value) => ended((run) => run.event('event', { value }))],
  ['changed inputs', (value) => ended((run) => run.set({ inputs: { value } }))],
];

function ended(change: (run: Run) => void): void {
  const run = startRun({ name: 'run' });
  change(run);
  run.end();
}

describe.each(places)('%s', (_, record) => {
  test('has an own getter called at most twice, and one that throws too', async () => {
    recorder();
    const notes: string[] = [];
    await record(noting(notes, { a: 1, bad: () => fail() }));
    for (const key of ['a', 'bad']) {
      const count = notes.filter((note) => note === key).length;
      expect(count, key).toBeGreaterThanOrEqual(1);
      expect(count, key).toBeLessThanOrEqual(2);
    }
  });

  test('has toJSON called once', async () => {
    const recorded = recorder();
    let calls = 0;
    await record({ kept: { toJSON: () => ({ calls: ++calls }) } });
    expect(calls).toBe(1);
    expect(JSON.stringify(recorded.runs)).toContain('{"calls":1}');
  });

  test('is recorded as it is at that moment', async () => {
    const recorded = recorder();
    const state = { now: 'then', list: [1] };
    await record({ got: noting([], { now: () => state.now }), made: { toJSON: () => state.list }, state });
    state.now = 'later';
    state.list.push(2);
    const text = JSON.stringify(recorded.runs);
    expect(text.match(/"now":"then"/g)).toHaveLength(2);
    expect(text).toContain('"made":[1]');
    expect(text).not.toContain('later');
  });

  test('may change itself while it is read', async () => {
    const recorded = recorder();
    const value: Record<string, unknown> = { before: 1 };
    Object.defineProperty(value, 'changing', {
      enumerable: true,
      get: () => {
        delete value.last;
        value.added = 'added';
        value.before = 2;
        return 'changed';
      },
    });
    Object.assign(value, {
      list: {
        toJSON: () => {
          value.more = 1;
          return ['made'];
        },
      },
      last: 'last',
    });
    await record(value);
    const text = JSON.stringify(recorded.runs);
    expect(text).toContain('"changing":"changed"');
    expect(text).toContain('"list":["made"]');
    expect(text).not.toContain('"last":"last"');
  });
});

describe('the order in which code of a value runs', () => {
  test('is that of its keys; of arguments before the function, of the result before its caller goes on', () => {
    recorder();
    const notes: string[] = [];
    const work = traceable((_: object) => {
      notes.push('work');
      return noting(notes, { c: 3, d: { toJSON: () => notes.push('toJSON') } });
    });
    work(noting(notes, { a: 1, b: () => noting(notes, { 'below b': 2 }) }));
    notes.push('caller');
    expect([...new Set(notes)]).toEqual(['a', 'b', 'below b', 'work', 'c', 'd', 'toJSON', 'caller']);
  });
});

describe('code of a value that uses tracing', () => {
  test('may end the run that it is recorded for', () => {
    const recorded = recorder();
    const ending = {
      toJSON: () => {
        currentRun()?.end({ by: 'toJSON' });
        return 'ended';
      },
    };
    const work = traceable(
      () => {
        currentRun()?.set({ metadata: { ending } });
        return { by: 'result' };
      },
      { name: 'work' },
    );
    expect(work()).toEqual({ by: 'result' });
    const run = recorded.run('work');
    expect(run.outputs).toEqual({ by: 'toJSON' });
    expect(run.end_time).toBeDefined();
  });

  test('may call traced functions, which are runs as any other', () => {
    const recorded = recorder();
    const inner = traceable(() => 'inner', { name: 'inner' });
    expect(
      traceable(
        () => ({
          get got() {
            return inner();
          },
        }),
        { name: 'outer' },
      )().got,
    ).toBe('inner');
    expect(recorded.run('outer').outputs).toEqual({ got: 'inner' });
    expect(recorded.runs.filter(({ name }) => name === 'inner').length).toBeGreaterThanOrEqual(2);
  });
});

function fail(): never {
  throw new Error('no');
}
