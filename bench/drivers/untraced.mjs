/** The program without tracing: what the others are to be compared with before all else. */
import { measure } from '../measure.mjs';
import { makeAgent } from '../workload.mjs';

await measure({ answer: makeAgent((fn) => fn), flush: async () => {} });
