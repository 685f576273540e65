// Starts OpenTelemetry's SDK with the instrumentation of node:http. `SPANS` says what becomes of the spans: `runs` of a
// RunSpanProcessor, or `otlp` for the receiver.
import { createRequire } from 'node:module';
import { RunSpanProcessor } from 'runspan/otel';

const isOtlp = process.env.SPANS === 'otlp';
const require = createRequire(new URL(isOtlp ? '../../otel/package.json' : '../package.json', import.meta.url));
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
const { NodeSDK } = require('@opentelemetry/sdk-node');

const sdk = new NodeSDK({
  spanProcessors: [isOtlp ? otlp() : new RunSpanProcessor()],
  resourceDetectors: [],
  instrumentations: [new HttpInstrumentation()],
});
sdk.start();
process.once('beforeExit', () => sdk.shutdown());

function otlp() {
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
  const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
  return new BatchSpanProcessor(new OTLPTraceExporter({ url: `${process.env.RUNSPAN_ENDPOINT}/v1/traces` }));
}
