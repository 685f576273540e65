import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace';
import { givenPlan } from '../plan.mjs';
import { measureSpans } from './spans.mjs';

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
  const { BENCH_QUEUE_ROOM } = process.env;
  const maxQueueSize = BENCH_QUEUE_ROOM === undefined ? undefined : Number(BENCH_QUEUE_ROOM);
  const processor = new BatchSpanProcessor({ exporter, maxQueueSize });
  // The processor does not wait for requests in flight.
  await measureSpans(processor, () => exporter.forceFlush());
}
