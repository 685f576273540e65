/** The same program as `traceable`, with tracing turned off. */
import { configure, flush, traceable } from 'runspan';
import { measure } from '../measure.mjs';

configure({ tracing: false });
await measure({ wrap: (fn, name, runType) => traceable(fn, { name, runType }), flush });
