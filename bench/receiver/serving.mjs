// Runs a receiver in its own process: serving.mjs <ClickHouse URL or file>. Sends its URL to the parent process. On the
// message `settle`, waits until lists and searches show all stored runs. On `end`, closes the store.
import { createReceiver, SqliteStore } from 'runspan/receiver';
import { ClickHouseStore } from '../../node_modules/.cache/modules/receiver/store/clickhouse/clickhouse-store.js';

const [, , location] = process.argv;
const isFile = !location.startsWith('http');
const store = isFile
  ? await SqliteStore.open(location, { maxBytes: 1e15, maxAgeMs: 1e12 })
  : await ClickHouseStore.open(location, { maxAgeMs: 1e12 });
const receiver = await createReceiver({ store });
process.on('message', async (message) => {
  if (message === 'settle') {
    if (isFile) while ((await store.status()).unindexedRuns > 0) await new Promise((next) => setTimeout(next, 50));
    else await store.settled();
    process.send('settled');
  } else {
    await receiver.close();
    await store.close();
    process.disconnect();
  }
});
process.send(receiver.url);
