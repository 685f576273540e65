/** The three functions wrapped in `traceable`, in the default configuration. */
import { flush, traceable } from 'runspan';
import { measure } from '../measure.mjs';
import { makeAgent } from '../workload.mjs';

await measure({ answer: makeAgent((fn, name, runType) => traceable(fn, { name, runType })), flush });
