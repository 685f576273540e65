import { describe, expect, onTestFinished, test } from 'vitest';
import { currentRun, type Run, startRun, traceable } from '#src/index.ts';
import { recordRuns } from '#src/testing.ts';

function recorder(): ReturnType<typeof recordRuns> {
  const recorded = recordRuns();
  onTestFinished(() => recorded.stop());
  return recorded;
}

function noting(notes: string[], values: Record<string, () => unknown>): object {
  const value = {};
  for (const [key, make] of Object.entries(values)) {
    const get = (): unknown => {
      notes.push(key);
      return make();
    };
    Object.defineProperty(value, key, { enumerable: true, get });
  }
  return value;
}

function fail(): never {
  throw new Error('no');
}

const change = (work: (run: Run) => void): void => {
  const run = startRun({ name: 'run' });
  work(run);
  run.end();
};

function* chunksOf(value: object): Generator<object> {
  yield value;
}

const PLACES: [string, (value: object) => unknown][] = [
  ['an argument', (value) => traceable((_: object) => {})(value)],
  ['one of several arguments', (value) => traceable((_: object, __: number) => {})(value, 1)],
  ['a result', (value) => traceable(() => value)()],
  ['the result of a promise', (value) => traceable(async () => value)()],
  ['a chunk', (value) => [...traceable(() => chunksOf(value))()]],
  ['inputs of a run', (value) => startRun({ name: 'run', inputs: { value } }).end()],
  ['outputs of a run', (value) => startRun({ name: 'run' }).end(value)],
  ['metadata', (value) => startRun({ name: 'run', metadata: { value } }).end()],
  ['an event', (value) => change((run) => run.event('event', { value }))],
  ['changed inputs', (value) => change((run) => run.set({ inputs: { value } }))],
];

describe.each(PLACES)('%s', (_, record) => {
  test('is recorded with its state at the call, with getters called at most twice and toJSON once', async () => {
    const recorded = recorder();
    const notes: string[] = [];
    const state = { now: 'then', list: [1] };
    const toJSON = (): unknown => {
      notes.push('toJSON');
      return state.list;
    };
    await record({ got: noting(notes, { now: () => state.now, bad: fail }), made: { toJSON }, state });
    state.now = 'later';
    state.list.push(2);
    const text = JSON.stringify(recorded.runs);
    expect(text.match(/"now":"then"/g)).toHaveLength(2);
    expect(text).toContain('"bad":"[Threw: no]"');
    expect(text).toContain('"made":[1]');
    expect(text).not.toContain('later');
    for (const key of ['now', 'bad']) expect(notes.filter((note) => note === key).length).toBeLessThanOrEqual(2);
    expect(notes.filter((note) => note === 'toJSON')).toHaveLength(1);
  });

  test('may change while it is read', async () => {
    const recorded = recorder();
    const value: Record<string, unknown> = { before: 1 };
    const get = (): string => {
      delete value.last;
      Object.assign(value, { added: 'added', before: 2 });
      return 'changed';
    };
    Object.defineProperty(value, 'changing', { enumerable: true, get });
    const toJSON = (): string[] => {
      value.more = 1;
      return ['made'];
    };
    await record(Object.assign(value, { list: { toJSON }, last: 'last' }));
    const text = JSON.stringify(recorded.runs);
    expect(text).toContain('"changing":"changed"');
    expect(text).toContain('"list":["made"]');
    expect(text).not.toContain('"last":"last"');
  });
});

test('code of values runs in key order, before the function for arguments and after it for results', () => {
  recorder();
  const notes: string[] = [];
  const work = traceable((_: object) => {
    notes.push('work');
    return noting(notes, { c: () => 3, d: () => ({ toJSON: () => notes.push('toJSON') }) });
  });
  work(noting(notes, { a: () => 1, b: () => noting(notes, { 'below b': () => 2 }) }));
  notes.push('caller');
  expect([...new Set(notes)]).toEqual(['a', 'b', 'below b', 'work', 'c', 'd', 'toJSON', 'caller']);
});

describe('code of a value', () => {
  test('may end its run', () => {
    const recorded = recorder();
    const toJSON = (): string => {
      currentRun()?.end({ by: 'toJSON' });
      return 'ended';
    };
    const work = (): object => {
      currentRun()?.set({ metadata: { ending: { toJSON } } });
      return { by: 'result' };
    };
    expect(traceable(work)()).toEqual({ by: 'result' });
    expect(recorded.run('work')).toMatchObject({ outputs: { by: 'toJSON' }, end_time: expect.any(String) });
  });

  test('may call traced functions', () => {
    const recorded = recorder();
    const inner = traceable(() => 'inner', { name: 'inner' });
    const outer = traceable(() => noting([], { got: inner }) as { got: string }, { name: 'outer' });
    expect(outer().got).toBe('inner');
    expect(recorded.run('outer').outputs).toEqual({ got: 'inner' });
    expect(recorded.runs.filter(({ name }) => name === 'inner').length).toBeGreaterThanOrEqual(2);
  });
});
