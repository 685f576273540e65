/** langsmith: functions wrapped in its `traceable`, background batches. */
import { Client } from 'langsmith';
import { traceable } from 'langsmith/traceable';
import { measure } from '../measure.mjs';

const client = new Client();

await measure({
  wrap: (fn, name, runType) => traceable(fn, { name, run_type: runType, client }),
  flush: () => client.awaitPendingTraceBatches(),
});
