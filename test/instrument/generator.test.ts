import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { currentRun } from '../../src/run/start-run.ts';
import { gate } from '../support/gate.ts';
import { told } from '../support/told.ts';
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

  test('never started makes no run', () => {
    const recorder = record();
    traceable(function* () {
      yield 1;
    })();
    expect(recorder.runs).toEqual([]);
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

  test('may run without end', () => {
    const recorder = record();
    const forever = traceable(function* () {
      for (let n = 0; ; n++) yield n;
    });
    for (const n of forever()) if (n === 3) break;
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: [0, 1, 2, 3] }, end_time: expect.any(String) }]);
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

  test('starts its run at the first next(), after those that have started in between', () => {
    const recorder = record();
    const chunks = traceable(
      function* () {
        yield 1;
      },
      { name: 'late' },
    )();
    traceable(() => {}, { name: 'early' })();
    chunks.next();
    expect(recorder.runs.map((run) => run.name)).toEqual(['early', 'late']);
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

  test('gets the values that are sent to it', () => {
    record();
    const got: unknown[] = [];
    const talk = traceable(function* (): Generator<string, string, number> {
      got.push(yield 'first');
      got.push(yield 'second');
      return 'end';
    })();
    expect([talk.next(), talk.next(1), talk.next(2), talk.next(3)]).toEqual([
      { done: false, value: 'first' },
      { done: false, value: 'second' },
      { done: true, value: 'end' },
      { done: true, value: undefined },
    ]);
    expect(got).toEqual([1, 2]);
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

  test('answers return() with its value', () => {
    record();
    const count = traceable(function* (): Generator<number, string> {
      yield 1;
      return 'own';
    })();
    count.next();
    expect(count.return('given')).toEqual({ done: true, value: 'given' });
  });

  test('that is returned or thrown into before its first step runs not at all', () => {
    const recorder = record();
    const error = new Error('early');
    const count = traceable(function* () {
      yield 1;
    });
    const returned = count();
    expect(returned.return(5 as never)).toEqual({ done: true, value: 5 });
    expect(returned.next()).toEqual({ done: true, value: undefined });
    const thrown = count();
    expect(() => thrown.throw(error)).toThrow(error);
    expect(thrown.next()).toEqual({ done: true, value: undefined });
    expect(recorder.runs).toEqual([]);
  });

  test('records an error inside and throws the same object', () => {
    const recorder = record();
    const error = new TypeError('stuck');
    const count = traceable(function* () {
      yield 1;
      throw error;
    })();
    count.next();
    expect(() => count.next()).toThrow(error);
    expect(recorder.runs[0]?.error).toMatch(/^TypeError: stuck\n/);
    expect(recorder.runs[0]).toHaveProperty('end_time');
    expect(count.next()).toEqual({ done: true, value: undefined });
  });

  test('that catches what is thrown into it goes on; one that does not fails', () => {
    const recorder = record();
    const error = new Error('from outside');
    const robust = traceable(function* () {
      try {
        yield 1;
      } catch (caught) {
        yield caught;
      }
    })();
    robust.next();
    expect(robust.throw(error)).toEqual({ done: false, value: error });
    robust.next();
    const frail = traceable(function* () {
      yield 1;
    })();
    frail.next();
    expect(() => frail.throw(error)).toThrow(error);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([undefined, 'Error: from outside']);
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

  test('hands on the results of any iterator that it delegates to, unread', () => {
    const recorder = record();
    told();
    const result = {
      done: false,
      get value(): number {
        throw new Error('not to be read');
      },
    };
    const source = { [Symbol.iterator]: () => ({ next: () => result }) };
    const all = traceable(function* () {
      yield* source as Iterable<number>;
    });
    const chunks = all();
    expect(chunks.next()).toBe(result);
    expect(recorder.runs).toHaveLength(1);
  });

  test('can be spread, destructured and taken apart by next alone', () => {
    const recorder = record();
    const count = traceable(function* () {
      yield* [1, 2, 3];
    });
    const [first] = count();
    const next = count().next;
    expect([first, Math.max(...count()), Array.from(count())]).toEqual([1, 3, [1, 2, 3]]);
    expect(() => next.call(undefined as never)).toThrow(TypeError);
    expect(recorder.runs.map((run) => run.outputs?.outputs)).toEqual([[1], [1, 2, 3], [1, 2, 3], undefined]);
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

  test('is the object that the function made', () => {
    record();
    const stream = traceable(async function* () {});
    const chunks = stream();
    expect(chunks).toBeInstanceOf(stream);
    expect(chunks[Symbol.asyncIterator]()).toBe(chunks);
    expect(Object.prototype.toString.call(chunks)).toBe('[object AsyncGenerator]');
  });

  test('does each step in the context of its run, before and after an await', async () => {
    const recorder = record();
    const steps = traceable(
      async function* () {
        yield inner();
        await undefined;
        yield inner();
      },
      { name: 'steps' },
    );
    for await (const parent of steps()) {
      expect(parent).toBe(recorder.runs[0]?.id);
      expect(currentRun()).toBeUndefined();
    }
    expect(recorder.runs).toHaveLength(3);
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

  test('answers steps that are asked for at once in their order', async () => {
    const recorder = record();
    const wait = gate();
    const chunks = traceable(async function* () {
      await wait;
      yield 'a';
      yield 'b';
    })();
    const order: unknown[] = [];
    const steps = [1, 2, 3, 4].map((n) => chunks.next().then(({ value }) => order.push([n, value])));
    wait.open();
    await Promise.all(steps);
    expect(order).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, undefined],
      [4, undefined],
    ]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b'] } }]);
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

  test('records an error inside and rejects with the same object', async () => {
    const recorder = record();
    const error = new TypeError('stuck');
    const chunks = traceable(async function* () {
      yield 1;
      throw error;
    })();
    await chunks.next();
    expect(await chunks.next().catch((rejected) => rejected)).toBe(error);
    expect(recorder.runs[0]?.error).toMatch(/^TypeError: stuck\n/);
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
  });

  test('is returned, thrown into and sent values as without', async () => {
    const recorder = record();
    const error = new Error('from outside');
    const talk = traceable(async function* (): AsyncGenerator<unknown, string, unknown> {
      try {
        yield yield 'first';
      } catch (caught) {
        yield caught;
      }
      return 'own';
    });
    const [a, b] = [talk(), talk()];
    await a.next('unseen');
    expect(await a.next('sent')).toEqual({ done: false, value: 'sent' });
    expect(await a.throw(error)).toEqual({ done: false, value: error });
    expect(await a.return('given')).toEqual({ done: true, value: 'given' });
    expect(await b.return('early')).toEqual({ done: true, value: 'early' });
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).not.toHaveProperty('error');
  });

  test('delegates by yield* to asynchronous and to plain ones', async () => {
    const recorder = record();
    const words = traceable(
      function* () {
        yield 'a';
      },
      { name: 'words' },
    );
    const all = traceable(
      async function* () {
        yield* words();
        yield* (async function* () {
          yield 'b';
        })();
      },
      { name: 'all' },
    );
    const got: string[] = [];
    for await (const word of all()) got.push(word);
    expect(got).toEqual(['a', 'b']);
    expect(treeOf(recorder.runs)).toEqual({ all: { words: {} } });
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

  test('works for asynchronous ones', async () => {
    const recorder = record();
    const hand = traceable(() =>
      (async function* () {
        yield inner();
      })(),
    );
    for await (const parent of hand()) expect(parent).toBe(recorder.runs[0]?.id);
    expect(recorder.runs[0]).toHaveProperty('end_time');
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

  test('may hand out the same generator again and again', () => {
    const recorder = record();
    const generator = numbers();
    const shared = traceable(() => generator);
    for (let call = 0; call < 8_000; call++) shared();
    expect([...generator]).toEqual([1, 2]);
    expect(recorder.runs).toHaveLength(8_000);
    expect(recorder.runs.every((run) => 'end_time' in run)).toBe(true);
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: [1, 2] });
  });

  test('that is traced inside and outside ends both runs', () => {
    const recorder = record();
    const inside = traceable(() => numbers(), { name: 'inside' });
    expect([...traceable(() => inside(), { name: 'outside' })()]).toEqual([1, 2]);
    expect(recorder.runs.map((run) => run.outputs?.outputs)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });
});
