// The tests with the real SDK are in test/peers/otel-metrics.test.ts.

import type { Attributes, BatchObservableCallback, Meter, MetricOptions, Observable } from '@opentelemetry/api';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { publish } from '#src/run/stats.ts';
import { environmentOf } from '../support/environment.ts';
import { forgetPackage } from '../support/fresh-copy.ts';
import { ingestServerInTest } from '../support/ingest-server.ts';

interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly attributes?: Attributes;
}

/** Creates a meter that records its measurements. It has only the methods that `observeStats` calls. */
function makeMeter(record?: () => never) {
  const names = new Map<Observable, string>();
  const units: Record<string, string | undefined> = {};
  const recorded: Measurement[] = [];
  const callbacks = new Set<BatchObservableCallback>();
  const instrument = (name: string, options?: MetricOptions): Observable => {
    const observable = {} as Observable;
    names.set(observable, name);
    units[name] = options?.unit;
    return observable;
  };
  const meter = {
    createObservableCounter: instrument,
    createObservableUpDownCounter: instrument,
    createObservableGauge: instrument,
    createHistogram: (name: string) => ({
      record: record ?? ((value: number, attributes: Attributes) => recorded.push({ name, value, attributes })),
    }),
    addBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.add(callback),
    removeBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.delete(callback),
  };
  const collect = async (): Promise<Measurement[]> => {
    const found: Measurement[] = [];
    const observe = (observable: Observable, value: number, attributes?: Attributes): void =>
      void found.push({ name: names.get(observable) ?? '', value, ...(attributes !== undefined && { attributes }) });
    for (const callback of callbacks) await callback({ observe });
    return found;
  };
  return { meter: meter as unknown as Meter, collect, recorded, units };
}

/** Loads the package anew, and returns its warnings too. */
async function started() {
  forgetPackage();
  const runspan = { ...(await import('#src/index.ts')), ...(await import('#src/otel.ts')) };
  const { diagnostics } = await import('#src/base/diagnostics.ts');
  const lines: string[] = [];
  diagnostics.setLog((level, line) => level === 'warn' && lines.push(line));
  onTestFinished(async () => {
    await runspan.shutdown({ timeoutMs: 1 });
    diagnostics.setLog('warn');
  });
  return { ...runspan, lines };
}

function publishRequest(
  fields: { endpoint?: string; kind?: 'simple'; status?: number | undefined; error?: string } = {},
) {
  const request = { endpoint: 'http://127.0.0.1:1', kind: 'multipart', durationMs: 250, runs: 1, bytes: 9 } as const;
  publish('runspan:request:end', () => ({ ...request, status: 202, error: undefined, ...fields }));
}

beforeEach(() => environmentOf());

test('observeStats reports the current stats() at each collection, with units', async () => {
  const server = await ingestServerInTest(({ body }) => ({ status: body.includes('"refused"') ? 400 : 202 }));
  const { configure, flush, observeStats, startRun, stats, traceable } = await started();
  const { meter, collect, units } = makeMeter();
  onTestFinished(observeStats({ meter }));
  configure({ endpoint: server.url, log: 'silent', sampler: ({ name }) => name !== 'left out' });
  const call = (name: string) => traceable(() => 1, { name })();
  call('refused');
  // A run is rejected if the service accepts others after each of its failures.
  while (stats().dropped === 0) {
    call('sent');
    await flush({ timeoutMs: 50 });
  }
  await flush();
  const { created, sent } = stats();
  call('left out');
  startRun({ name: 'open' });
  call('waiting');

  const values = await collect();
  const sampling = (result: string) => ({ attributes: { 'runspan.run.sampling_result': result } });
  expect(values.filter(({ name }) => !name.startsWith('runspan.exporter.backlog'))).toEqual([
    { name: 'runspan.run.started', value: created + 2, ...sampling('RECORD_AND_SAMPLE') },
    { name: 'runspan.run.started', value: 1, ...sampling('DROP') },
    { name: 'runspan.run.live', value: 1 },
    { name: 'runspan.exporter.queue.size', value: 1 },
    { name: 'runspan.exporter.run.inflight', value: 0 },
    { name: 'runspan.exporter.run.spooled', value: 0 },
    { name: 'runspan.exporter.run.recovered', value: 0 },
    { name: 'runspan.exporter.run.exported', value: sent },
    ...['queue_full', 'too_large', 'rejected', 'repeated', 'expired', 'corrupt', 'closed'].map((reason) => ({
      name: 'runspan.exporter.run.exported',
      value: reason === 'rejected' ? 1 : 0,
      attributes: { 'error.type': reason },
    })),
  ]);
  const [size, age] = values.slice(-2);
  expect(size?.value).toBeGreaterThan(1_000);
  expect(age?.value).toBeLessThan(5);
  expect(units).toMatchObject({
    'runspan.run.started': '{run}',
    'runspan.exporter.backlog.size': 'By',
    'runspan.exporter.backlog.age': 's',
  });
});

const host = { 'runspan.ingestion': 'multipart', 'server.address': 'traces.example' };
const local = { ...host, 'server.address': '127.0.0.1', 'server.port': 4777 };

test.each<[string, Parameters<typeof publishRequest>[0], Attributes]>([
  [
    'a success',
    { endpoint: 'https://traces.example' },
    { ...host, 'server.port': 443, 'http.response.status_code': 202 },
  ],
  [
    'a rejection',
    { endpoint: 'http://127.0.0.1:4777', status: 503, error: 'status 503' },
    { ...local, 'http.response.status_code': 503, 'error.type': '503' },
  ],
  [
    'a failure',
    { endpoint: 'http://traces.example', kind: 'simple', status: undefined, error: 'connect ECONNREFUSED' },
    { ...host, 'runspan.ingestion': 'simple', 'server.port': 80, 'error.type': '_OTHER' },
  ],
])('observeStats records the duration of a request that is %s', async (_, request, attributes) => {
  const { observeStats } = await started();
  const { meter, recorded } = makeMeter();
  onTestFinished(observeStats({ meter }));
  publishRequest(request);
  expect(recorded).toEqual([{ name: 'runspan.exporter.operation.duration', value: 0.25, attributes }]);
});

test('observeStats reports once per meter, stops, and can start again', async () => {
  const { observeStats } = await started();
  const { meter, collect, recorded } = makeMeter();
  const [first, second] = [observeStats({ meter }), observeStats({ meter })];
  expect(second).toBe(first);
  expect((await collect()).filter(({ name }) => name === 'runspan.run.live')).toHaveLength(1);
  publishRequest();
  first();
  publishRequest();
  expect([await collect(), recorded.length]).toEqual([[], 1]);
  onTestFinished(observeStats({ meter }));
  publishRequest();
  expect(recorded).toHaveLength(2);
});

test('observeStats logs an invalid meter or an error of an instrument, and does not throw', async () => {
  const { observeStats, lines } = await started();
  observeStats({ meter: 'prometheus' as unknown as Meter })();
  const { meter } = makeMeter(() => {
    throw new Error('no room');
  });
  onTestFinished(observeStats({ meter }));
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  publishRequest();
  await new Promise(setImmediate);
  expect(uncaught).toEqual([]);
  expect(lines).toEqual([
    'observeStats: expected `meter` to be a meter of OpenTelemetry; the option is ignored.',
    'observeStats failed, the application is not affected: no room',
  ]);
});
