/** The functions wrapped in `traceable`. Only the settings of the driver and the queue differ from the defaults. */
import { measure } from '../measure.mjs';
import { givenPlan } from '../plan.mjs';
import { importBuild, QUEUE_ROOM } from './build.mjs';

const { configure, flush, stats, traceable } = await importBuild('index');
if (givenPlan().hasRoom) configure({ limits: QUEUE_ROOM });

await measure({
  wrap: (fn, name, runType) => traceable(fn, { name, runType }),
  flush,
  sampledOut: () => stats().sampledOut,
});
