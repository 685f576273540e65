// How streams and iterables are followed that several consumers, calls or runs share, and that differ from the standard.
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { currentRun } from '#src/run/start-run.ts';
import { logLines } from '../support/log-lines.ts';
import { readAll } from '../support/read-all.ts';
import { record, treeOf } from './recorder.ts';

const inner = traceable(() => {}, { name: 'inner' });

const makeWeb = (...chunks: string[]) =>
  new ReadableStream<string>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

const all = (iterable: unknown) => readAll(iterable as AsyncIterable<unknown>);

describe('an async iterable', () => {
  test('runs its steps in the context of its run', async () => {
    const recorder = record();
    const pages = traceable(
      () => ({
        async *[Symbol.asyncIterator]() {
          inner();
          yield currentRun()?.name;
          await undefined;
          inner();
        },
      }),
      { name: 'pages' },
    );
    expect(await all(pages())).toEqual(['pages']);
    expect(treeOf(recorder.runs)).toEqual({ pages: { inner: {} } });
    expect(recorder.runs).toHaveLength(3);
  });

  test('fails its run with the error of `next` or of the iteration itself', async () => {
    const recorder = record();
    const error = new TypeError('torn');
    const throws = () => {
      throw error;
    };
    const sources = [{ next: throws }, { next: () => Promise.reject(error) }].map((iterator) => () => iterator);
    for (const iterate of [...sources, throws]) {
      expect(await all(traceable(() => ({ [Symbol.asyncIterator]: iterate }))()).catch((caught) => caught)).toBe(error);
    }
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(Array(3).fill('TypeError: torn'));
  });

  test('that is frozen, or whose iterator is frozen, does not change, and its run ends', async () => {
    const recorder = record();
    const iterate = () => Object.freeze({ next: async () => ({ done: true as const, value: undefined }) });
    const frozen = Object.freeze({ [Symbol.asyncIterator]: iterate });
    expect(traceable(() => frozen)()[Symbol.asyncIterator]).toBe(iterate);
    expect(await all(traceable(() => ({ [Symbol.asyncIterator]: iterate }))())).toEqual([]);
    expect(recorder.runs.every((run) => 'end_time' in run && run.error === undefined)).toBe(true);
  });

  test('that several calls return is followed once for each call', async () => {
    const recorder = record();
    const pages = {
      async *[Symbol.asyncIterator]() {
        yield inner();
      },
    };
    const shared = traceable(() => pages, { name: 'pages', outputs: (chunks) => ({ count: chunks.length }) });
    await all(shared());
    await all(shared());
    await all(pages);
    const recorded = recorder.runs.filter((run) => run.name === 'pages');
    expect(recorded.map((run) => run.outputs)).toEqual([{ count: 1 }, { count: 1 }]);
    expect(recorder.runs.filter((run) => run.name === 'inner')).toHaveLength(3);
  });

  test('whose iterator is shared is followed for each call', async () => {
    const recorder = record();
    const iterator = (async function* () {
      yield 'a';
    })();
    const source = { [Symbol.asyncIterator]: () => iterator };
    const outside = traceable(() => source, { name: 'outside' });
    traceable(() => source, { name: 'inside' })();
    expect(await all(outside())).toEqual(['a']);
    expect(recorder.runs.map((run) => run.outputs)).toEqual([{ outputs: ['a'] }, { outputs: ['a'] }]);
  });
});

const generate = async function* () {
  yield 'a';
  yield 'b';
};

test.each<[string, () => unknown]>([
  ['a web stream', () => makeWeb('a', 'b')],
  ['a Node stream', () => Readable.from(['a', 'b'])],
  ['a generator', generate],
])('%s is followed if a promise resolves to it', async (_, make) => {
  const recorder = record();
  const result = await traceable(async () => make())();
  expect(recorder.runs[0]).not.toHaveProperty('end_time');
  expect(await all(result)).toEqual(['a', 'b']);
  expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b'] }, end_time: expect.any(String) }]);
});

test.each<[string, () => unknown]>([
  ['an iterable', () => ({ [Symbol.asyncIterator]: generate })],
  ['an iterator', () => Object.assign(generate(), {})],
  ['a web stream', () => makeWeb('a', 'b')],
  ['a Node stream', () => Readable.from(['a', 'b'])],
])('%s that thousands of calls return can still be read', async (_, make) => {
  const recorder = record();
  const source = make();
  const shared = traceable(() => source);
  // A wrapper for each call would exceed the maximum size of the stack.
  for (let call = 0; call < 4_000; call++) shared.with({ tags: ['a'] })();
  expect(await all(source)).toEqual(['a', 'b']);
  expect(recorder.runs.every((run) => 'end_time' in run)).toBe(true);
});

test.each<[string, () => object]>([
  ['a list', () => [1]],
  ['a Map', () => new Map([[1, 2]])],
  ['a Set', () => new Set([3])],
  ['bytes', () => new Uint8Array(2)],
  ['search parameters', () => new URLSearchParams('a=b')],
  ['an emitter', () => new EventEmitter()],
  ['a writable stream', () => new Writable({ write: (_, __, done) => done() })],
])('%s is a value and does not change', (_, make) => {
  const recorder = record();
  const value = make();
  const keys = Reflect.ownKeys(value);
  expect(traceable(() => value, { outputs: () => ({}) })()).toBe(value);
  expect(Reflect.ownKeys(value)).toEqual(keys);
  expect(recorder.runs[0]).toHaveProperty('end_time');
});

describe('the branches of a tee', () => {
  test('are recorded together: the faster branch reports each chunk', async () => {
    const recorder = record();
    const [left, right] = traceable(() => makeWeb('a', 'b', 'c'))()
      .tee()
      .map((branch) => branch.getReader());
    const read = async (reader: typeof left) => (await reader?.read())?.value;
    expect([await read(left), await read(right), await read(right), await read(left)]).toEqual(['a', 'a', 'b', 'b']);
    expect([await read(right), await read(left), await read(left)]).toEqual(['c', 'c', undefined]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b', 'c'] }, end_time: expect.any(String) }]);
  });

  test('continue the run if only one branch is cancelled, even twice', async () => {
    const recorder = record();
    const [left, right] = traceable(() => makeWeb('a', 'b'))().tee();
    const reader = left?.getReader();
    void reader?.cancel();
    void reader?.cancel();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    await all(right);
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a', 'b'] } });
    expect(recorder.runs[0]?.extra).not.toHaveProperty('metadata');
  });
});

test('a web stream can be read by another reader after the first reader is released', async () => {
  const recorder = record();
  const stream = traceable(() => makeWeb('a', 'b'))();
  const first = stream.getReader();
  await first.read();
  first.releaseLock();
  await expect(first.read()).rejects.toThrow(TypeError);
  await expect(first.cancel()).rejects.toThrow(TypeError);
  expect(recorder.runs[0]).not.toHaveProperty('end_time');
  expect(await all(stream)).toEqual(['b']);
  expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a', 'b'] } });
  expect(recorder.runs[0]).not.toHaveProperty('error');
});

describe('a pipe', () => {
  test('fails the run with its error and keeps the chunks that were read before', async () => {
    const recorder = record();
    const error = new TypeError('full');
    const stream = traceable(() => makeWeb('a', 'b'))();
    const reader = stream.getReader();
    await reader.read();
    reader.releaseLock();
    const write = () => {
      throw error;
    };
    expect(await stream.pipeTo(new WritableStream({ write })).catch((caught) => caught)).toBe(error);
    const failed = { outputs: { outputs: ['a'] }, error: expect.stringMatching(/^TypeError: full\n/) };
    expect(recorder.runs[0]).toMatchObject(failed);
  });

  test('to a locked stream does not end the run', async () => {
    const recorder = record();
    const stream = traceable(() => makeWeb('a'))();
    const sink = new WritableStream();
    sink.getWriter();
    await expect(stream.pipeTo(sink)).rejects.toThrow(TypeError);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    await all(stream);
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a'] } });
  });
});

test('each chunk of a stream that is its own iterator, as in LangChain, is recorded once', async () => {
  class IterableStream extends ReadableStream<string> {
    #reader: ReadableStreamDefaultReader<string> | undefined;

    async next(): Promise<IteratorResult<string>> {
      this.#reader ??= this.getReader();
      await undefined;
      const { done, value } = await this.#reader.read();
      return done ? { done, value: undefined } : { done, value };
    }

    override [Symbol.asyncIterator](): never {
      return this as never;
    }
  }
  const recorder = record();
  const start = (controller: ReadableStreamDefaultController<string>): void => {
    for (const chunk of ['a', 'b']) controller.enqueue(chunk);
    controller.close();
  };
  expect(await all(traceable(() => new IterableStream({ start }))())).toEqual(['a', 'b']);
  expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b'] }, end_time: expect.any(String) }]);
});

test.each([undefined, 1, {}, { read: () => {}, closed: true }])(
  'the methods of a stream that does not follow the standard return their own results: %o',
  (result) => {
    record();
    logLines();
    const give = () => result;
    const methods = { getReader: give, tee: give, pipeTo: give, pipeThrough: give, values: give, cancel: give };
    const stream = traceable(() => ({ ...methods, [Symbol.asyncIterator]: give }))();
    expect(Object.keys(methods).map((name) => stream[name as 'tee']())).toEqual(Array(6).fill(result));
  },
);
