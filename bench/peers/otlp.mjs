import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { givenPlan } from '../plan.mjs';
import { measureSpans } from '../spans.mjs';

const EXPORTERS = { json: JsonExporter, protobuf: ProtobufExporter };

/**
 * The same spans with OpenTelemetry's batch processor and its exporter for OTLP over HTTP, all settings the default ones but
 * for the room in the queues of processor and exporter.
 */
export async function measureOtlp(encoding) {
  const exporter = new EXPORTERS[encoding]({
    url: `${process.env.BENCH_URL}/v1/traces`,
    // Else what waits when all is flushed would be dropped beyond 30 requests.
    concurrencyLimit: 10_000,
    compression: givenPlan().takesGzip ? 'gzip' : 'none',
  });
  const processor = new BatchSpanProcessor(exporter);
  // The processor does not wait for what is on its way.
  await measureSpans(processor, () => exporter.forceFlush());
}
