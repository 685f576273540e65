import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { currentRun } from '../../src/run/start-run.ts';
import { record, treeOf } from './recorder.ts';

const inner = traceable(() => {}, { name: 'inner' });
const CANCELLED = { metadata: { end_reason: 'cancelled' } };

const web = (...chunks: unknown[]) =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

async function all(iterable: AsyncIterable<unknown>): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const chunk of iterable) chunks.push(chunk);
  return chunks;
}

describe('an async iterable', () => {
  test('takes its steps in the context of its run', async () => {
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
      const source = traceable(() => ({ [Symbol.asyncIterator]: iterate }))();
      expect(await all(source as unknown as AsyncIterable<unknown>).catch((caught) => caught)).toBe(error);
    }
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(Array(3).fill('TypeError: torn'));
  });

  test('that is frozen, or whose iterator is, is left as it is, and its run ends', async () => {
    const recorder = record();
    const iterate = () => Object.freeze({ next: async () => ({ done: true as const, value: undefined }) });
    const frozen = Object.freeze({ [Symbol.asyncIterator]: iterate });
    expect(traceable(() => frozen)()[Symbol.asyncIterator]).toBe(iterate);
    expect(await all(traceable(() => ({ [Symbol.asyncIterator]: iterate }))())).toEqual([]);
    expect(recorder.runs.every((run) => 'end_time' in run && run.error === undefined)).toBe(true);
  });

  /** As many calls, each by a function of its own to tracing, as no stack would hold wrappers. */
  const CALLS = 4_000;

  test.each<[string, () => AsyncIterable<unknown>]>([
    ['an iterable', () => ({ [Symbol.asyncIterator]: async function* () {} })],
    ['an iterator', () => Object.assign((async function* () {})(), {})],
    ['a web stream', () => web() as unknown as AsyncIterable<unknown>],
    ['a Node stream', () => Readable.from([])],
  ])('that is handed out by any number of calls can be read all the same: %s', async (_, make) => {
    const recorder = record();
    const source = make();
    const shared = traceable(() => source);
    for (let call = 0; call < CALLS; call++) shared.with({ tags: ['a'] })();
    expect(await all(source)).toEqual([]);
    expect(recorder.runs.every((run) => 'end_time' in run)).toBe(true);
  });

  test('that can be read again is followed each time', async () => {
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

  test('whose iterator is shared is followed by every call that iterates it', async () => {
    const recorder = record();
    const iterator = async function* () {
      yield 'a';
    };
    const one = iterator();
    const source = { [Symbol.asyncIterator]: () => one };
    const outside = traceable(() => source, { name: 'outside' });
    traceable(() => source, { name: 'inside' })();
    expect(await all(outside())).toEqual(['a']);
    expect(recorder.runs.map((run) => run.outputs)).toEqual([{ outputs: ['a'] }, { outputs: ['a'] }]);
  });
});

describe('a sequence that a promise resolves to', () => {
  test.each<[string, () => AsyncIterable<unknown>]>([
    ['a web stream', () => web('a', 'b') as unknown as AsyncIterable<unknown>],
    ['a Node stream', () => Readable.from(['a', 'b'])],
    [
      'a generator',
      async function* () {
        yield 'a';
        yield 'b';
      },
    ],
  ])('is followed to its end: %s', async (_, make) => {
    const recorder = record();
    const result = await traceable(async () => make())();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(await all(result)).toEqual(['a', 'b']);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b'] }, end_time: expect.any(String) }]);
  });
});

describe('an end that the caller chose', () => {
  test('keeps the chunks so far and says that it was cancelled, without an error', async () => {
    const recorder = record();
    const generator = traceable(function* () {
      yield 0;
      yield 1;
    });
    for (const _ of generator()) break;
    for await (const _ of traceable(() => web(0, 1))() as unknown as AsyncIterable<unknown>) break;
    for await (const _ of traceable(() => Readable.from([0, 1]))()) break;
    await new Promise(setImmediate);
    expect(recorder.runs).toHaveLength(3);
    for (const run of recorder.runs) {
      expect(run).toMatchObject({ outputs: { outputs: [0] }, extra: CANCELLED });
      expect(run).not.toHaveProperty('error');
    }
  });

  test('is said of an error that says so, which is recorded as it is', async () => {
    const recorder = record();
    const aborted = AbortSignal.abort().reason as unknown;
    const coded = Object.assign(new Error('off'), { code: 'ABORT_ERR' });
    for (const error of [aborted, coded]) {
      await traceable(() => Promise.reject(error))().catch(() => {});
    }
    await traceable(() => Promise.reject(new Error('torn')))().catch(() => {});
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([
      'AbortError: This operation was aborted',
      'Error: off',
      'Error: torn',
    ]);
    expect(recorder.runs.map((run) => run.extra?.metadata)).toEqual([
      CANCELLED.metadata,
      CANCELLED.metadata,
      undefined,
    ]);
  });
});

describe('an emitter that is not a readable stream', () => {
  test.each([
    ['an emitter', () => new EventEmitter()],
    ['a writable stream', () => new Writable({ write: (_, __, done) => done() })],
  ])('is a value, and is not changed: %s', (_, make) => {
    const recorder = record();
    const emitter = traceable(make, { outputs: () => ({}) })();
    expect(Object.hasOwn(emitter, 'emit')).toBe(false);
    expect(recorder.runs[0]).toHaveProperty('end_time');
  });
});
