/** OpenTelemetry spans with its batch processor and its exporter, OTLP as protobuf. */
import { measureOtlp } from './otlp.mjs';

await measureOtlp('protobuf');
