/** Times bare and wrapped functions with tracing off. */
import { configure, traceable } from 'runspan';
import { sendAddedTimes } from './added-time.mjs';

configure({ tracing: false });
const sync = (a) => a + 1;
const asynchronous = async (a) => a + 1;
await sendAddedTimes({
  'sync function': [sync, traceable(sync)],
  'async function': [asynchronous, traceable(asynchronous)],
});
