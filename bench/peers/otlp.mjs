import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace';
import { givenPlan } from '../plan.mjs';
import { measureSpans } from './spans.mjs';

const EXPORTERS = { json: JsonExporter, protobuf: ProtobufExporter };

/** OpenTelemetry's batch processor and OTLP exporter. Only their queue sizes differ from the defaults. */
export async function measureOtlp(encoding) {
  const exporter = new EXPORTERS[encoding]({
    url: `${process.env.BENCH_URL}/v1/traces`,
    // By default, a flush drops requests beyond 30.
    concurrencyLimit: 10_000,
    compression: givenPlan().encoding ?? 'none',
  });
  const { BENCH_QUEUE_ROOM } = process.env;
  const maxQueueSize = BENCH_QUEUE_ROOM === undefined ? undefined : Number(BENCH_QUEUE_ROOM);
  const processor = new BatchSpanProcessor({ exporter, maxQueueSize });
  // The processor does not wait for requests in flight.
  await measureSpans(processor, () => exporter.forceFlush());
}
