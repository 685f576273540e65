import { describe, expect, onTestFinished, test } from 'vitest';
import { clock } from '../../src/base/clock.ts';
import { parseDottedOrder } from '../../src/run/dotted-order.ts';
import type { Run } from '../../src/run/run.ts';
import type { RunOptions } from '../../src/run/run-options.ts';
import { type CapturePolicy, installSink } from '../../src/run/sink.ts';
import { startRun } from '../../src/run/start-run.ts';
import { parseIsoTimestamp } from '../../src/run/timestamp.ts';
import { told } from '../base/told.ts';
import { makeSink } from './memory-sink.ts';

/** A run, and what its sink has been told. */
function makeRun(options: Partial<RunOptions> = {}, capture: Partial<CapturePolicy> = {}) {
  const sink = makeSink(capture);
  const run = startRun({ name: 'work', exporter: sink, ...options });
  return { run, sink, record: () => sink.records()[0] };
}

const UUID = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';

describe('a run that starts', () => {
  test('is told to its sink with its id, place and time', () => {
    const beforeUs = clock.nowUs();
    const { run, record } = makeRun();
    const startUs = parseIsoTimestamp(record()?.start_time ?? '') as number;
    expect(run.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(run).toMatchObject({ name: 'work', runType: 'chain', traceId: run.id, parentRunId: undefined });
    expect(parseDottedOrder(run.dottedOrder)).toEqual([{ startUs, id: run.id }]);
    expect(startUs).toBeGreaterThan(beforeUs);
    expect(startUs).toBeLessThan(clock.nowUs());
  });

  test('has in its record what it was given', () => {
    const given = { runType: 'llm', tags: ['a'], metadata: { user: 7n, none: undefined }, project: 'chat', id: UUID };
    const { record } = makeRun({ ...given, inputs: { q: [1] } });
    expect(record()).toMatchObject({
      id: UUID,
      trace_id: UUID,
      name: 'work',
      run_type: 'llm',
      tags: ['a'],
      session_name: 'chat',
      inputs: { q: [1] },
    });
    expect(record()?.extra?.metadata).toEqual({ user: '7n' });
    expect(record()?.extra?.runtime).toMatchObject({ sdk: 'runspan', runtime: 'node' });
  });

  test('takes an id in upper case for the same id', () => {
    expect(makeRun({ id: UUID.toUpperCase() }).run.id).toBe(UUID);
  });

  test.each<[string, unknown, unknown]>([
    ['nothing', undefined, {}],
    ['a plain object', { a: 1 }, { a: 1 }],
    ['an array', [1], { input: [1] }],
    ['a date', new Date(0), { input: '1970-01-01T00:00:00.000Z' }],
    ['a map', new Map([['a', 1]]), { input: { a: 1 } }],
    ['an object whose toJSON gives no object', { toJSON: () => 5 }, { input: 5 }],
  ])('has an object as inputs when it is given %s', (_, inputs, expected) => {
    expect(makeRun({ inputs: inputs as Record<string, unknown> }).record()?.inputs).toEqual(expected);
  });

  test('keeps what was passed as it was then', () => {
    const [inputs, metadata, tags] = [{ list: [1] }, { list: [1] }, ['a']];
    const { record } = makeRun({ inputs, metadata, tags });
    inputs.list.push(2);
    metadata.list.push(2);
    tags.push('b');
    expect(record()).toMatchObject({ inputs: { list: [1] }, extra: { metadata: { list: [1] } }, tags: ['a'] });
  });
});

describe('a run below another', () => {
  test('has its trace, its place and its project', () => {
    const { run, sink } = makeRun({ project: 'chat' });
    const child = run.child({ name: 'step', runType: 'tool' });
    expect(child).toMatchObject({ traceId: run.id, parentRunId: run.id, runType: 'tool', name: 'step' });
    expect(child.dottedOrder.startsWith(`${run.dottedOrder}.`)).toBe(true);
    expect(parseDottedOrder(child.dottedOrder)?.map(({ id }) => id)).toEqual([run.id, child.id]);
    expect(sink.records()[1]).toMatchObject({ parent_run_id: run.id, trace_id: run.id, session_name: 'chat' });
    expect(sink.records()[1]?.extra).toBeUndefined();
  });

  test('sorts after its elder siblings, and they have no child', () => {
    const { run, sink } = makeRun();
    for (let index = 0; index < 50; index++) run.child({ name: `${index}` }).child({ name: 'below' });
    const orders = sink.records().map(({ dotted_order }) => dotted_order);
    expect(orders.toSorted()).toEqual(orders);
  });

  test('goes elsewhere, starts a trace of its own or joins another project when it is told to', () => {
    const { run } = makeRun();
    const other = makeSink({ project: 'other' });
    expect(run.child({ name: 'step', exporter: other })).toMatchObject({ traceId: run.id });
    expect(run.child({ name: 'apart', exporter: other, root: true, project: 'mine' }).parentRunId).toBeUndefined();
    expect(other.records().map(({ session_name }) => session_name)).toEqual(['default', 'mine']);
  });

  test('may start after its parent has ended', () => {
    const { run, sink } = makeRun();
    run.end();
    expect(run.child({ name: 'late' }).parentRunId).toBe(run.id);
    expect(sink.started).toHaveLength(2);
  });

  test('is refused with its parent, and so is all below it', () => {
    const sink = makeSink({}, ({ name }) => name === 'refused');
    const run = startRun({ name: 'refused', exporter: sink });
    const child = run.child({
      name: 'child',
      inputs: {
        get read() {
          throw new Error('was read');
        },
      },
    });
    const grandchild = child.child({ name: 'grandchild' });
    for (const each of [run, child, grandchild]) each.end({ a: 1 });
    expect([sink.started, sink.ended]).toEqual([[], []]);
    expect(startRun({ name: 'next', exporter: sink }).context.refused).toBe(false);
    expect(sink.started).toHaveLength(1);
  });

  test('is off when its parent was, though tracing has been turned on since', () => {
    const sink = makeSink();
    const off = startRun({ name: 'off' });
    onTestFinished(installSink(sink));
    expect(off.child({ name: 'child' }).sink).toBeUndefined();
    expect(off.child({ name: 'child', exporter: sink, root: true }).sink).toBe(sink);
  });
});

describe('a run that ends', () => {
  test('is told once, with its outputs and its end', () => {
    const { run, sink, record } = makeRun();
    run.end({ answer: 42 });
    run.end({ answer: 43 });
    run.fail(new Error('late'));
    run[Symbol.dispose]();
    expect(sink.ended).toEqual([sink.started[0]]);
    expect(record()).toMatchObject({ outputs: { answer: 42 } });
    expect(record()).not.toHaveProperty('error');
    const [start, end] = [record()?.start_time ?? '', record()?.end_time ?? ''].map(parseIsoTimestamp);
    expect(end).toBeGreaterThanOrEqual(start as number);
    expect(end).toBeLessThan(clock.nowUs());
  });

  test.each<[string, unknown, unknown]>([
    ['a plain object', { a: 1 }, { a: 1 }],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['text', 'yes', { outputs: 'yes' }],
    ['null', null, { outputs: null }],
    ['an array', [1], { outputs: [1] }],
    [
      'an object of a class',
      new (class Point {
        x = 1;
      })(),
      { outputs: { x: 1 } },
    ],
    ['an object whose toJSON gives no object', { toJSON: () => 'text' }, { outputs: 'text' }],
    [
      'a proxy that cannot be listed',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no');
          },
        },
      ),
      { outputs: '[Threw: no]' },
    ],
  ])('has an object as outputs when it ends with %s', (_, outputs, expected) => {
    const { run, record } = makeRun();
    run.end(outputs);
    expect(record()?.outputs).toEqual(expected);
  });

  test('with nothing keeps the outputs that were set', () => {
    const { run, record } = makeRun();
    run.set({ outputs: 'early' });
    run.end();
    expect(record()?.outputs).toEqual({ outputs: 'early' });
  });

  test('with nothing at all has none', () => {
    const { run, sink } = makeRun();
    run.end();
    expect(sink.ended[0]?.outputs).toBeUndefined();
  });

  test('with an error tells it, and keeps the outputs that were set', () => {
    const { run, sink, record } = makeRun();
    run.set({ outputs: { partial: true } });
    run.fail(new TypeError('no'));
    run.end({ a: 1 });
    expect(record()?.error).toMatch(/^TypeError: no\n {4}at /);
    expect(record()?.outputs).toEqual({ partial: true });
    expect(sink.ended).toHaveLength(1);
  });

  test('with its using block, once', () => {
    const { run, sink } = makeRun();
    {
      using inner = run.child({ name: 'inner' });
      inner.set({ outputs: { a: 1 } });
    }
    expect(sink.ended.map(({ name, outputs }) => [name, outputs])).toEqual([['inner', '{"a":1}']]);
  });

  test('changes no more', () => {
    const { run, sink, record } = makeRun({ tags: ['a'] });
    run.end({ a: 1 });
    const before = JSON.stringify(record());
    run.set({ name: 'other', tags: ['b'], metadata: { m: 1 }, inputs: { i: 1 }, outputs: { o: 1 }, usage: {} });
    run.event('late');
    run.attach('late', new Uint8Array(1), 'image/png');
    expect(JSON.stringify(record())).toBe(before);
    expect(run.name).toBe('work');
    expect(sink.started[0]?.attachments).toBeUndefined();
  });

  test('keeps the length of its life while the wall clock is set', () => {
    const { run, record } = makeRun();
    run.end();
    const [start, end] = [record()?.start_time ?? '', record()?.end_time ?? ''].map(parseIsoTimestamp);
    expect((end as number) - (start as number)).toBeLessThan(5_000_000);
  });
});

describe('Run.set', () => {
  test('changes the name and adds tags and metadata', () => {
    const { run, record } = makeRun({ tags: ['a'], metadata: { one: 1, two: 2 } });
    run.set({ name: 'renamed', tags: ['b', 'a'], metadata: { two: 'new', three: [3], none: undefined } });
    run.set({ tags: ['c'] });
    expect(run.name).toBe('renamed');
    expect(record()).toMatchObject({ name: 'renamed', tags: ['a', 'b', 'a', 'c'] });
    expect(record()?.extra?.metadata).toEqual({ one: 1, two: 'new', three: [3] });
  });

  test('replaces inputs and outputs, and copies them at once', () => {
    const { run, record } = makeRun({ inputs: { old: true } });
    const outputs = { list: [1] };
    run.set({ inputs: { a: 1 }, outputs });
    outputs.list.push(2);
    expect(record()).toMatchObject({ inputs: { a: 1 }, outputs: { list: [1] } });
    expect(record()?.inputs).not.toHaveProperty('old');
    run.set({ outputs: undefined });
    expect(record()?.outputs).toEqual({ list: [1] });
  });

  test('keeps usage in the metadata', () => {
    const { run, record } = makeRun();
    run.set({ usage: { input_tokens: 3, output_tokens: 4 } });
    expect(record()?.extra?.metadata).toEqual({ usage_metadata: { input_tokens: 3, output_tokens: 4 } });
  });

  test('takes what holds when something beside it does not', () => {
    const lines = told();
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
  test('records a name, a moment within the run, and a copy of its data', () => {
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
  ])('given %i times keeps %i', (count, kept, metadata) => {
    const { run, record } = makeRun();
    for (let index = 0; index < count; index++) run.event('token');
    run.end();
    expect(record()?.events).toHaveLength(kept);
    expect(record()?.extra?.metadata).toEqual(metadata);
  });
});

describe('Run.attach', () => {
  test('keeps a copy of the bytes', () => {
    const { run, sink } = makeRun();
    const bytes = new Uint8Array([0, 1, 2, 3]).subarray(1);
    run.attach('photo', bytes, 'image/png');
    run.attach('voice "1"', Buffer.from('hi'), 'audio/wav; rate="8000"');
    bytes.fill(9);
    expect(sink.started[0]?.attachments).toEqual([
      { name: 'photo', bytes: new Uint8Array([1, 2, 3]), mimeType: 'image/png' },
      { name: 'voice "1"', bytes: Buffer.from('hi'), mimeType: 'audio/wav; rate="8000"' },
    ]);
  });

  test.each<[string, unknown[]]>([
    ['a name with a dot', ['a.png', new Uint8Array(1), 'image/png']],
    ['no name', ['', new Uint8Array(1), 'image/png']],
    ['a name that is no text', [1, new Uint8Array(1), 'image/png']],
    ['bytes that are an array', ['a', [1], 'image/png']],
    ['bytes that are an ArrayBuffer', ['a', new ArrayBuffer(1), 'image/png']],
    ['no type', ['a', new Uint8Array(1)]],
    ['a type without a slash', ['a', new Uint8Array(1), 'png']],
    ['a type that would end its header line', ['a', new Uint8Array(1), 'image/png\r\nx-evil: 1']],
    ['a type with parameters that would', ['a', new Uint8Array(1), 'image/png; a=\r\nx-evil: 1']],
    ['a type beyond ASCII', ['a', new Uint8Array(1), 'image/png; a=ü']],
  ])('leaves out %s, and says so once', (_, given) => {
    const lines = told();
    const { run, sink } = makeRun();
    run.attach(...(given as Parameters<Run['attach']>));
    run.attach(...(given as Parameters<Run['attach']>));
    expect(sink.started[0]?.attachments).toBeUndefined();
    expect(lines).toEqual([expect.stringMatching(/^warn: Run\.attach\(.*left out\.$/)]);
  });

  test('takes a name once per run, and says so', () => {
    const lines = told();
    const { run, sink } = makeRun();
    run.attach('photo', new Uint8Array([1]), 'image/png');
    run.attach('photo', new Uint8Array([2]), 'image/png');
    expect(sink.started[0]?.attachments).toEqual([
      { name: 'photo', bytes: new Uint8Array([1]), mimeType: 'image/png' },
    ]);
    expect(lines).toEqual([expect.stringContaining('Run.attach')]);
  });
});

describe('what is hidden', () => {
  test('of the inputs is neither read nor recorded', () => {
    const inputs = {
      get secret(): never {
        throw new Error('was read');
      },
    };
    const { run, sink } = makeRun({ inputs }, { hideInputs: true });
    run.set({ inputs });
    run.end({ shown: 1 });
    expect(sink.ended[0]).toMatchObject({ inputs: undefined, outputs: '{"shown":1}' });
  });

  test('of the outputs is neither read nor recorded', () => {
    const outputs = {
      get secret(): never {
        throw new Error('was read');
      },
    };
    const { run, sink } = makeRun({ inputs: { shown: 1 } }, { hideOutputs: true });
    run.set({ outputs });
    expect(run.encode(outputs)).toBe('null');
    run.end(outputs);
    expect(sink.ended[0]).toMatchObject({ inputs: '{"shown":1}', outputs: undefined });
  });

  test('of the outputs is not recorded when it comes as JSON text', () => {
    const hidden = makeRun({}, { hideOutputs: true });
    const shown = makeRun();
    for (const { run } of [hidden, shown]) run.endEncoded('{"a":1}');
    expect([hidden.sink.ended[0]?.outputs, shown.sink.ended[0]?.outputs]).toEqual([undefined, '{"a":1}']);
  });
});

test('payloads are cut at the limits of the sink', () => {
  const { run, record } = makeRun({ inputs: { a: [1, 2] } }, { payload: { depth: 9, width: 1, nodes: 99, bytes: 99 } });
  run.end([1, 2, 3]);
  expect(record()).toMatchObject({
    inputs: { a: [1, '[Truncated: 1 more items]'] },
    outputs: { outputs: [1, '[Truncated: 2 more items]'] },
  });
});

test('a run without a sink records nothing and does all that a run does', () => {
  const run = startRun({
    name: 'off',
    inputs: {
      get read() {
        throw new Error('was read');
      },
    },
  });
  run.set({ metadata: { a: 1 } });
  run.event('token');
  run.attach('a', new Uint8Array(1), 'image/png');
  run.end({ a: 1 });
  expect(run.isOpen).toBe(false);
  expect(run).toMatchObject({ name: 'off', traceId: run.id, runType: 'chain' });
});
