/** OpenTelemetry spans with `RunSpanProcessor` as the only processor. */
import { RunSpanProcessor } from 'runspan/otel';
import { measureSpans } from '../peers/spans.mjs';

await measureSpans(new RunSpanProcessor());
