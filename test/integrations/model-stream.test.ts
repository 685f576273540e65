import { expect, test } from 'vitest';
import { followModelStream, type StreamFold } from '../../src/integrations/model-stream.ts';
import { makeRun } from '../run/memory-sink.ts';
import { told } from '../support/told.ts';
import { collected } from './collected.ts';

const count = (): StreamFold => {
  let events = 0;
  return { push: () => ++events > 0, record: (run) => run.set({ outputs: { events } }) };
};

/** A stream that is made of an iterator which knows nothing of it, as the halves of `tee()` are. */
function makeStream(events: unknown[]) {
  const next = async () => (events.length > 0 ? { done: false, value: events.shift() } : { done: true });
  return { iterator: () => ({ next }) as AsyncIterator<unknown>, controller: new AbortController() };
}

test('takes an iterator that can only go on', async () => {
  const { run, record } = makeRun();
  const stream = makeStream(['a', 'b']);
  expect(followModelStream(stream, run, count())).toBe(true);
  const iterator = stream.iterator();
  expect(Object.keys(iterator)).toEqual(['next']);
  for (let step = 0; step < 3; step++) await iterator.next();
  expect(record()).toMatchObject({ outputs: { events: 2 }, events: [{ name: 'new_token' }] });
});

test('hands on an error that cannot be read', async () => {
  told();
  const { run, record } = makeRun();
  const error = Object.defineProperty({}, 'name', { get: () => expect.unreachable() });
  const next = () => Promise.reject(error);
  const stream = { ...makeStream([]), iterator: () => ({ next }) as AsyncIterator<unknown> };
  followModelStream(stream, run, count());
  expect(
    await stream
      .iterator()
      .next()
      .catch((caught: unknown) => caught === error),
  ).toBe(true);
  expect(record()).toHaveProperty('error');
});

test('does not take a stream for dropped while its iterator is in use', async () => {
  const { run, record } = makeRun();
  let dropped: WeakRef<object> = new WeakRef({});
  const iterator = (() => {
    const stream = makeStream(['a']);
    followModelStream(stream, run, count());
    dropped = new WeakRef(stream);
    return stream.iterator();
  })();
  await collected(dropped);
  expect(run.isOpen).toBe(true);
  await iterator.next();
  await iterator.next();
  expect(record()?.outputs).toEqual({ events: 1 });
  expect(record()?.extra).not.toHaveProperty('metadata.end_reason');
});

test.each([undefined, null, 'text', {}, { iterator: () => {} }, { iterator: 1, controller: new AbortController() }])(
  'leaves %o alone',
  (value) => {
    const { run } = makeRun();
    expect(followModelStream(value, run, count())).toBe(false);
    expect(run.isOpen).toBe(true);
  },
);
