/** OpenTelemetry spans with `RunSpanProcessor` as the only processor. */
import { measureSpans } from '../peers/spans.mjs';
import { givenPlan } from '../plan.mjs';
import { importBuild, QUEUE_ROOM } from './build.mjs';

const { RunSpanProcessor } = await importBuild('otel');
if (givenPlan().hasRoom) (await importBuild('index')).configure({ limits: QUEUE_ROOM });

await measureSpans(new RunSpanProcessor({ shouldExport: 'all' }));
