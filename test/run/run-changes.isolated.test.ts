import { describe, expect, test } from 'vitest';
import { startRun } from '#src/run/start-run.ts';
import { parseIsoTimestamp } from '#src/run/time.ts';
import { logLines } from '../support/log-lines.ts';
import { makeRun, watched } from './memory-sink.ts';

describe('Run.set', () => {
  test('changes the name and adds tags and metadata', () => {
    const { run, record } = makeRun({ tags: ['a'], metadata: { one: 1, two: 2 } });
    run.set({ name: 'renamed', tags: ['b', 'a'], metadata: { two: 'new', three: [3], none: undefined } });
    run.set({ tags: ['c'] });
    expect(run.name).toBe('renamed');
    expect(record()).toMatchObject({ name: 'renamed', tags: ['a', 'b', 'c'] });
    expect(record()?.extra?.metadata).toEqual({ one: 1, two: 'new', three: [3] });
  });

  test.each([
    [-1, 0],
    [0, 0],
    [1, 1],
    [5_000, 1],
  ])('keeps 1000 tags and 10000 keys of metadata: with %i more, %i log lines for each', (more, lineCount) => {
    const lines = logLines();
    const { run, record } = makeRun({ tags: ['a', 'b'], metadata: { a: 1, b: 2 } });
    for (let step = 0; step < 998 + more; step++) run.set({ tags: ['a', `step ${step}`] });
    for (let step = 0; step < 9_998 + more; step++) run.set({ metadata: { a: step, [`step ${step}`]: step } });
    const { tags = [], extra } = record() ?? {};
    expect(tags).toHaveLength(Math.min(1_000, 1_000 + more));
    expect(tags.slice(0, 3)).toEqual(['a', 'b', 'step 0']);
    expect(Object.keys(extra?.metadata ?? {})).toHaveLength(Math.min(10_000, 10_000 + more));
    expect(extra?.metadata).toMatchObject({ a: 9_997 + more, b: 2, 'step 0': 0 });
    const line = (what: string) => `warn: ${what} are ignored.`;
    const both = [
      'tags: expected a run to have at most 1000 tags; further tags',
      'metadata: expected a run to have at most 10000 keys; further keys',
    ];
    expect(lines).toEqual(lineCount === 0 ? [] : both.map(line));
  });

  test('counts inherited tags and metadata', () => {
    logLines();
    const tags = Array.from({ length: 1_000 }, (_, at) => `tag ${at}`);
    const metadata = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, at]));
    const { run, sink } = makeRun({ tags, metadata });
    run.child({ name: 'below', tags: ['own', 'tag 7'], metadata: { own: 1, 'key 7': 'own' } });
    const below = sink.records()[1];
    expect(below?.tags).toEqual(tags);
    expect(below?.extra?.metadata).toEqual({ ...metadata, 'key 7': 'own' });
  });

  test('keeps metadata of the library in a run with 10000 keys', () => {
    logLines();
    const metadata = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, at]));
    const { run, record } = makeRun({ metadata });
    run.set({ usage: { total_tokens: 3 } });
    for (let index = 0; index < 10_001; index++) run.event('token');
    run.fail(new DOMException('gone', 'AbortError'));
    expect(record()?.extra?.metadata).toEqual({
      ...metadata,
      usage_metadata: { total_tokens: 3 },
      dropped_events: 1,
    });
  });

  test('replaces inputs and outputs by copies', () => {
    const { run, record } = makeRun({ inputs: { old: true } });
    const outputs = { list: [1] };
    run.set({ inputs: { a: 1 }, outputs });
    outputs.list.push(2);
    expect(record()).toMatchObject({ inputs: { a: 1 }, outputs: { list: [1] } });
    expect(record()?.inputs).not.toHaveProperty('old');
    run.set({ outputs: undefined });
    expect(record()?.outputs).toEqual({ list: [1] });
  });

  test('accepts the valid part of invalid changes', () => {
    const lines = logLines();
    const { run, record } = makeRun();
    run.set({
      name: 'renamed',
      tags: 5 as never,
      metadata: {
        get bad() {
          throw new Error('no');
        },
        good: 1,
      },
      outputs: { a: 1 },
    });
    expect(record()).toMatchObject({ name: 'renamed', outputs: { a: 1 } });
    expect(record()?.extra?.metadata).toMatchObject({ good: 1 });
    expect(record()).not.toHaveProperty('tags');
    expect(lines.length).toBeGreaterThan(0);
  });
});

describe('Run.event', () => {
  test('records a name, a time within the run, and a copy of its data', () => {
    const { run, record } = makeRun();
    const data = { list: [1n] };
    run.event('token', data);
    run.event('done');
    data.list.push(2n);
    run.end();
    const [token, done] = record()?.events ?? [];
    expect(token).toEqual({ name: 'token', time: expect.any(String), kwargs: { list: ['1n'] } });
    expect(done).toEqual({ name: 'done', time: expect.any(String) });
    const times = [record()?.start_time, token?.time, done?.time].map(
      (time) => parseIsoTimestamp(time ?? '') as number,
    );
    expect(times.toSorted((a, b) => a - b)).toEqual(times);
    expect(new Set(times).size).toBe(3);
  });

  test.each([
    [9_999, 9_999, undefined],
    [10_000, 10_000, undefined],
    [10_001, 10_000, { dropped_events: 1 }],
    [10_002, 10_000, { dropped_events: 2 }],
  ])('called %i times keeps %i events', (count, kept, metadata) => {
    const { run, record } = makeRun();
    for (let index = 0; index < count; index++) run.event('token');
    run.end();
    expect(record()?.events).toHaveLength(kept);
    expect(record()?.extra?.metadata).toEqual(metadata);
  });
});

test('the text of events has a common limit, and events beyond it are counted', () => {
  const { run, sink } = makeRun({}, { payload: { depth: 9, width: 100, nodes: 1_000, bytes: 1_000 } });
  for (let n = 0; n < 10; n++) run.event('big', { text: 'x'.repeat(400) });
  run.end();
  expect(JSON.parse(sink.ended[0]?.events ?? '')).toHaveLength(3);
  expect(sink.ended[0]?.metadata?.get('dropped_events')).toBe('7');
});

describe('a hidden payload', () => {
  test('of the inputs is neither read nor recorded', () => {
    const { object: inputs, reads } = watched();
    const { run, sink } = makeRun({ inputs }, { hideInputs: true });
    run.set({ inputs });
    run.end({ shown: 1 });
    expect(reads()).toBe(0);
    expect(sink.ended[0]).toMatchObject({ inputs: undefined, outputs: '{"shown":1}' });
  });

  test('of the outputs is neither read nor recorded', () => {
    const { object: outputs, reads } = watched();
    const { run, sink } = makeRun({ inputs: { shown: 1 } }, { hideOutputs: true });
    run.set({ outputs });
    expect(run.chunkList()).toBeUndefined();
    run.end(outputs);
    expect(reads()).toBe(0);
    expect(sink.ended[0]).toMatchObject({ inputs: '{"shown":1}', outputs: undefined });
  });
});

test('a run without a sink records nothing, and has all methods', () => {
  const { object, reads } = watched();
  const run = startRun({ name: 'off', inputs: object, metadata: object });
  run.set({ metadata: object, outputs: object });
  run.event('token', object);
  run.attach('a', new Uint8Array(1), 'image/png');
  run.end(object);
  expect(reads()).toBe(0);
  expect(run.isOpen).toBe(false);
  expect(run).toMatchObject({ name: 'off', traceId: run.id, runType: 'chain' });
});
