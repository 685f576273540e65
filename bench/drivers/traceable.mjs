/** The functions wrapped in `traceable`, with the default configuration except for `BENCH_SYNC_EVERY_MS`. */
import { measure } from '../measure.mjs';
import { importBuild } from './build.mjs';

const { configure, flush, traceable } = await importBuild('index');
const syncEveryMs = Number(process.env.BENCH_SYNC_EVERY_MS);
if (syncEveryMs > 0) configure({ syncEveryMs });

await measure({ wrap: (fn, name, runType) => traceable(fn, { name, runType }), flush });
