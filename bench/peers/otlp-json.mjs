/** OpenTelemetry spans with its batch processor and its exporter, OTLP as JSON. */
import { measureOtlp } from './otlp.mjs';

await measureOtlp('json');
