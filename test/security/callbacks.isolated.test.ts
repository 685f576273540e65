import { ROOT_CONTEXT } from '@opentelemetry/api';
import { describe, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { type ConfigureOptions, configure, createExporter, redact, startRun, traceable } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { addsUp } from '../support/adds-up.ts';
import { bareSpan } from '../support/bare-span.ts';
import { tune } from '../support/environment.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { service } from './service.ts';

type Callback = (...args: unknown[]) => unknown;

const throws = (thrown: unknown) => (): never => {
  throw thrown;
};
const rejects = async (): Promise<never> => throws(new Error('late'))();

const WAYS: readonly (readonly [string, () => Callback])[] = [
  ['throws', () => throws(new Error('broken'))],
  ['throws null', () => throws(null)],
  ['rejects', () => rejects],
  ['returns a promise that stays pending', () => () => new Promise(() => {})],
  ['returns a value that cannot be read', () => () => new Proxy({}, { get: throws(new Error('trap')) })],
  ['is traced', () => traceable(() => 'traced', { name: 'callback' })],
  ['is traced and rejects', () => traceable(rejects, { name: 'callback' })],
];

/** Runs an application with these options. It must receive its results, and each run must end. */
async function useOf(options: ConfigureOptions, status = 202): Promise<{ bodies: string; lines: readonly string[] }> {
  const { lines, server } = await service(() => ({ status }));
  tune({ retryDelayMs: 1 });
  const exporter = configure({ endpoint: server.url, ...options });
  const ask = traceable(async (question: object) => ({ answer: question }), { name: 'ask' });
  const list = traceable(
    function* list() {
      yield* [1, 2];
    },
    { name: 'list' },
  );
  const question = { secret: 'canary', text: 'shown' };
  expect(await ask(question)).toEqual({ answer: question });
  expect([...list()]).toEqual([1, 2]);
  expect(traceable(throws(new RangeError('mine')))).toThrow(RangeError);
  const isAccepted = status === 202;
  const { ok } = await exporter.close({ timeoutMs: isAccepted ? 5_000 : 50 });
  expect(ok).toBe(isAccepted);
  const left = exporter.stats();
  expect(addsUp(left) && left.open + left.queued + left.inFlight === 0).toBe(true);
  // A callback must not cause an endless number of runs.
  expect(left.created).toBeLessThan(30);
  const bodies = server.received.map(({ body }) => body.toString()).join('\n');
  expect(bodies).not.toContain('"name":"callback"');
  return { bodies, lines };
}

describe.each(WAYS)('a callback that %s', (_, make) => {
  test('does not affect the application as `onDrop`', async () => {
    const onDrop = vi.fn(make());
    await useOf({ onDrop: onDrop as never }, 400);
    expect(onDrop).toHaveBeenCalled();
  });

  test('leaves the decision to `sampleRate` as `sampler`', async () => {
    const sampler = vi.fn(make());
    const { bodies } = await useOf({ sampler: sampler as never });
    expect(sampler).toHaveBeenCalled();
    for (const name of ['ask', 'list']) expect(bodies).toContain(`"name":"${name}"`);
  });

  test('hides the whole field as `replace` of a redaction', async () => {
    const replace = vi.fn(make());
    const { bodies } = await useOf({ redact: redact({ patterns: [/canary/], replace: replace as never }) });
    expect(replace).toHaveBeenCalled();
    expect(bodies).toContain('"name":"ask"');
    expect(bodies).not.toContain('canary');
  });

  test('is recorded as a marker as `inputs`, `outputs` or `aggregate`, and the run is delivered', async () => {
    const { server } = await service();
    const exporter = createExporter({ endpoint: server.url });
    const callback = make();
    const ask = traceable(async (value: unknown) => value, {
      name: 'ask',
      exporter,
      inputs: callback as never,
      outputs: callback as never,
    });
    const list = traceable(
      function* list() {
        yield* [1, 2];
      },
      { name: 'list', exporter, aggregate: callback as never },
    );
    expect([await ask('canary'), [...list()]]).toEqual(['canary', [1, 2]]);
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
    const parts = server.received.flatMap((request) => [...readJsonParts(request).values()]);
    expect(parts.map(({ name }) => name)).toEqual(expect.arrayContaining(['ask', 'list']));
    expect(JSON.stringify(parts)).not.toContain('canary');
  });

  test('keeps or skips spans as `shouldExport`, and the processor does not throw', async () => {
    const { server } = await service();
    const sink = createExporter({ endpoint: server.url });
    const processor = new RunSpanProcessor({ exporter: sink, shouldExport: make() as never });
    const span = bareSpan('span', { traceId: '1'.repeat(32), spanId: '1'.repeat(16) }) as never;
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    await processor.shutdown();
    expect(await sink.close()).toEqual({ ok: true, pending: 0 });
  });

  test('receives lines as `log`, but none about its own errors', async () => {
    const log = vi.fn(make());
    await useOf({ log: log as never }, 400);
    expect(log).toHaveBeenCalled();
    expect(log.mock.calls.length).toBeLessThan(30);
    diagnostics.setLog('warn');
  });
});

test('a `log` that records a run for each line does not loop if the delivery fails', async () => {
  const { server } = await service(() => ({ status: 410 }));
  const log = vi.fn((level: string, line: string) => {
    startRun({ name: 'line', inputs: { level, line }, unknown: line } as never).end();
  });
  const exporter = configure({ endpoint: server.url, log });
  for (let round = 0; round < 20; round++) {
    startRun({ name: 'a' }).end();
    await exporter.flush({ timeoutMs: 20 });
  }
  await exporter.close({ timeoutMs: 20 });
  expect(log).toHaveBeenCalled();
  expect(log.mock.calls.length).toBeLessThan(30);
  expect(exporter.stats().created).toBeLessThan(60);
});

test('a console that throws or is traced loses only the line', async () => {
  for (const make of WAYS.map(([, each]) => each)) {
    const { server } = await service(() => ({ status: 400 }));
    const error = vi.spyOn(console, 'error').mockImplementation(make() as never);
    const exporter = configure({ endpoint: server.url, log: 'debug' });
    expect(traceable((value: number) => value + 1)(1)).toBe(2);
    expect(await exporter.close({ timeoutMs: 50 })).toEqual({ ok: false, pending: 1 });
    expect(error).toHaveBeenCalled();
    expect(error.mock.calls.length).toBeLessThan(30);
    error.mockRestore();
    diagnostics.setLog('warn');
  }
});
