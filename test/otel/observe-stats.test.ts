// The tests with the real SDK are in test/peers/otel-metrics.test.ts.
import type { Attributes, BatchObservableCallback, Meter, MetricOptions, Observable } from '@opentelemetry/api';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { publish } from '../../src/run/stats.ts';
import { environmentOf } from '../support/environment.ts';
import { ingestServer } from '../support/ingest-server.ts';

interface EventMessages {
  readonly name: string;
  readonly value: number;
  readonly attributes?: Attributes;
}

/** Creates a meter that records its measurements. It has only the methods that `observeStats` calls. */
function makeMeter() {
  const names = new Map<Observable, string>();
  const units: Record<string, string | undefined> = {};
  const recorded: EventMessages[] = [];
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
      record: (value: number, attributes?: Attributes) => recorded.push({ name, value, attributes } as EventMessages),
    }),
    addBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.add(callback),
    removeBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.delete(callback),
  };
  const collect = async (): Promise<EventMessages[]> => {
    const found: EventMessages[] = [];
    const observe = (observable: Observable, value: number, attributes?: Attributes): void =>
      void found.push({ name: names.get(observable) ?? '', value, ...(attributes !== undefined && { attributes }) });
    for (const callback of callbacks) await callback({ observe });
    return found;
  };
  return { meter: meter as unknown as Meter, collect, recorded, units };
}

/** Loads the package anew. */
async function started() {
  vi.resetModules();
  const runspan = { ...(await import('../../src/index.ts')), ...(await import('../../src/otel.ts')) };
  onTestFinished(async () => void (await runspan.shutdown({ timeoutMs: 1 })));
  return runspan;
}

/** Returns the warnings of the newly loaded package. */
async function warningsHere(): Promise<string[]> {
  const lines: string[] = [];
  const { diagnostics } = await import('../../src/base/diagnostics.ts');
  diagnostics.setLog((level, line) => level === 'warn' && lines.push(`${level}: ${line}`));
  onTestFinished(() => diagnostics.setLog('warn'));
  return lines;
}

beforeEach(() => environmentOf());

describe('observeStats', () => {
  test('reports the current stats() at each collection', async () => {
    const server = await ingestServer((_, index) => ({ status: index === 0 ? 202 : 400 }));
    onTestFinished(server.close);
    const { configure, flush, observeStats, startRun, traceable } = await started();
    const { meter, collect } = makeMeter();
    onTestFinished(observeStats({ meter }));
    configure({ endpoint: server.url, log: 'silent', sampler: ({ name }) => name !== 'left out' });
    const call = (name: string) => traceable(() => 1, { name })();
    call('sent');
    await flush();
    call('refused');
    await flush();
    call('left out');
    startRun({ name: 'open' });
    call('waiting');

    const values = await collect();
    expect(values.filter(({ name }) => !name.startsWith('runspan.exporter.backlog'))).toEqual([
      { name: 'runspan.run.started', value: 4, attributes: { 'runspan.run.sampling_result': 'RECORD_AND_SAMPLE' } },
      { name: 'runspan.run.started', value: 1, attributes: { 'runspan.run.sampling_result': 'DROP' } },
      { name: 'runspan.run.live', value: 1 },
      { name: 'runspan.exporter.queue.size', value: 1 },
      { name: 'runspan.exporter.run.inflight', value: 0 },
      { name: 'runspan.exporter.run.spooled', value: 0 },
      { name: 'runspan.exporter.run.recovered', value: 0 },
      { name: 'runspan.exporter.run.exported', value: 1 },
      ...['queue_full', 'too_large', 'rejected', 'expired', 'corrupt', 'closed'].map((reason) => ({
        name: 'runspan.exporter.run.exported',
        value: reason === 'rejected' ? 1 : 0,
        attributes: { 'error.type': reason },
      })),
    ]);
    const [size, age] = values.slice(-2);
    expect(size?.value).toBeGreaterThan(1_000);
    expect(age?.value).toBeLessThan(5);
  });

  test('gives each instrument the unit of the conventions', async () => {
    const { observeStats } = await started();
    const { meter, units } = makeMeter();
    onTestFinished(observeStats({ meter }));

    expect(units).toMatchObject({
      'runspan.run.started': '{run}',
      'runspan.exporter.backlog.size': 'By',
      'runspan.exporter.backlog.age': 's',
    });
  });

  test('records the duration of each request with its service and result', async () => {
    const { observeStats } = await started();
    const { meter, recorded } = makeMeter();
    onTestFinished(observeStats({ meter }));
    const request = { kind: 'multipart', durationMs: 250, runs: 1, bytes: 9, error: undefined, status: 202 } as const;
    publish('runspan:request:end', () => ({ ...request, endpoint: 'https://traces.example' }));
    publish('runspan:request:end', () => ({
      ...request,
      endpoint: 'http://127.0.0.1:4777',
      status: 503,
      error: 'status 503',
    }));
    publish('runspan:request:end', () => ({
      ...request,
      endpoint: 'http://traces.example',
      kind: 'simple',
      status: undefined,
      error: 'connect ECONNREFUSED',
    }));

    const name = 'runspan.exporter.operation.duration';
    const attributes = { 'runspan.ingestion': 'multipart', 'server.address': 'traces.example' };
    expect(recorded).toEqual([
      { name, value: 0.25, attributes: { ...attributes, 'server.port': 443, 'http.response.status_code': 202 } },
      {
        name,
        value: 0.25,
        attributes: {
          ...attributes,
          'server.address': '127.0.0.1',
          'server.port': 4777,
          'http.response.status_code': 503,
          'error.type': '503',
        },
      },
      {
        name,
        value: 0.25,
        attributes: { ...attributes, 'runspan.ingestion': 'simple', 'server.port': 80, 'error.type': '_OTHER' },
      },
    ]);
  });

  test('reports once if it is called twice with the same meter', async () => {
    const { observeStats } = await started();
    const { meter, collect, recorded } = makeMeter();
    const [first, second] = [observeStats({ meter }), observeStats({ meter })];
    onTestFinished(first);

    expect(second).toBe(first);
    expect((await collect()).filter(({ name }) => name === 'runspan.run.live')).toHaveLength(1);
    publishRequest();
    expect(recorded).toHaveLength(1);
  });

  test('stops, and can start again', async () => {
    const { observeStats } = await started();
    const { meter, collect, recorded } = makeMeter();
    observeStats({ meter })();
    publishRequest();
    expect([await collect(), recorded]).toEqual([[], []]);
    onTestFinished(observeStats({ meter }));
    publishRequest();
    expect(recorded).toHaveLength(1);
  });

  test('logs an invalid meter and does not throw', async () => {
    const { observeStats } = await started();
    const lines = await warningsHere();
    observeStats({ meter: 'prometheus' as unknown as Meter })();

    expect(lines).toEqual(['warn: observeStats: expected `meter` to be a meter of OpenTelemetry; left out.']);
  });

  test('logs an error of an instrument and does not throw', async () => {
    const { observeStats } = await started();
    const lines = await warningsHere();
    const { meter } = makeMeter();
    const failing = {
      ...meter,
      createHistogram: () => ({
        record: () => {
          throw new Error('no room');
        },
      }),
    };
    onTestFinished(observeStats({ meter: failing as unknown as Meter }));
    const uncaught: unknown[] = [];
    const note = (error: unknown) => uncaught.push(error);
    process.on('uncaughtException', note);
    onTestFinished(() => void process.off('uncaughtException', note));
    publishRequest();
    await new Promise(setImmediate);

    expect(uncaught).toEqual([]);
    expect(lines).toEqual(['warn: observeStats failed, the application is not affected: no room']);
  });
});

function publishRequest(): void {
  const endpoint = 'http://127.0.0.1:1';
  const load = { kind: 'simple', runs: 1, bytes: 1 } as const;
  publish('runspan:request:end', () => ({ endpoint, ...load, status: 202, error: undefined, durationMs: 1 }));
}
