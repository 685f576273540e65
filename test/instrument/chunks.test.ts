import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { record } from './recorder.ts';

const upTo = function* (last: number) {
  for (let n = 1; n <= last; n++) yield n;
};

describe('the chunks of a generator', () => {
  test('are recorded as they were when they came', () => {
    const recorder = record();
    const chunk = { text: 'a' };
    const stream = traceable(function* () {
      yield chunk;
      chunk.text = 'b';
      yield chunk;
    });
    for (const each of stream()) each.text += '!';
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: [{ text: 'a' }, { text: 'b' }] });
  });

  test('are all recorded, falsy ones and those that JSON has not too', () => {
    const recorder = record();
    const chunks = [0, '', false, null, undefined, Number.NaN, 1n, () => 1];
    expect([
      ...traceable(() =>
        (function* () {
          yield* chunks;
        })(),
      )(),
    ]).toEqual(chunks);
    expect(recorder.runs[0]?.outputs).toEqual({
      outputs: [0, '', false, null, null, 'NaN', '1n', '[Function anonymous]'],
    });
  });

  test.each([
    [9_999, 9_999, undefined],
    [10_000, 10_000, undefined],
    [10_001, 10_000, 1],
    [10_500, 10_000, 500],
  ])('of %i are kept up to 10 000, the rest is counted', (yielded, kept, dropped) => {
    const recorder = record();
    const stream = traceable(upTo);
    let read = 0;
    for (const _ of stream(yielded)) read++;
    expect(read).toBe(yielded);
    const outputs = recorder.runs[0]?.outputs?.outputs as number[];
    expect([outputs.length, outputs.at(-1)]).toEqual([kept, kept]);
    expect(recorder.runs[0]?.extra?.metadata).toEqual(dropped && { dropped_chunks: dropped });
  });

  test('are kept up to the size of one payload, whatever their number', () => {
    const recorder = record();
    const mebibyte = 'x'.repeat(1024 * 1024);
    const stream = traceable(function* () {
      for (let n = 0; n < 12; n++) yield mebibyte;
    });
    let read = 0;
    for (const _ of stream()) read++;
    expect(read).toBe(12);
    expect(recorder.runs[0]?.outputs?.outputs).toHaveLength(10);
    expect(recorder.runs[0]?.extra?.metadata).toEqual({ dropped_chunks: 2 });
  });
});

describe('aggregate', () => {
  test('folds the chunks into the one value to record', () => {
    const recorder = record();
    const stream = traceable(upTo, { aggregate: (chunks) => ({ last: chunks.at(-1), count: chunks.length }) });
    expect([...stream(3)]).toEqual([1, 2, 3]);
    expect(recorder.runs[0]?.outputs).toEqual({ last: 3, count: 3 });
  });

  test('that throws or answers with a promise leaves a marker, and no chunk', () => {
    const recorder = record();
    const secret = function* secret() {
      yield 'secret';
    };
    const throws = () => {
      throw new Error('broken');
    };
    const promises = () => Promise.reject(new Error('late'));
    for (const aggregate of [throws, promises]) {
      expect([...traceable(secret, { name: 'ask', aggregate })()]).toEqual(['secret']);
    }
    expect(recorder.runs.map((run) => run.outputs)).toEqual([
      { error: '`aggregate` of "ask" threw Error' },
      { error: '`aggregate` of "ask" returned a promise instead of a value' },
    ]);
  });

  test('receives copies of bytes whose memory is used again', () => {
    const recorder = record();
    const memory = new Uint8Array(1);
    const bytes = function* () {
      for (const byte of [1, 2]) yield memory.fill(byte);
    };
    for (const _ of traceable(bytes, {
      aggregate: (chunks) => ({ bytes: chunks.map((chunk) => (chunk as Uint8Array)[0]) }),
    })());
    expect(recorder.runs[0]?.outputs).toEqual({ bytes: [1, 2] });
  });

  test('folds what came before the generator failed', () => {
    const recorder = record();
    const fails = traceable(
      function* () {
        yield 'Hel';
        yield 'lo';
        throw new Error('stuck');
      },
      { aggregate: (chunks) => ({ text: chunks.join('') }) },
    );
    expect(() => [...fails()]).toThrow('stuck');
    expect(recorder.runs[0]).toMatchObject({
      outputs: { text: 'Hello' },
      error: expect.stringMatching(/^Error: stuck\n/),
    });
  });
});
