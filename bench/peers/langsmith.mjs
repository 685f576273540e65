/** The functions traced by langsmith: functions wrapped in its `traceable`, batches in the background. */
import { Client } from 'langsmith';
import { traceable } from 'langsmith/traceable';
import { measure } from '../measure.mjs';

const client = new Client();

await measure({
  wrap: (fn, name, runType) => traceable(fn, { name, run_type: runType, client }),
  flush: () => client.awaitPendingTraceBatches(),
});
