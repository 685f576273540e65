/** OpenTelemetry spans with `RunSpanProcessor` as the only processor. */
import { measureSpans } from '../peers/spans.mjs';
import { importBuild } from './build.mjs';

const { RunSpanProcessor } = await importBuild('otel');

await measureSpans(new RunSpanProcessor());
