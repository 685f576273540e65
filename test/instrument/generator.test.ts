import { AsyncLocalStorage } from 'node:async_hooks';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { currentRun } from '#src/run/start-run.ts';
import { revokedProxy } from '../base/hostile.ts';
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

const ENDED = { outputs: { outputs: [1, 2] }, end_time: expect.any(String) };

describe('a generator', () => {
  test('is lazy: neither its body nor its run starts before the first next()', async () => {
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
    expect(recorder.runs).toMatchObject([ENDED, ENDED]);
  });

  test('is the object that the function returned', () => {
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

  test('has the inputs and the parent of the call, not of the first next()', () => {
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

  test('runs each step in the context of its run, not of the reader', async () => {
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

  test("reads and enters the application's own async context as without tracing", async () => {
    record();
    const user = new AsyncLocalStorage<string>();
    const seen = async (generator: AsyncGenerator<unknown>): Promise<unknown[]> => {
      const values: unknown[] = [];
      for (const name of ['ann', 'bob', 'cid']) {
        values.push((await user.run(name, () => generator.next())).value);
        void generator.next();
        values.push(user.getStore());
      }
      return values;
    };
    async function* users(): AsyncGenerator<unknown> {
      for (let at = 0; ; at++) {
        yield user.getStore();
        user.enterWith(`entered ${at}`);
        yield;
      }
    }
    const run = (generator: AsyncGenerator<unknown>): Promise<unknown[]> => user.run('outer', () => seen(generator));
    const expected = await run(users());
    expect(expected).toContain('entered 0');
    expect(await run(traceable(users)())).toEqual(expected);
  });

  test('that is left by break ends its run after its finally block', async () => {
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
    const cancelled = { outputs: { outputs: [1] }, extra: { runspan_end_reason: 'cancelled' } };
    expect(recorder.runs).toMatchObject([cancelled, { name: 'inner' }]);
    expect(recorder.runs[0]).not.toHaveProperty('error');
  });

  test('that yields in its finally block continues until it is done', () => {
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
    expect(recorder.runs[0]).toMatchObject(ENDED);
  });

  test('has the run of a generator that it delegates to below its run', () => {
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

  test('of another realm is followed', async () => {
    const recorder = record();
    const foreign: typeof later = runInNewContext('(async function* numbers() { yield 1; yield 2; })');
    for await (const _ of traceable(foreign)());
    expect(recorder.runs).toMatchObject([ENDED]);
  });
});

describe('a plain function that returns a generator', () => {
  test('starts its run at the call and ends the run with the generator', () => {
    const recorder = record();
    const generator = numbers();
    const chunks = traceable(() => generator)();
    expect(chunks).toBe(generator);
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect([...chunks]).toEqual([1, 2]);
    expect(recorder.runs).toMatchObject([ENDED]);
  });

  test('ends its run if return() or throw() is called before the first step', () => {
    const recorder = record();
    const generate = traceable(() => numbers());
    generate().return(0);
    expect(() => generate().throw(new Error('early'))).toThrow('early');
    expect(recorder.runs.map((run) => 'end_time' in run)).toEqual([true, true]);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([undefined, 'Error: early']);
  });

  test('ends its run at the call if the generator is frozen', () => {
    const recorder = record();
    const generator = Object.freeze(numbers());
    expect(traceable(() => generator, { outputs: (chunks) => ({ first: chunks[0] }) })()).toBe(generator);
    expect([...generator]).toEqual([1, 2]);
    expect(recorder.runs[0]).toMatchObject({ outputs: {}, end_time: expect.any(String) });
  });
});

function* upTo(last: number): Generator<number> {
  for (let n = 1; n <= last; n++) yield n;
}

function* listed(chunks: readonly unknown[]): Generator<unknown> {
  yield* chunks;
}

const SECRET = '&api_key=0123456789abcdef';

describe('the chunks of a generator', () => {
  test('are recorded as they were when they were read, even if the consumer changes or reuses them', async () => {
    const recorder = record();
    const reused = { at: 0, choices: [{ text: '' }] };
    const stream = traceable(async function* () {
      for (let at = 0; at < 200; at++) {
        reused.at = at;
        yield reused;
      }
    });
    for await (const chunk of stream()) chunk.choices = [{ text: `after ${chunk.at}` }];
    const expected = Array.from({ length: 200 }, (_, at) => ({
      at,
      choices: [{ text: at > 0 ? `after ${at - 1}` : '' }],
    }));
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: expected });
  });

  test.each([1, 63, 64, 65, 130])('hide a secret in a URL as it was when it was read, in one of %i chunks', (count) => {
    const recorder = record();
    const stream = traceable(function* () {
      for (let at = 0; at < count; at++) yield { at, link: `see https://a.test/?q=1${at === count - 1 ? SECRET : ''}` };
    });
    for (const chunk of stream()) chunk.link = 'changed';
    const expected = Array.from({ length: count }, (_, at) => ({ at, link: 'see https://a.test/?q=1' }));
    expected[count - 1] = { at: count - 1, link: 'see https://a.test/?q=1&api_key=[Redacted]' };
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: expected });
  });

  test('keep their order and text if some are strings, falsy, copied, without JSON or have a lone surrogate', () => {
    const recorder = record();
    const chunks = [{ a: 1 }, 'b', { lone: 'x\ud800' }, { set: new Set([1]) }, 'c\udc00', 2, { path: 'C:\\udata' }];
    const others = [0, '', false, null, undefined, Number.NaN, 1n, () => 1];
    expect([...traceable(listed)([...chunks, ...others])]).toEqual([...chunks, ...others]);
    const recorded = [{ a: 1 }, 'b', { lone: 'x\ufffd' }, { set: [1] }, 'c\ufffd', 2, { path: 'C:\\udata' }];
    const texts = [0, '', false, null, null, 'NaN', '1n', '[Function anonymous]'];
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: [...recorded, ...texts] });
  });

  test.each([
    [9_999, 9_999, undefined],
    [10_000, 10_000, undefined],
    [10_001, 10_000, 1],
    [10_500, 10_000, 500],
  ])('are limited to 10 000, here %i, and further chunks are counted', (yielded, kept, dropped) => {
    const recorder = record();
    expect([...traceable(upTo)(yielded)]).toHaveLength(yielded);
    const outputs = recorder.runs[0]?.outputs?.outputs as number[];
    expect([outputs.length, outputs.at(-1)]).toEqual([kept, kept]);
    expect(recorder.runs[0]?.extra?.metadata).toEqual(dropped && { dropped_chunks: dropped });
  });

  test('are limited to the size of one payload', () => {
    const recorder = record();
    const chunks = Array(12).fill('x'.repeat(1024 * 1024));
    expect([...traceable(listed, { inputs: () => ({}) })(chunks)]).toHaveLength(12);
    expect(recorder.runs[0]?.outputs?.outputs).toHaveLength(10);
    expect(recorder.runs[0]?.extra?.metadata).toEqual({ dropped_chunks: 2 });
  });
});

const MIB = 1024 * 1024;

const LARGE_CHUNKS: [string, (text: string, bytes: Uint8Array) => unknown][] = [
  ['texts', (text) => text],
  ['objects', (text) => ({ text })],
  ['nested objects', (text) => ({ choices: [{ delta: { text: text.slice(MIB / 2), more: [text.slice(MIB / 2)] } }] })],
  ['objects with long keys', (text) => ({ [text]: 1 })],
  ['instances of a class', (text) => Object.assign(new (class Chunk {})(), { text })],
  ['objects with bytes', (_, bytes) => ({ bytes, list: [] })],
  ['objects with an ArrayBuffer', (_, { buffer }) => ({ buffer })],
  ['maps', (text) => new Map([['text', text]])],
  ['sets', (text) => new Set([text])],
  ['long arrays', (text) => Array(MIB / 16).fill(text.slice(0, 8))],
  ['cyclic objects', (text) => withItself({ text })],
  ['objects with an unreadable property', (text) => ({ text, bad: revokedProxy() })],
  [
    'objects with a getter that throws',
    (text) => Object.defineProperty({ text }, 'bad', { enumerable: true, get: fail }),
  ],
];

function withItself(object: object): object {
  return Object.assign(object, { self: object });
}

function fail(): never {
  throw new Error('no');
}

describe.each(['aggregate', 'outputs'] as const)('the chunks for `%s`', (option) => {
  test.each(LARGE_CHUNKS)('are limited to the size of one payload, here %s', (_, make) => {
    const recorder = record();
    const chunks = Array.from({ length: 12 }, () => make('x'.repeat(MIB), new Uint8Array(MIB)));
    const count = (values: unknown): object => ({ received: (values as unknown[]).length });
    expect([...traceable(listed, { inputs: () => ({}), [option]: count })(chunks)]).toHaveLength(12);
    expect(recorder.runs[0]?.outputs).toEqual({ received: 10 });
    expect(recorder.runs[0]?.extra?.metadata).toEqual({ dropped_chunks: 2 });
  });

  test('count an object once that several chunks share', () => {
    const recorder = record();
    const shared = { text: 'x'.repeat(MIB) };
    const chunks = Array.from({ length: 12 }, (_, index) => ({ index, shared }));
    const count = (values: unknown): object => ({ received: (values as unknown[]).length });
    expect([...traceable(listed, { inputs: () => ({}), [option]: count })(chunks)]).toEqual(chunks);
    expect(recorder.runs[0]?.outputs).toEqual({ received: 12 });
    expect(recorder.runs[0]?.extra?.metadata).toBeUndefined();
  });
});

describe('aggregate', () => {
  test('combines the chunks into the recorded value', () => {
    const recorder = record();
    const stream = traceable(upTo, { aggregate: (chunks) => ({ last: chunks.at(-1), count: chunks.length }) });
    expect([...stream(3)]).toEqual([1, 2, 3]);
    expect(recorder.runs[0]?.outputs).toEqual({ last: 3, count: 3 });
  });

  test('receives copies of bytes, because the application may reuse its buffer', () => {
    const recorder = record();
    const buffer = new Uint8Array(1);
    const bytes = function* () {
      for (const byte of [1, 2]) yield buffer.fill(byte);
    };
    const aggregate = (chunks: unknown[]) => ({ bytes: chunks.map((chunk) => (chunk as Uint8Array)[0]) });
    for (const _ of traceable(bytes, { aggregate })());
    expect(recorder.runs[0]?.outputs).toEqual({ bytes: [1, 2] });
  });

  test('receives the chunks before an error', () => {
    const recorder = record();
    const fails = function* () {
      yield* ['Hel', 'lo'];
      throw new Error('stuck');
    };
    expect(() => [...traceable(fails, { aggregate: (chunks) => ({ text: chunks.join('') }) })()]).toThrow('stuck');
    const failed = { outputs: { text: 'Hello' }, error: expect.stringMatching(/^Error: stuck\n/) };
    expect(recorder.runs[0]).toMatchObject(failed);
  });
});
