import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { currentRun } from '../../src/run/start-run.ts';
import { gate } from '../support/gate.ts';
import { record, treeOf } from './recorder.ts';

const inner = traceable(() => currentRun()?.parentRunId, { name: 'inner' });

describe('a generator', () => {
  test('is lazy: neither body nor run begins before the first next()', () => {
    const recorder = record();
    const effects: string[] = [];
    const count = traceable(function* (to: number) {
      effects.push('begun');
      for (let n = 1; n <= to; n++) yield n;
    });
    const numbers = count(2);
    expect([effects, recorder.runs]).toEqual([[], []]);
    expect(numbers.next()).toEqual({ done: false, value: 1 });
    expect(effects).toEqual(['begun']);
    expect(recorder.runs).toMatchObject([{ inputs: { input: 2 } }]);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect([...numbers]).toEqual([2]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [1, 2] }, end_time: expect.any(String) }]);
  });

  test('is the object that the function made', () => {
    record();
    const count = traceable(function* (this: unknown) {
      yield this;
    });
    count.prototype.help = 'counts';
    const numbers = count.call('self') as Generator & { help?: string };
    expect(numbers).toBeInstanceOf(count);
    expect(numbers.help).toBe('counts');
    expect(numbers[Symbol.iterator]()).toBe(numbers);
    expect(Object.prototype.toString.call(numbers)).toBe('[object Generator]');
    expect(Object.keys(numbers)).toEqual([]);
    expect(numbers.next().value).toBe('self');
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
    const chunks = traceable(() => list(given), { name: 'maker', outputs: () => ({}) });
    const handedOut = traceable(() => ({ chunks: list(given) }), { name: 'caller', outputs: () => ({}) })().chunks;
    given.text = 'new';
    traceable(() => handedOut.next(), { name: 'reader' })();
    expect(treeOf(recorder.runs)).toEqual({ caller: { list: {} }, reader: {} });
    expect(recorder.runs.find((run) => run.name === 'list')?.inputs).toEqual({ text: 'old' });
    expect([...chunks()]).toEqual(['new']);
    expect(treeOf(recorder.runs)).toMatchObject({ maker: { list: {} } });
  });

  test('does each step in the context of its run, and none of the caller', () => {
    const recorder = record();
    const steps = traceable(
      function* () {
        yield inner();
        yield inner();
      },
      { name: 'steps' },
    );
    for (const parent of steps()) {
      expect(parent).toBe(recorder.runs[0]?.id);
      expect(currentRun()).toBeUndefined();
    }
    expect(treeOf(recorder.runs)).toEqual({ steps: { inner: {} } });
    expect(recorder.runs).toHaveLength(3);
  });

  test('ends its run at a break, after its finally block', () => {
    const recorder = record();
    const effects: string[] = [];
    const count = traceable(function* () {
      try {
        yield 1;
        yield 2;
      } finally {
        effects.push(recorder.runs.some((run) => 'end_time' in run) ? 'too late' : 'cleaned');
        inner();
      }
    });
    for (const _ of count()) break;
    expect(effects).toEqual(['cleaned']);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [1] } }, { name: 'inner' }]);
  });

  test('delegates by yield* to another, whose run is below it', () => {
    const recorder = record();
    const words = traceable(
      function* (): Generator<string, number> {
        yield 'a';
        yield 'b';
        return 2;
      },
      { name: 'words' },
    );
    const all = traceable(
      function* () {
        const count = yield* words();
        yield `${count} words`;
      },
      { name: 'all' },
    );
    expect([...all()]).toEqual(['a', 'b', '2 words']);
    expect(treeOf(recorder.runs)).toEqual({ all: { words: {} } });
    expect(recorder.runs.map((run) => run.outputs?.outputs)).toEqual([
      ['a', 'b', '2 words'],
      ['a', 'b'],
    ]);
  });
});

describe('an asynchronous generator', () => {
  test('is lazy, and its steps are promises', async () => {
    const recorder = record();
    const chunks = traceable(async function* (to: number) {
      for (let n = 1; n <= to; n++) yield n;
    })(2);
    expect(recorder.runs).toEqual([]);
    const step = chunks.next();
    expect(Object.getPrototypeOf(step)).toBe(Promise.prototype);
    expect(await step).toEqual({ done: false, value: 1 });
    const rest: number[] = [];
    for await (const n of chunks) rest.push(n);
    expect(rest).toEqual([2]);
    expect(recorder.runs).toMatchObject([{ inputs: { input: 2 }, outputs: { outputs: [1, 2] } }]);
    expect(recorder.runs[0]).toHaveProperty('end_time');
  });

  test('keeps its context when its steps are asked for within other runs', async () => {
    const recorder = record();
    const steps = traceable(
      async function* () {
        yield inner();
        yield inner();
      },
      { name: 'steps' },
    )();
    await traceable(() => steps.next(), { name: 'reader', outputs: () => ({}) })();
    await traceable(() => steps.next(), { name: 'reader 2', outputs: () => ({}) })();
    expect(treeOf(recorder.runs)).toEqual({ steps: { inner: {} }, reader: {}, 'reader 2': {} });
  });

  test('ends its run at a break, after its finally block', async () => {
    const recorder = record();
    const cleaned = gate();
    const stream = traceable(async function* () {
      try {
        yield 1;
        yield 2;
      } finally {
        await cleaned;
        inner();
      }
    });
    const read = (async () => {
      for await (const _ of stream()) break;
    })();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    cleaned.open();
    await read;
    expect(recorder.runs).toMatchObject([
      { outputs: { outputs: [1] }, end_time: expect.any(String) },
      { name: 'inner' },
    ]);
  });
});

describe('a plain function that returns a generator', () => {
  function* numbers() {
    yield 1;
    yield 2;
  }

  test('has begun its run at the call and ends it with the generator, which is the same object', () => {
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
    // biome-ignore lint/correctness/noEmptyPattern: it calls return() and never next().
    const [] = hand();
    expect(() => hand().throw(new Error('early'))).toThrow('early');
    expect(recorder.runs.map((run) => 'end_time' in run)).toEqual([true, true]);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([undefined, 'Error: early']);
  });

  test('ends its run at once when the generator cannot be changed', () => {
    const recorder = record();
    const generator = Object.freeze(numbers());
    expect(traceable(() => generator, { outputs: (chunks) => ({ first: chunks[0] }) })()).toBe(generator);
    expect([...generator]).toEqual([1, 2]);
    expect(recorder.runs[0]).toHaveProperty('end_time');
    expect(recorder.runs[0]).toHaveProperty('outputs', {});
  });

  test('of another realm is followed as any other', async () => {
    const recorder = record();
    const numbersThere = runInNewContext('(async function* numbers() { yield 1; yield 2; })');
    const chunks: unknown[] = [];
    for await (const chunk of traceable(numbersThere as () => AsyncGenerator<number>)()) chunks.push(chunk);
    expect(chunks).toEqual([1, 2]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [1, 2] }, end_time: expect.any(String) }]);
  });
});
