import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Run } from '#src/run/run.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { anything } from '../base/hostile.ts';
import { forAll } from '../support/campaign.ts';
import { logLines } from '../support/log-lines.ts';
import { makeRun, makeSink } from './memory-sink.ts';

/** Options of which each is anything at all, but for the sink, which is a real one. */
const keys = ['name', 'runType', 'tags', 'metadata', 'project', 'id', 'inputs', 'root', 'unknown'];
const changes = ['name', 'tags', 'metadata', 'inputs', 'outputs', 'usage', 'unknown'];
const objectOf = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, anything])), { requiredKeys: [] });
const make = (makers: Record<string, (() => unknown) | undefined>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(makers).map(([key, maker]) => [key, maker?.()]));

test('`startRun` throws with no options, and records JSON', () => {
  logLines();
  const exporter = makeSink();
  forAll(400, [objectOf(keys)], (options) => {
    startRun({ ...make(options), exporter } as never).end();
    expect(() => exporter.records()).not.toThrow();
    exporter.started.length = 0;
  });
});

test('no value instead of the options, the exporter or the run causes an error', () => {
  logLines();
  forAll(400, [anything], (maker) => {
    expect(startRun(maker() as never).isOpen).toBe(false);
    expect(startRun({ name: 'x', exporter: maker() as never }).isOpen).toBe(false);
    expect(withRun(maker() as never, () => 7)).toBe(7);
  });
});

test('no method of a run throws with any argument, and records are JSON', () => {
  logLines();
  const exporter = makeSink();
  const calls = fc.tuple(objectOf(changes), anything, anything, anything);
  forAll(400, [calls], ([changed, first, second, third]) => {
    const run = startRun({ name: 'x', exporter });
    run.set(make(changed) as never);
    run.set(first() as never);
    run.event(first() as never, second() as never);
    run.attach(first() as never, second() as never, third() as never);
    run.attach('a', second() as never, 'image/png');
    run.child(first() as never).fail(second());
    run.end(third());
    for (const record of exporter.records()) {
      expect(record.inputs).toBeTypeOf('object');
      for (const payload of [record.inputs, record.outputs ?? {}]) expect(Array.isArray(payload)).toBe(false);
      for (const text of [record.name, record.run_type, record.session_name, ...(record.tags ?? [])]) {
        expect(text).toBeTypeOf('string');
      }
    }
    exporter.started.length = 0;
  });
});

test('a run that its own outputs end has ended once, with the first outputs', () => {
  const { run, sink } = makeRun();
  run.end({
    get late() {
      run.end({ first: true });
      return 1;
    },
  });
  expect(sink.ended).toHaveLength(1);
  expect(sink.records()[0]?.outputs).toEqual({ first: true });

  const failing = makeRun();
  failing.run.fail({
    get name() {
      failing.run.end({ first: true });
      return 'AbortError';
    },
  });
  expect(failing.sink.ended).toHaveLength(1);
  expect(failing.sink.records()[0]).toMatchObject({ outputs: { first: true } });
  expect(failing.sink.records()[0]).not.toHaveProperty('error');
});

test('a method called without its run records nothing, logs one line, and does not throw', async () => {
  const lines = logLines();
  const exporter = makeSink();
  const run = startRun({ name: 'x', exporter });
  const mine = new Error('mine');
  await Promise.reject(mine).catch(run.fail);
  await Promise.resolve('value').then(run.end);
  const { child, event, set, attach, [Symbol.dispose]: dispose } = run;
  event('e');
  set({ name: 'y' });
  attach('a', Buffer.from('b'));
  dispose();
  expect(withRun(run, () => child({ name: 'z' })).parentRunId).toBe(run.id);
  expect(run.isOpen).toBe(true);
  expect(exporter.records()[0]).toMatchObject({ name: 'x' });
  expect(lines).toHaveLength(6);
  expect(lines[0]).toBe(
    'warn: Run.fail: expected a call on a run, got a call without a run or on a proxy; nothing is recorded. Pass `(value) => run.fail(value)` instead of `run.fail`.',
  );
});

test('the methods of a proxy or an heir of a run do not throw', () => {
  logLines();
  const run = startRun({ name: 'x', exporter: makeSink() });
  for (const other of [new Proxy(run, {}), Object.create(run) as Run]) {
    other.event('e');
    other.set({ name: 'y' });
    other.attach('a', Buffer.from('b'));
    other.end();
    expect(other.name).toBe('');
    other.fail(new Error('no'));
    other[Symbol.dispose]();
  }
  expect([run.isOpen, run.name]).toEqual([true, 'x']);
});
