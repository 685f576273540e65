/** The same program as `traceable`, with tracing turned off. */
import { configure, flush, traceable } from 'runspan';
import { measure } from '../measure.mjs';
import { makeAgent } from '../workload.mjs';

configure({ tracing: false });
await measure({ answer: makeAgent((fn, name, runType) => traceable(fn, { name, runType })), flush });
