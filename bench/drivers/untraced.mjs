/** The program without tracing, to which all others are compared. */
import { measure } from '../measure.mjs';

await measure({ wrap: (fn) => fn, flush: async () => {} });
