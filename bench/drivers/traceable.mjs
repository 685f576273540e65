/** The functions wrapped in `traceable`, with the default configuration. */
import { measure } from '../measure.mjs';
import { importBuild } from './build.mjs';

const { flush, traceable } = await importBuild('index');

await measure({ wrap: (fn, name, runType) => traceable(fn, { name, runType }), flush });
