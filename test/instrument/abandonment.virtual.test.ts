import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { makeSink } from '../run/memory-sink.ts';
import { collectAll, collectUntil } from '../support/garbage.ts';
import { virtualClock } from '../support/virtual-timers.ts';
import { record } from './recorder.ts';

describe('a run is interrupted if its result is not used', () => {
  const LIMIT_MS = 900_000;
  const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(1) }, { highWaterMark: 0 });

  /** Advances time after the library has registered the results of this turn. */
  async function pass(ms: number): Promise<void> {
    await new Promise(setImmediate);
    await virtualClock.advance(ms);
  }

  test('for `streamIdleMs`', async () => {
    const sink = makeSink({ streamIdleMs: LIMIT_MS });
    const stream = traceable(endless, { exporter: sink })();
    // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
    const thenable = { then: () => {} };
    traceable(() => thenable, { exporter: sink })();
    await pass(LIMIT_MS - 1);
    expect(sink.ended).toEqual([]);
    await pass(LIMIT_MS + 1);
    const error = 'Interrupted: the result was not read for 900 s';
    const interrupted = { error, extra: { runspan_end_reason: 'interrupted' } };
    expect(sink.records()).toMatchObject([interrupted, interrupted]);
    expect(stream.locked).toBe(false);
  });

  test('but not while chunks are read', async () => {
    const sink = makeSink({ streamIdleMs: LIMIT_MS });
    const reader = traceable(endless, { exporter: sink, outputs: () => ({}) })().getReader();
    for (let chunk = 0; chunk < 10; chunk++) {
      await reader.read();
      await pass(LIMIT_MS - 1);
    }
    expect(sink.ended).toEqual([]);
    await reader.cancel();
    expect(sink.ended).toHaveLength(1);
  });

  test('but not while a read is pending', async () => {
    const sink = makeSink({ streamIdleMs: LIMIT_MS });
    let answer = (): void => {};
    const slow = async function* () {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      yield 1;
    };
    const iterator = traceable(slow, { exporter: sink })();
    const first = iterator.next();
    await pass(3 * LIMIT_MS);
    expect(sink.ended).toEqual([]);
    answer();
    await first;
    await pass(2 * LIMIT_MS);
    expect(sink.ended).toHaveLength(1);
  });
});

describe('a run is interrupted after its result is garbage-collected:', () => {
  async function* numbers() {
    yield 1;
    yield 2;
  }

  const results: Record<string, () => object> = {
    'a web stream': () => new ReadableStream({ pull: (controller) => controller.enqueue(1) }),
    'an async iterable': () => ({ [Symbol.asyncIterator]: numbers }),
    'a generator': () => numbers(),
    // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
    'a lazy thenable': () => ({ then: () => {} }),
  };

  test.each(Object.entries(results))('%s that is never read', async (_, make) => {
    const recorder = record();
    traceable(make, { name: 'ask' })();
    await collectUntil(() => 'end_time' in (recorder.runs[0] ?? {}));
    expect(recorder.runs[0]).toMatchObject({
      error: 'Interrupted: the result was garbage-collected before it ended',
      extra: { runspan_end_reason: 'interrupted' },
    });
    expect(recorder.runs[0]).not.toHaveProperty('outputs');
  });

  test('a generator that is not read to its end, with the chunks that were read', async () => {
    const recorder = record();
    const ask = traceable(numbers, { aggregate: (chunks) => ({ chunks }) });
    await (async () => void (await ask().next()))();
    await collectUntil(() => 'end_time' in (recorder.runs[0] ?? {}));
    expect(recorder.runs[0]).toMatchObject({
      error: expect.stringMatching(/^Interrupted: /),
      outputs: { chunks: [1] },
    });
  });

  test('but not an iterable whose iterator is still referenced', async () => {
    const recorder = record();
    const iterator = traceable(() => ({ [Symbol.asyncIterator]: () => numbers() }))()[Symbol.asyncIterator]();
    await collectAll();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
  });

  test('but not a thenable whose `then` was called', async () => {
    const recorder = record();
    const answers: ((value: string) => void)[] = [];
    // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
    const make = () => ({ then: (done: (value: string) => void) => void answers.push(done) });
    traceable(make)().then(() => {});
    await collectAll();
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    answers[0]?.('late');
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: 'late' }, end_time: expect.any(String) });
  });

  test('a result that has ended keeps no chunks in memory', async () => {
    const sink = makeSink();
    const held: WeakRef<object>[] = [];
    const ask = traceable(
      function* () {
        const chunk = { text: 'x'.repeat(1_000) };
        held.push(new WeakRef(chunk));
        yield chunk;
      },
      { exporter: sink, aggregate: (chunks) => ({ count: chunks.length }) },
    );
    const generator = ask();
    // The variables of a separate function do not reference the chunks after it returns.
    const readAll = () => {
      for (const _ of generator);
    };
    readAll();
    await collectUntil(() => held[0]?.deref() === undefined);
    expect(held[0]?.deref()).toBeUndefined();
    expect(sink.ended).toHaveLength(1);
    expect(generator.next().done).toBe(true);
  });
});
