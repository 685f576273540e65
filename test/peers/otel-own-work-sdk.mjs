// Starts the SDK of OpenTelemetry with all instrumentations, and notes the names of all spans. With the environment
// PROCESSOR=ours, also records all spans as runs.
import { createRequire } from 'node:module';

const require = createRequire(new URL('./today/package.json', import.meta.url));
const { getNodeAutoInstrumentations } = require('@opentelemetry/auto-instrumentations-node');
const { NodeSDK } = require('@opentelemetry/sdk-node');

const spans = [];
globalThis.spansOfProgram = spans;
const noting = {
  onStart: ({ name }) => void spans.push(name),
  onEnd() {},
  forceFlush: async () => {},
  shutdown: async () => {},
};
const ours =
  process.env.PROCESSOR === 'ours'
    ? [new (await import('runspan/otel')).RunSpanProcessor({ shouldExport: 'all' })]
    : [];
const enabled = ['dns', 'fs', 'net'];
new NodeSDK({
  spanProcessors: [...ours, noting],
  metricReaders: [],
  logRecordProcessors: [],
  resourceDetectors: [],
  instrumentations: getNodeAutoInstrumentations(
    Object.fromEntries(enabled.map((name) => [`@opentelemetry/instrumentation-${name}`, { enabled: true }])),
  ),
}).start();
