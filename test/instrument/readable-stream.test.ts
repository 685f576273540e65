import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { told } from '../support/told.ts';
import { record } from './recorder.ts';

const letters = (...chunks: string[]) =>
  new ReadableStream<string>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

describe('the branches of a tee', () => {
  test('are one consumption: each chunk is told once, by the branch that is ahead', async () => {
    const recorder = record();
    const [left, right] = traceable(() => letters('a', 'b', 'c'))()
      .tee()
      .map((branch) => branch.getReader());
    const read = async (reader: typeof left) => (await reader?.read())?.value;
    expect([await read(left), await read(right), await read(right), await read(left)]).toEqual(['a', 'a', 'b', 'b']);
    expect([await read(right), await read(left), await read(left)]).toEqual(['c', 'c', undefined]);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b', 'c'] }, end_time: expect.any(String) }]);
  });

  test('go on when one of them is cancelled, however often', async () => {
    const recorder = record();
    const [left, right] = traceable(() => letters('a', 'b'))().tee();
    const reader = left?.getReader();
    void reader?.cancel();
    void reader?.cancel();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    for await (const _ of right as unknown as AsyncIterable<string>);
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a', 'b'] } });
    expect(recorder.runs[0]?.extra).not.toHaveProperty('metadata');
  });
});

describe('a reader', () => {
  test('that is released hands the stream on to the next', async () => {
    const recorder = record();
    const stream = traceable(() => letters('a', 'b'))();
    const first = stream.getReader();
    await first.read();
    first.releaseLock();
    await expect(first.read()).rejects.toThrow(TypeError);
    await expect(first.cancel()).rejects.toThrow(TypeError);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    const second = stream.getReader();
    for (let step = await second.read(); !step.done; step = await second.read());
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a', 'b'] } });
    expect(recorder.runs[0]).not.toHaveProperty('error');
  });
});

describe('a pipe', () => {
  test('ends the run with its error, and keeps what was read before', async () => {
    const recorder = record();
    const error = new TypeError('full');
    const stream = traceable(() => letters('a', 'b'))();
    const reader = stream.getReader();
    await reader.read();
    reader.releaseLock();
    const sink = new WritableStream({
      write() {
        throw error;
      },
    });
    expect(await stream.pipeTo(sink).catch((caught) => caught)).toBe(error);
    expect(recorder.runs[0]).toMatchObject({
      outputs: { outputs: ['a'] },
      error: expect.stringMatching(/^TypeError: full\n/),
    });
  });

  test('that was refused has consumed nothing', async () => {
    const recorder = record();
    const stream = traceable(() => letters('a'))();
    const sink = new WritableStream();
    sink.getWriter();
    await expect(stream.pipeTo(sink)).rejects.toThrow(TypeError);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    for await (const _ of stream as unknown as AsyncIterable<string>);
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: ['a'] } });
  });
});

describe('a stream with ways of its own', () => {
  /** It is its own iterator and reads by a reader that it keeps, as those of LangChain do. */
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

  test('has each chunk recorded once', async () => {
    const recorder = record();
    const make = () =>
      new IterableStream({
        start(controller) {
          controller.enqueue('a');
          controller.enqueue('b');
          controller.close();
        },
      });
    const stream = traceable(make)();
    const chunks: string[] = [];
    for await (const chunk of stream as unknown as AsyncIterable<string>) chunks.push(chunk);
    expect(chunks).toEqual(['a', 'b']);
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a', 'b'] }, end_time: expect.any(String) }]);
  });
});

describe('a stream of a library that does not keep to the standard', () => {
  test.each([undefined, 1, {}, { read: () => {}, closed: true }])('returns its own results: %o', (result) => {
    record();
    told();
    const give = () => result;
    const methods = { getReader: give, tee: give, pipeTo: give, pipeThrough: give, values: give, cancel: give };
    const stream = traceable(() => ({ ...methods, [Symbol.asyncIterator]: give }))();
    const results = Object.keys(methods).map((name) => stream[name as 'tee']());
    expect(results).toEqual(Array(6).fill(result));
  });
});
