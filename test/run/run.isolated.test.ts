import { describe, expect, onTestFinished, test } from 'vitest';
import { clock } from '#src/base/clock.ts';
import { overrideSink } from '#src/run/sink.ts';
import { startRun } from '#src/run/start-run.ts';
import { parseDottedOrder, parseIsoTimestamp } from '#src/run/time.ts';
import { collectUntil } from '../support/garbage.ts';
import { makeRun, makeSink, watched } from './memory-sink.ts';

const UUID = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';

describe('a run that starts', () => {
  test('is passed to its sink with id, position and time', () => {
    const beforeUs = clock.nowUs();
    const { run, record } = makeRun();
    const startUs = parseIsoTimestamp(record()?.start_time ?? '') as number;
    expect(run.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(run).toMatchObject({ name: 'work', runType: 'chain', traceId: run.id, parentRunId: undefined });
    expect(parseDottedOrder(run.dottedOrder)).toEqual([{ startUs, id: run.id }]);
    expect(startUs).toBeGreaterThan(beforeUs);
    expect(startUs).toBeLessThan(clock.nowUs());
  });

  test('has its options in its record', () => {
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

  test('is recorded in payloads by its ids and name', () => {
    const { run } = makeRun();
    const told = { id: run.id, traceId: run.id, name: 'work' };
    const { record } = makeRun({ inputs: { run } });
    expect(record()?.inputs).toEqual({ run: told });
    expect(JSON.parse(JSON.stringify(run))).toEqual(told);
  });

  test('accepts an id in upper case as the same id', () => {
    expect(makeRun({ id: UUID.toUpperCase() }).run.id).toBe(UUID);
  });
});

describe('a run below another', () => {
  test('has its trace, its position and its project', () => {
    const { run, sink } = makeRun({ project: 'chat' });
    const child = run.child({ name: 'step', runType: 'tool' });
    expect(child).toMatchObject({ traceId: run.id, parentRunId: run.id, runType: 'tool', name: 'step' });
    expect(child.dottedOrder.startsWith(`${run.dottedOrder}.`)).toBe(true);
    expect(parseDottedOrder(child.dottedOrder)?.map(({ id }) => id)).toEqual([run.id, child.id]);
    expect(sink.records()[1]).toMatchObject({ parent_run_id: run.id, trace_id: run.id, session_name: 'chat' });
    expect(sink.records()[1]?.extra).toBeUndefined();
  });

  test('sorts after earlier siblings and their children', () => {
    const { run, sink } = makeRun();
    for (let index = 0; index < 50; index++) run.child({ name: `${index}` }).child({ name: 'below' });
    const orders = sink.records().map(({ dotted_order }) => dotted_order);
    expect(orders.toSorted()).toEqual(orders);
  });

  test('is not retained by its parent', async () => {
    const keepsNothing = { ...makeSink(), start: () => true, end: () => {} };
    const parent = startRun({ name: 'parent', exporter: keepsNothing });
    const below = Array.from({ length: 100 }, () => {
      const child = parent.child({ name: 'child', inputs: { a: 1 } });
      child.end();
      return new WeakRef(child);
    });
    const held = () => below.filter((child) => child.deref() !== undefined).length;
    await collectUntil(() => held() === 0);
    expect(held()).toBe(0);
    expect(parent.isOpen).toBe(true);
  });

  test('is refused with its parent, like all descendants', () => {
    const sink = makeSink({}, ({ name }) => name === 'refused');
    const run = startRun({ name: 'refused', exporter: sink });
    const secret = watched();
    const child = run.child({ name: 'child', inputs: secret.object });
    const grandchild = child.child({ name: 'grandchild' });
    for (const each of [run, child, grandchild]) each.end({ a: 1 });
    expect([sink.started, sink.ended, secret.reads()]).toEqual([[], [], 0]);
    expect(startRun({ name: 'next', exporter: sink }).context.refused).toBe(false);
    expect(sink.started).toHaveLength(1);
  });

  test('is off if its parent was, even if tracing was turned on since', () => {
    const sink = makeSink();
    const off = startRun({ name: 'off' });
    onTestFinished(overrideSink(sink));
    expect(off.child({ name: 'child' }).sink).toBeUndefined();
    expect(off.child({ name: 'child', exporter: sink, root: true }).sink).toBeUndefined();
  });
});

describe('a run that ends', () => {
  test('is passed to its sink once, with outputs and end time', () => {
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

  test('without outputs keeps those that were set', () => {
    const { run, record } = makeRun();
    run.set({ outputs: 'early' });
    run.end();
    expect(record()?.outputs).toEqual({ outputs: 'early' });
  });

  test('with an error records it, and keeps the outputs that were set', () => {
    const { run, sink, record } = makeRun();
    run.set({ outputs: { partial: true } });
    run.fail(new TypeError('no'));
    run.end({ a: 1 });
    expect(record()?.error).toMatch(/^TypeError: no\n {4}at /);
    expect(record()?.outputs).toEqual({ partial: true });
    expect(sink.ended).toHaveLength(1);
  });

  test('with its `using` block ends once', () => {
    const { run, sink } = makeRun();
    {
      using inner = run.child({ name: 'inner' });
      inner.set({ outputs: { a: 1 } });
    }
    expect(sink.ended.map(({ name, outputs }) => [name, outputs])).toEqual([['inner', '{"a":1}']]);
  });

  test('cannot be changed', () => {
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
});
