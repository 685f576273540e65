import { describe, expect, test } from 'vitest';
import { AnswerReading } from '../../src/integrations/answer-reading.ts';
import { makeRun } from '../run/memory-sink.ts';

/** A stream that is read once, and the reading of it, which joins text. */
function makeReading(chunks: readonly string[], next?: () => Promise<IteratorResult<string>>) {
  const { run, record } = makeRun();
  let text = '';
  const fold = {
    get characters() {
      return text.length;
    },
    add: (chunk: unknown) => {
      text += chunk;
    },
    answer: () => ({ outputs: { text } }),
  };
  let isConsumed = false;
  const stream = {
    async *open(): AsyncGenerator<string> {
      if (isConsumed) throw new TypeError('read already');
      isConsumed = true;
      yield* chunks;
      while (next !== undefined) yield (await next()).value;
    },
  };
  const reading = new AnswerReading(run, fold);
  expect(reading.follow(stream, 'open')).toBe(true);
  return { stream, reading, run, record };
}

describe('of several iterators', () => {
  test('the one that takes the first step is the reading, whichever was opened first', async () => {
    const { stream, record } = makeReading(['a', 'b']);
    const [first, second] = [stream.open(), stream.open()];
    expect(await second.next()).toEqual({ done: false, value: 'a' });
    await expect(first.next()).rejects.toThrow('read already');
    expect(record()).not.toHaveProperty('end_time');
    await second.next();
    await second.next();
    expect(record()).toMatchObject({ outputs: { text: 'ab' }, end_time: expect.any(String) });
    expect(record()).not.toHaveProperty('error');
  });

  test('one that is closed before its first step is none', async () => {
    const { stream, record } = makeReading(['a']);
    await stream.open().return(undefined);
    expect(record()).not.toHaveProperty('end_time');
    for await (const _ of stream.open());
    expect(record()).toMatchObject({ outputs: { text: 'a' } });
  });
});

test('a step that takes long is a sign of life', async () => {
  let answer = (_: IteratorResult<string>): void => {};
  const pending = new Promise<IteratorResult<string>>((resolve) => {
    answer = resolve;
  });
  const { stream, reading } = makeReading([], () => pending);
  const iterator = stream.open();
  const step = iterator.next();
  // As the watch does it when it comes by.
  reading.wasTouched = false;
  expect(reading.wasTouched).toBe(true);
  answer({ done: false, value: 'a' });
  await step;
  expect(reading.wasTouched).toBe(false);
});

test('what cannot be changed is not followed, and waited for by nobody', () => {
  const { run } = makeRun();
  const fold = { characters: 0, add: () => {}, answer: () => ({ outputs: {} }) };
  expect(new AnswerReading(run, fold).follow(Object.freeze({ open: () => ({}) }), 'open')).toBe(false);
  expect(new AnswerReading(run, fold).follow({}, 'open')).toBe(false);
  expect(run.isOpen).toBe(true);
});
