/** OpenTelemetry spans with its batch processor and its exporter, OTLP as JSON. */
import { measureOtlp } from '../peers/otlp.mjs';

await measureOtlp('json');
