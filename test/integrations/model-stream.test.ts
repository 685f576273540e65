import { describe, expect, test } from 'vitest';
import type { AnswerReader } from '../../src/integrations/answer.ts';
import { followModelStream } from '../../src/integrations/model-stream.ts';
import { LIMITS, makeRun } from '../run/memory-sink.ts';
import { collected } from '../support/garbage.ts';
import { told } from '../support/told.ts';

/** Joins text. */
const reader: AnswerReader = {
  read: (value) => ({ outputs: { value } }),
  fold: () => {
    let text = '';
    let characters = 0;
    return {
      get characters() {
        return characters;
      },
      add: (chunk, isFull) => {
        if (chunk === 'unreadable') throw new Error('unreadable');
        characters += String(chunk).length;
        if (!isFull) text += chunk;
      },
      answer: () => ({ outputs: { text }, model: String(text.length) }),
    };
  },
};

function makeStream(chunks: readonly unknown[]) {
  return {
    controller: new AbortController(),
    async *iterator() {
      yield* chunks;
    },
    [Symbol.asyncIterator]() {
      return this.iterator();
    },
  };
}

async function followed(chunks: readonly unknown[], capture = {}) {
  const { run, record } = makeRun({}, capture);
  const stream = makeStream(chunks);
  expect(followModelStream(stream, run, reader)).toBe(true);
  const seen: unknown[] = [];
  for await (const chunk of stream) seen.push(chunk);
  expect(seen).toEqual(chunks);
  return record();
}

describe('a followed stream', () => {
  test.each([
    [4, 4, 1],
    [5, 5, undefined],
    [6, 5, undefined],
  ])('is kept up to the characters of a payload, here %i, and counted beyond', async (bytes, kept, dropped) => {
    const record = await followed(['a', 'b', 'c', 'd', 'e'], { payload: { ...LIMITS, bytes } });
    expect(record?.extra?.metadata).toEqual({ response_model: String(kept), dropped_chunks: dropped });
  });

  test('has one event, at the first chunk with text', async () => {
    const record = await followed(['', '', 'a', 'b']);
    expect(record?.events?.map(({ name }) => name)).toEqual(['new_token']);
  });

  test('is cancelled by leaving it, whatever its controller does', async () => {
    const { run, record } = makeRun();
    const stream = makeStream(['a', 'b']);
    followModelStream(stream, run, reader);
    for await (const _ of stream) break;
    expect(record()).toMatchObject({ outputs: { text: 'a' }, extra: { metadata: { end_reason: 'cancelled' } } });
  });

  test('goes on where an iteration was closed before its first step', async () => {
    const { run, record } = makeRun();
    const stream = makeStream(['a', 'b']);
    followModelStream(stream, run, reader);
    await stream.iterator().return(undefined);
    expect(record()).not.toHaveProperty('end_time');
    for await (const _ of stream);
    expect(record()).toMatchObject({ outputs: { text: 'ab' } });
    expect(record()?.extra?.metadata).not.toHaveProperty('end_reason');
  });

  test('goes on where a chunk cannot be read', async () => {
    const lines = told();
    const record = await followed(['a', 'unreadable', 'b']);
    expect(record?.outputs).toEqual({ text: 'ab' });
    expect(lines).toEqual(['warn: following a stream failed, the application is not affected: unreadable']);
  });

  test('lets go of the signal when it has ended', async () => {
    const { run } = makeRun();
    const stream = makeStream(['a']);
    const { signal } = stream.controller;
    let listeners = 0;
    signal.addEventListener = () => void listeners++;
    signal.removeEventListener = () => void listeners--;
    followModelStream(stream, run, reader);
    expect(listeners).toBe(1);
    for await (const _ of stream);
    expect(listeners).toBe(0);
  });
});

describe('an iterator that can only go on, as those of `tee()`,', () => {
  function makeBranch(next: () => Promise<unknown>) {
    return { iterator: () => ({ next }) as AsyncIterator<unknown>, controller: new AbortController() };
  }

  const nextOf = (events: unknown[]) => async () =>
    events.length > 0 ? { done: false, value: events.shift() } : { done: true };

  test('is followed, and gets no other methods', async () => {
    const { run, record } = makeRun();
    const stream = makeBranch(nextOf(['a', 'b']));
    expect(followModelStream(stream, run, reader)).toBe(true);
    const iterator = stream.iterator();
    expect(Object.keys(iterator)).toEqual(['next']);
    for (let step = 0; step < 3; step++) await iterator.next();
    expect(record()).toMatchObject({ outputs: { text: 'ab' }, events: [{ name: 'new_token' }] });
  });

  test('fails with an error that cannot be read', async () => {
    told();
    const { run, record } = makeRun();
    const error = Object.defineProperty({}, 'name', { get: () => expect.unreachable() });
    const stream = makeBranch(() => Promise.reject(error));
    followModelStream(stream, run, reader);
    const caught = await stream
      .iterator()
      .next()
      .catch((thrown: unknown) => thrown);
    expect(caught === error).toBe(true);
    expect(record()).toHaveProperty('error');
  });

  test('is not taken for dropped while it is in use', async () => {
    const { run, record } = makeRun();
    let dropped: WeakRef<object> = new WeakRef({});
    const iterator = (() => {
      const stream = makeBranch(nextOf(['a']));
      followModelStream(stream, run, reader);
      dropped = new WeakRef(stream);
      return stream.iterator();
    })();
    await collected(dropped);
    expect(run.isOpen).toBe(true);
    await iterator.next();
    await iterator.next();
    expect(record()?.outputs).toEqual({ text: 'a' });
    expect(record()?.extra?.metadata).not.toHaveProperty('end_reason');
  });

  test('may have its stream held by a listener of the application', async () => {
    const { run, record } = makeRun();
    const dropped = (() => {
      const stream = makeBranch(nextOf(['a']));
      stream.controller.signal.addEventListener('abort', () => stream.iterator());
      followModelStream(stream, run, reader);
      return new WeakRef(stream);
    })();
    await collected(dropped);
    expect(record()?.extra?.metadata).toMatchObject({ end_reason: 'interrupted' });
  });
});

test.each([
  [undefined],
  ['text'],
  [{}],
  [{ iterator: () => {} }],
  [{ iterator: () => {}, controller: {} }],
  [Object.freeze(makeStream([]))],
])('what is no such stream is left to others: %o', (value) => {
  const { run, record } = makeRun();
  expect(followModelStream(value, run, reader)).toBe(false);
  expect(record()).not.toHaveProperty('end_time');
});
