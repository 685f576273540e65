import { describe, expect, onTestFinished, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { untraced } from '#src/run/context/current.ts';
import { noopSink, overrideSink } from '#src/run/sink.ts';
import { currentRun, startRun, withExporter, withRun } from '#src/run/start-run.ts';
import { throwingProxy } from '../base/hostile.ts';
import { logLines } from '../support/log-lines.ts';
import { makeSink } from './memory-sink.ts';

describe('runs inherit from their ancestors', () => {
  test('tags and metadata given at the start, overridden by their own', () => {
    const exporter = makeSink();
    const root = startRun({ name: 'root', exporter, tags: ['a'], metadata: { user: 1, team: 'x' } });
    const child = root.child({ name: 'child', tags: ['b', 'a'], metadata: { team: 'y' } });
    child.child({ name: 'grandchild' });
    const [, second, third] = exporter.records();
    expect(second).toMatchObject({ tags: ['a', 'b'], extra: { metadata: { user: 1, team: 'y' } } });
    expect(third).toMatchObject({ tags: ['a', 'b'], extra: { metadata: { user: 1, team: 'y' } } });
    expect(exporter.records()[0]).toMatchObject({ tags: ['a'], extra: { metadata: { user: 1, team: 'x' } } });
  });

  test('neither values set later nor usage', () => {
    const exporter = makeSink();
    const root = startRun({ name: 'root', exporter, metadata: { user: 1 } });
    root.set({ tags: ['late'], metadata: { rows: 3 }, usage: { input_tokens: 1, output_tokens: 2 } });
    const child = root.child({ name: 'child' });
    child.set({ metadata: { own: true } });
    const [first, second] = exporter.records();
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    expect(first?.extra?.metadata).toEqual({ user: 1, rows: 3, usage_metadata: usage });
    expect(second?.extra?.metadata).toEqual({ user: 1, own: true });
    expect(second).not.toHaveProperty('tags');
  });

  test('the project', () => {
    const exporter = makeSink();
    const root = startRun({ name: 'root', exporter });
    const orders = root.child({ name: 'orders', project: 'orders' });
    orders.child({ name: 'order' });
    expect(exporter.records().map((run) => run.session_name)).toEqual(['default', 'orders', 'orders']);
  });

  test('nothing if they start another trace', () => {
    const exporter = makeSink();
    const root = startRun({ name: 'root', exporter, tags: ['a'], metadata: { user: 1 }, project: 'p' });
    withRun(root, () => startRun({ name: 'own', root: true, exporter }));
    const own = exporter.records()[1];
    expect(own).toMatchObject({ trace_id: own?.id, session_name: 'default' });
    expect(own).not.toHaveProperty('tags');
    expect(own?.extra?.metadata).toBeUndefined();
  });
});

test('runs with another exporter inherit nothing, as other people may read them', () => {
  const [here, there] = [makeSink(), makeSink()];
  const root = startRun({ name: 'root', exporter: here, tags: ['internal'], metadata: { tenant: 'a' } });
  const child = withRun(root, () => startRun({ name: 'child', exporter: there, tags: ['own'] }));
  child.child({ name: 'grandchild' });
  withRun(root, () => withExporter(there, () => startRun({ name: 'inside' })));
  expect(there.records().map(({ name, tags }) => [name, tags])).toEqual([
    ['child', ['own']],
    ['grandchild', ['own']],
    ['inside', undefined],
  ]);
  expect(JSON.stringify(there.records())).not.toContain('tenant');
});

describe('withExporter', () => {
  test('applies to runs at any depth, and not to the run around it', async () => {
    const [here, there] = [makeSink(), makeSink()];
    const inner = traceable(async () => 1, { name: 'inner' });
    const step = traceable(async () => inner(), { name: 'step' });
    const outer = traceable(
      async () => {
        await withExporter(there, async () => {
          expect(currentRun()?.name).toBe('outer');
          await step();
        });
        await inner();
      },
      { name: 'outer', exporter: here },
    );
    await outer();
    expect(here.records().map(({ name }) => name)).toEqual(['outer', 'inner']);
    expect(there.records().map(({ name }) => name)).toEqual(['step', 'inner']);
    expect(there.records()[0]?.parent_run_id).toBe(here.records()[0]?.id);
  });

  test('yields to the exporter of a run, and to an inner call', () => {
    const [first, second, third] = [makeSink(), makeSink(), makeSink()];
    withExporter(first, () => {
      startRun({ name: 'own', exporter: second });
      withExporter(third, () => startRun({ name: 'inner' }));
      startRun({ name: 'outer' });
    });
    expect([first, second, third].map((sink) => sink.records()[0]?.name)).toEqual(['outer', 'own', 'inner']);
    expect(withExporter(first, () => currentRun())).toBeUndefined();
  });

  test('applies to new traces too, and records nothing if tracing is off', () => {
    const [here, there] = [makeSink(), makeSink()];
    onTestFinished(overrideSink(here));
    const apart = traceable(() => void startRun({ name: 'below' }), { name: 'apart', root: true });
    const both = (): void => {
      apart();
      startRun({ name: 'by hand', root: true });
    };
    withExporter(there, both);
    withExporter(noopSink, both);
    untraced(both);
    expect(there.records().map(({ name }) => name)).toEqual(['apart', 'below', 'by hand']);
    expect(here.records()).toEqual([]);
  });

  test('without an exporter only calls the function, and logs one line', () => {
    const lines = logLines();
    for (const exporter of [undefined, null, {}, 'x', throwingProxy(['get'])])
      expect(withExporter(exporter as never, () => 1)).toBe(1);
    expect(lines).toHaveLength(1);
  });
});
