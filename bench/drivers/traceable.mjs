/** The functions wrapped in `traceable`, in the default configuration, but for limits where the plan is about them. */
import { flush, traceable } from 'runspan';
import { measure } from '../measure.mjs';

await measure({ wrap: (fn, name, runType) => traceable(fn, { name, runType }), flush });
