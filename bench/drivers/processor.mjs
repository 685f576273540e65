/** OpenTelemetry spans with `RunSpanProcessor` as the only processor. */
import { configure } from 'runspan';
import { RunSpanProcessor } from 'runspan/otel';
import { givenPlan } from '../plan.mjs';
import { measureSpans } from '../spans.mjs';

configure({ limits: givenPlan().limits });
await measureSpans(new RunSpanProcessor());
