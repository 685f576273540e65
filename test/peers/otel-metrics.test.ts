// What the SDK of metrics makes of `observeStats`: names, kinds and units as the conventions for SDKs have them
// (https://opentelemetry.io/docs/specs/semconv/otel/sdk-metrics/).
import { expect, test } from 'vitest';
import { runNode, startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { asApplication, asInstalled, packagesFor, snippetWith } from './application.ts';
import { startCollector } from './collector.ts';
import { laterNode } from './later-node.ts';

const PROGRAM = `
import { metrics } from '@opentelemetry/api';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { flush, startRun, traceable } from 'runspan';
import { observeStats } from 'runspan/otel';

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));

const stop = observeStats();
const call = traceable(() => 1, { name: 'call' });
for (let n = 0; n < 3; n++) call();
const open = startRun({ name: 'open' });
await flush();
await reader.forceFlush();
stop();
call();
await reader.forceFlush();

const told = exporter.getMetrics().map(({ scopeMetrics }) =>
  scopeMetrics.flatMap(({ scope, metrics }) =>
    metrics.map(({ descriptor, dataPoints, isMonotonic }) => ({
      scope: scope.name,
      name: descriptor.name,
      unit: descriptor.unit,
      isMonotonic,
      points: dataPoints.map(({ value, attributes }) => [typeof value === 'object' ? value.count : value, attributes]),
    })),
  ),
);
console.log(JSON.stringify(told));
open.end();
`;

interface Metric {
  readonly scope: string;
  readonly name: string;
  readonly unit: string;
  readonly isMonotonic?: boolean;
  readonly points: readonly (readonly [number, Record<string, unknown>])[];
}

test('the SDK collects the ledger and the durations of requests from the global provider', async () => {
  const receiver = await startReceiver();
  const { code, stdout, stderr } = await runNode([asApplication(PROGRAM)], { RUNSPAN_ENDPOINT: receiver.url });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [first = [], second = []] = JSON.parse(stdout) as Metric[][];
  const kinds = first.map(({ name, unit, isMonotonic }) => [name, unit, isMonotonic]);

  expect(new Set(first.map(({ scope }) => scope))).toEqual(new Set(['runspan']));
  expect(kinds).toEqual(
    expect.arrayContaining([
      ['runspan.run.started', '{run}', true],
      ['runspan.run.live', '{run}', false],
      ['runspan.exporter.queue.size', '{run}', false],
      ['runspan.exporter.run.inflight', '{run}', false],
      ['runspan.exporter.run.spooled', '{run}', false],
      ['runspan.exporter.run.recovered', '{run}', true],
      ['runspan.exporter.run.exported', '{run}', true],
      ['runspan.exporter.backlog.size', 'By', false],
      ['runspan.exporter.backlog.age', 's', undefined],
      ['runspan.exporter.operation.duration', 's', undefined],
    ]),
  );
  expect(kinds).toHaveLength(10);
  const pointsOf = (metrics: Metric[], name: string) => metrics.find((metric) => metric.name === name)?.points;
  expect(pointsOf(first, 'runspan.run.live')).toEqual([[1, {}]]);
  expect(pointsOf(first, 'runspan.exporter.run.exported')).toContainEqual([3, {}]);
  const [duration] = pointsOf(first, 'runspan.exporter.operation.duration') ?? [];
  expect(duration?.[1]).toMatchObject({ 'http.response.status_code': 202, 'server.address': '127.0.0.1' });
  // What has been told stays told, and the call after the end is not among it.
  const started = [4, { 'runspan.run.sampling_result': 'RECORD_AND_SAMPLE' }];
  expect([pointsOf(first, 'runspan.run.started')?.[0], pointsOf(second, 'runspan.run.started')?.[0]]).toEqual([
    started,
    started,
  ]);
});

const tool = "import { traceable } from 'runspan'; traceable(() => 1, { name: 'search', runType: 'tool' })();";
const scrape = "console.log(await (await fetch('http://localhost:9464/metrics')).text()); process.exit();";
const send = 'await metrics.getMeterProvider().forceFlush();';

test.each([
  ['2', 'PrometheusExporter()', scrape],
  ['3', 'PrometheusExporter()', scrape],
  ['2', 'OTLPMetricExporter()', send],
  ['3', 'OTLPMetricExporter()', send],
])('with SDK %s, the printed set-up with new %s exports the runs', async (line, printed, program) => {
  const { url, bodies } = await startCollector();
  const snippet = snippetWith(printed);
  const code = `${snippet.code}${tool}${program}`;
  const later = [laterNode(), asInstalled(code, packagesFor(snippet))];
  const command = line === '2' ? [process.execPath, asApplication(code)] : later;
  const variables = { RUNSPAN_ENDPOINT: url, OTEL_EXPORTER_OTLP_ENDPOINT: url, RUNSPAN_LOG: 'silent' };
  const { stdout, stderr } = await startProgram(command, variables).ended;
  expect(stderr).toBe('');
  const exported = program === scrape ? stdout : bodies('/v1/metrics').join();
  expect(exported).toMatch(/"gen_ai.execute_tool.duration"|^gen_ai_execute_tool_duration_count\{.*"search".*\} 1$/m);
});
