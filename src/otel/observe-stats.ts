import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { currentStats, type RequestMessage, type Stats, subscribe } from '../run/stats.ts';
import { type ObserveOptions, oncePerMeter } from './meters.ts';

/**
 * Reports `stats()` and request durations as OpenTelemetry metrics. Metric names start with `runspan.` and follow the
 * conventions for SDKs (see `docs/opentelemetry.md`). Call this function once, after you have set the meter provider.
 * Before that, OpenTelemetry returns a no-op meter. Call the returned function to stop reporting. Never throws.
 */
export function observeStats(options?: ObserveOptions): () => void {
  return start(options);
}

const start = oncePerMeter('observeStats', observe);

function observe(meter: Meter): () => void {
  const readings = instrumentsOf(meter);
  const all = readings.map(([observable]) => observable);
  const report = (result: BatchObservableResult): void => {
    const stats = currentStats();
    if (stats === undefined) return;
    for (const [observable, valuesOf] of readings) {
      for (const [value, attributes] of valuesOf(stats)) result.observe(observable, value, attributes);
    }
  };
  meter.addBatchObservableCallback(report, all);
  const unsubscribe = recordDurations(meter);
  diagnostics.debug('stats are reported to OpenTelemetry');
  return () => {
    unsubscribe();
    meter.removeBatchObservableCallback(report, all);
  };
}

type Values = readonly (readonly [value: number, attributes?: Record<string, string>])[];
type Reading = readonly [Observable, (stats: Stats) => Values];

function instrumentsOf(meter: Meter): readonly Reading[] {
  const counter = (name: string, description: string, valuesOf: (stats: Stats) => Values): Reading => [
    meter.createObservableCounter(name, { unit: '{run}', description }),
    valuesOf,
  ];
  const upDown = (name: string, description: string, read: (stats: Stats) => number, unit = '{run}'): Reading => [
    meter.createObservableUpDownCounter(name, { unit, description }),
    (stats) => [[read(stats)]],
  ];
  const age = 'The age of the oldest run in memory that is not delivered yet.';
  return [
    counter('runspan.run.started', 'The number of created runs.', ({ created, sampledOut }) => [
      [created, { 'runspan.run.sampling_result': 'RECORD_AND_SAMPLE' }],
      [sampledOut, { 'runspan.run.sampling_result': 'DROP' }],
    ]),
    upDown('runspan.run.live', 'The number of recorded runs that have not ended yet.', ({ open }) => open),
    upDown('runspan.exporter.queue.size', 'The number of ended runs that wait to be sent.', ({ queued }) => queued),
    upDown(
      'runspan.exporter.run.inflight',
      'The number of ended runs in requests without a response yet.',
      ({ inFlight }) => inFlight,
    ),
    upDown('runspan.exporter.run.spooled', 'The number of ended runs in the spool on disk.', ({ spooled }) => spooled),
    counter(
      'runspan.exporter.run.recovered',
      'The number of runs recovered from the spool of earlier processes.',
      ({ recovered }) => [[recovered]],
    ),
    counter(
      'runspan.exporter.run.exported',
      'The number of runs that were delivered, or dropped for the reason in error.type.',
      ({ sent, droppedByReason }) => [
        [sent],
        ...Object.entries(droppedByReason).map(([reason, count]) => [count, { 'error.type': reason }] as const),
      ],
    ),
    upDown(
      'runspan.exporter.backlog.size',
      'The size of the runs in memory that are not delivered yet.',
      ({ backlog }) => backlog.bytes,
      'By',
    ),
    [
      meter.createObservableGauge('runspan.exporter.backlog.age', { unit: 's', description: age }),
      ({ backlog }) => [[backlog.oldestMs / 1_000]],
    ],
  ];
}

/** Bucket bounds that the HTTP conventions recommend, in seconds. The last bound is the default request timeout. */
const BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30];

function recordDurations(meter: Meter): () => void {
  const histogram = meter.createHistogram('runspan.exporter.operation.duration', {
    unit: 's',
    description: 'The duration of requests that send runs.',
    advice: { explicitBucketBoundaries: BOUNDS_S },
  });
  return subscribe('runspan:request:end', (message) => {
    // `guard` is needed, because an error in a subscriber would crash the process.
    guard('observeStats', () => histogram.record(message.durationMs / 1_000, attributesOf(message)));
  });
}

function attributesOf({ endpoint, kind, status, error }: RequestMessage): Record<string, string | number> {
  const { hostname, port, protocol } = new URL(endpoint);
  const attributes: Record<string, string | number> = {
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    'runspan.ingestion': kind,
  };
  if (status !== undefined) attributes['http.response.status_code'] = status;
  if (error !== undefined) attributes['error.type'] = status === undefined ? '_OTHER' : String(status);
  return attributes;
}
