/** The program without tracing: what the others are to be compared with before all else. */
import { measure } from '../measure.mjs';

await measure({ wrap: (fn) => fn, flush: async () => {} });
