import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { currentRun } from '../../src/run/start-run.ts';
import { gate } from '../support/gate.ts';
import { record, treeOf } from './recorder.ts';

const inner = traceable(() => currentRun()?.parentRunId, { name: 'inner' });

function* numbers(): Generator<number> {
  yield 1;
  yield 2;
}

async function* later(): AsyncGenerator<number> {
  yield 1;
  await undefined;
  yield 2;
}

describe('a generator', () => {
  test('is lazy: neither body nor run begins before the first next()', async () => {
    const recorder = record();
    const [chunks, asynchronous] = [traceable(numbers)(), traceable(later)()];
    expect(recorder.runs).toEqual([]);
    expect(chunks.next()).toEqual({ done: false, value: 1 });
    expect(recorder.runs).toMatchObject([{ name: 'numbers' }]);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect([...chunks]).toEqual([2]);
    const step = asynchronous.next();
    expect(Object.getPrototypeOf(step)).toBe(Promise.prototype);
    expect(await step).toEqual({ done: false, value: 1 });
    for await (const n of asynchronous) expect(n).toBe(2);
    const ended = { outputs: { outputs: [1, 2] }, end_time: expect.any(String) };
    expect(recorder.runs).toMatchObject([ended, ended]);
  });

  test('is the object that the function made', () => {
    record();
    const count = traceable(function* (this: unknown) {
      yield this;
    });
    count.prototype.help = 'counts';
    const chunks = count.call('self') as Generator & { help?: string };
    expect(chunks).toBeInstanceOf(count);
    expect(chunks.help).toBe('counts');
    expect(chunks[Symbol.iterator]()).toBe(chunks);
    expect(Object.prototype.toString.call(chunks)).toBe('[object Generator]');
    expect(Object.keys(chunks)).toEqual([]);
    expect(chunks.next().value).toBe('self');
    expect(Object.prototype.toString.call(traceable(later)())).toBe('[object AsyncGenerator]');
  });

  test('records inputs and parent of the call, not of the first next()', () => {
    const recorder = record();
    const list = traceable(
      function* (given: { text: string }) {
        yield given.text;
      },
      { name: 'list' },
    );
    const given = { text: 'old' };
    const { chunks } = traceable(() => ({ chunks: list(given) }), { name: 'caller', outputs: () => ({}) })();
    given.text = 'new';
    expect(traceable(() => chunks.next(), { name: 'reader' })().value).toBe('new');
    expect(treeOf(recorder.runs)).toEqual({ caller: { list: {} }, reader: {} });
    expect(recorder.run('list').inputs).toEqual({ text: 'old' });
  });

  test('runs each step in the context of its run, whoever asks for it', async () => {
    const recorder = record();
    const steps = traceable(
      async function* () {
        yield inner();
        await undefined;
        yield inner();
      },
      { name: 'steps' },
    )();
    for (const name of ['reader', 'reader 2']) {
      const { value } = await traceable(() => steps.next(), { name, outputs: () => ({}) })();
      expect(value).toBe(recorder.run('steps').id);
      expect(currentRun()).toBeUndefined();
    }
    expect(treeOf(recorder.runs)).toEqual({ steps: { inner: {} }, reader: {}, 'reader 2': {} });
  });

  test('ends its run at a break, after its finally block', async () => {
    const recorder = record();
    const cleaned = gate();
    const stream = traceable(async function* () {
      try {
        yield* numbers();
      } finally {
        await cleaned;
        inner();
      }
    });
    const read = (async () => {
      for await (const _ of stream()) break;
    })();
    await new Promise(setImmediate);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    cleaned.open();
    await read;
    const ended = { outputs: { outputs: [1] }, end_time: expect.any(String) };
    expect(recorder.runs).toMatchObject([ended, { name: 'inner' }]);
  });

  test('that yields in its finally block goes on until it is done', () => {
    const recorder = record();
    const count = traceable(function* () {
      try {
        yield 1;
      } finally {
        yield 2;
      }
    })();
    count.next();
    expect(count.return()).toEqual({ done: false, value: 2 });
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(count.next()).toEqual({ done: true, value: undefined });
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: [1, 2] }, end_time: expect.any(String) });
  });

  test('delegates by yield* to another, whose run is below it', () => {
    const recorder = record();
    const words = traceable(numbers, { name: 'words' });
    const all = function* () {
      yield* words();
      yield 3;
    };
    expect([...traceable(all)()]).toEqual([1, 2, 3]);
    expect(treeOf(recorder.runs)).toEqual({ all: { words: {} } });
    expect(recorder.runs.map((run) => run.outputs?.outputs)).toEqual([
      [1, 2, 3],
      [1, 2],
    ]);
  });
});

describe('a plain function that returns a generator', () => {
  test('begins its run at the call and ends it with the generator, which is the same object', () => {
    const recorder = record();
    const generator = numbers();
    const chunks = traceable(() => generator)();
    expect(chunks).toBe(generator);
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect([...chunks]).toEqual([1, 2]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [1, 2] }, end_time: expect.any(String) }]);
  });

  test('ends its run when the generator is returned or thrown into before its first step', () => {
    const recorder = record();
    const hand = traceable(() => numbers());
    hand().return(0);
    expect(() => hand().throw(new Error('early'))).toThrow('early');
    expect(recorder.runs.map((run) => 'end_time' in run)).toEqual([true, true]);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([undefined, 'Error: early']);
  });

  test('ends its run at once when the generator cannot be changed', () => {
    const recorder = record();
    const generator = Object.freeze(numbers());
    expect(traceable(() => generator, { outputs: (chunks) => ({ first: chunks[0] }) })()).toBe(generator);
    expect([...generator]).toEqual([1, 2]);
    expect(recorder.runs[0]).toMatchObject({ outputs: {}, end_time: expect.any(String) });
  });

  test('of another realm is followed as any other', async () => {
    const recorder = record();
    const numbersThere = runInNewContext('(async function* numbers() { yield 1; yield 2; })');
    const chunks: unknown[] = [];
    for await (const chunk of traceable(numbersThere as typeof later)()) chunks.push(chunk);
    expect(chunks).toEqual([1, 2]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [1, 2] }, end_time: expect.any(String) }]);
  });
});
