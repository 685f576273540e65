import { describe, expect, it } from 'vitest';
import { modelAnswer, PartsFold } from '../../src/integrations/ai-answer.ts';
import { watchedStream } from '../../src/integrations/ai-stream.ts';
import { AnswerReading } from '../../src/integrations/answer-reading.ts';
import { makeRun } from '../run/memory-sink.ts';
import { collected } from '../support/garbage.ts';

interface Source {
  pull?(controller: ReadableStreamDefaultController<number>): void | Promise<void>;
  cancel?(reason: unknown): void | Promise<void>;
}

/** A watched stream of numbers, the list of what its reading was told, and how often its source was asked. */
function watch(source: Source = {}) {
  const heard: string[] = [];
  let asked = 0;
  const pull = (controller: ReadableStreamDefaultController<number>): void => {
    asked++;
    controller.enqueue(asked);
  };
  const stream = watchedStream(new ReadableStream({ pull, ...source }, { highWaterMark: 0 }), {
    isStepping: false,
    step: (method, self, args) => Reflect.apply(method, self, args),
    chunk: (value) => void heard.push(`took ${value}`),
    end: () => void heard.push('end'),
    fail: (error) => void heard.push(`fail ${error}`),
    cancel: () => void heard.push('cancel'),
    watch: () => {},
    detach: () => {},
  });
  return { stream, heard, asked: () => asked };
}

describe('a watched stream', () => {
  it('asks for a chunk when one is read, and not before', async () => {
    const { stream, heard, asked } = watch();
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked()).toBe(0);
    const reader = stream.getReader();

    expect(await reader.read()).toEqual({ done: false, value: 1 });
    expect(await reader.read()).toEqual({ done: false, value: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked()).toBe(2);
    expect(heard).toEqual(['took 1', 'took 2']);
  });

  it('ends as its source does', async () => {
    const { stream, heard } = watch({ pull: (controller) => controller.close() });

    expect(await stream.getReader().read()).toEqual({ done: true, value: undefined });
    expect(heard).toEqual(['end']);
  });

  it('fails with the error of its source, the same object', async () => {
    const error = new RangeError('hoarse');
    const { stream, heard } = watch({ pull: (controller) => controller.error(error) });

    await expect(stream.getReader().read()).rejects.toBe(error);
    expect(heard).toEqual(['fail RangeError: hoarse']);
  });

  it.each([
    ['before it is read', 0],
    ['half way', 1],
  ])('hands a cancel on %s, and its answer back', async (_, reads) => {
    const reasons: unknown[] = [];
    const refused = new TypeError('no');
    const cancel = (reason: unknown): Promise<void> => {
      reasons.push(reason);
      return Promise.reject(refused);
    };
    const { stream, heard } = watch({ cancel });
    const reader = stream.getReader();
    for (let read = 0; read < reads; read++) await reader.read();

    await expect(reader.cancel('enough')).rejects.toBe(refused);
    expect(reasons).toEqual(['enough']);
    expect(heard.at(-1)).toBe('cancel');
  });

  it('tells of one end alone when it is cancelled while a chunk is on its way', async () => {
    const { stream, heard } = watch({ pull: () => new Promise<void>(() => {}) });
    const reader = stream.getReader();
    const read = reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    await reader.cancel();

    expect(await read).toEqual({ done: true, value: undefined });
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual(['cancel']);
  });

  it('has its run interrupted when nobody can read it any more', async () => {
    const { run, record } = makeRun();
    const dropped = (() => {
      const reading = new AnswerReading(run, new PartsFold(modelAnswer));
      return new WeakRef(watchedStream(new ReadableStream(), reading));
    })();
    await collected(dropped);

    expect(record()).toMatchObject({
      error: 'Interrupted: the result was collected before its end',
      extra: { metadata: { end_reason: 'interrupted' } },
    });
  });
});
