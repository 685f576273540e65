/** braintrust: functions wrapped in `wrapTraced`, one logger. */
import { initLogger, wrapTraced } from 'braintrust';
import { measure } from '../measure.mjs';

const TYPES = { chain: 'task', retriever: 'tool', llm: 'llm', tool: 'tool' };

const logger = initLogger({ projectName: 'bench' });

await measure({
  wrap: (fn, name, runType) => wrapTraced(fn, { name, type: TYPES[runType] }),
  flush: () => logger.flush(),
});
