import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Abandonment, type Watched } from '../../src/instrument/abandonment.ts';
import { traceable } from '../../src/instrument/traceable.ts';
import { makeSink } from '../run/memory-sink.ts';
import { collectUntil } from '../support/garbage.ts';
import { record } from './recorder.ts';

const turn = () => new Promise(setImmediate);

/** What is watched, and why it was given up. */
function makeWatched(idleMaxMs = 100): Watched & { readonly reasons: string[] } {
  const reasons: string[] = [];
  return { wasTouched: true, idleMaxMs, reasons, abandon: (reason) => void reasons.push(reason) };
}

describe('the watch', () => {
  /** A watch whose sweeps come when the test says so. */
  async function makeWatch(...watched: Watched[]) {
    const time = { nowMs: 0 };
    const watch = new Abandonment(() => time.nowMs);
    const results = watched.map((each) => {
      const result = {};
      watch.watch(result, each);
      return result;
    });
    await turn();
    const sweepAt = (nowMs: number): void => {
      time.nowMs = nowMs;
      watch.sweep();
    };
    return { watch, sweepAt, results };
  }

  test.each([
    [99, []],
    [100, ['nothing was asked of the result for 0.1 s']],
    [101, ['nothing was asked of the result for 0.1 s']],
  ])('gives up what has been quiet for the limit, here after %i ms of 100', async (ms, reasons) => {
    const watched = makeWatched(100);
    const { sweepAt } = await makeWatch(watched);
    sweepAt(1_000);
    sweepAt(1_000 + ms);
    expect(watched.reasons).toEqual(reasons);
  });

  test('begins anew at each sign of life, and gives up once', async () => {
    const watched = makeWatched(100);
    const { sweepAt } = await makeWatch(watched);
    sweepAt(0);
    watched.wasTouched = true;
    sweepAt(150);
    expect(watched.reasons).toEqual([]);
    sweepAt(249);
    expect(watched.reasons).toEqual([]);
    sweepAt(250);
    sweepAt(999);
    expect(watched.reasons).toHaveLength(1);
  });

  test('leaves alone what has come to its end', async () => {
    const [early, late] = [makeWatched(), makeWatched()];
    const { watch, sweepAt } = await makeWatch(early, late);
    watch.unwatch(early);
    sweepAt(0);
    watch.unwatch(late);
    sweepAt(1_000);
    expect([early.reasons, late.reasons]).toEqual([[], []]);
  });

  test('keeps the limit of each', async () => {
    const [short, long] = [makeWatched(10), makeWatched(1_000)];
    const { sweepAt } = await makeWatch(short, long);
    sweepAt(0);
    sweepAt(500);
    expect([short.reasons.length, long.reasons.length]).toEqual([1, 0]);
    sweepAt(1_000);
    expect(long.reasons).toHaveLength(1);
  });
});

describe('a run is interrupted when its result is collected:', () => {
  async function* numbers() {
    yield 1;
    yield 2;
  }

  const results: Record<string, () => object> = {
    'a web stream': () => new ReadableStream({ pull: (controller) => controller.enqueue(1) }),
    'an async iterable': () => ({ [Symbol.asyncIterator]: numbers }),
    'a generator': () => numbers(),
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested.
    'a lazy thenable': () => ({ then: () => {} }),
  };

  test.each(Object.entries(results))('%s that nobody reads', async (_, make) => {
    const recorder = record();
    traceable(make, { name: 'ask' })();
    await collectUntil(() => 'end_time' in (recorder.runs[0] ?? {}));
    expect(recorder.runs[0]).toMatchObject({
      error: 'Interrupted: the result was collected before its end',
      extra: { metadata: { end_reason: 'interrupted' } },
    });
    expect(recorder.runs[0]).not.toHaveProperty('outputs');
  });

  test('an emitter promised no end, so its run just ends', async () => {
    const recorder = record();
    traceable(() => new EventEmitter(), { name: 'ask', outputs: () => ({}) })();
    await collectUntil(() => 'end_time' in (recorder.runs[0] ?? {}));
    expect(recorder.runs[0]).toMatchObject({ end_time: expect.any(String) });
    expect(recorder.runs[0]).not.toHaveProperty('error');
  });

  test('a generator that is left half-way, with what came', async () => {
    const recorder = record();
    const ask = traceable(numbers, { aggregate: (chunks) => ({ chunks }) });
    await (async () => void (await ask().next()))();
    await collectUntil(() => 'end_time' in (recorder.runs[0] ?? {}));
    expect(recorder.runs[0]).toMatchObject({
      error: expect.stringMatching(/^Interrupted: /),
      outputs: { chunks: [1] },
    });
  });

  test('an iteration that goes on without its iterable is none of these', async () => {
    const recorder = record();
    const iterator = traceable(() => ({ [Symbol.asyncIterator]: () => numbers() }))()[Symbol.asyncIterator]();
    await collectUntil(() => false, 10);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
  });

  test('a thenable that was asked may be forgotten before it answers', async () => {
    const recorder = record();
    const answers: ((value: string) => void)[] = [];
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested.
    const make = () => ({ then: (done: (value: string) => void) => void answers.push(done) });
    traceable(make)().then(() => {});
    await collectUntil(() => false, 10);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    answers[0]?.('late');
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: 'late' }, end_time: expect.any(String) });
  });

  test('a result that came to its end keeps nothing of its run', async () => {
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
    // In a function of its own, whose variables are gone when it returns.
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
