// Kills a service in the middle of the work and restarts it later. The program keeps working, and in the end every run
// has arrived.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configure, shutdown, stats, traceable } from 'runspan';

const CALLS = 3_000;
const arrived = new Set();
let service = await start(0);

const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-outage-'));
// The queue is small, so that runs are written to disk within a second.
const limits = { queueRuns: 1_000 };
configure({ endpoint: service.url, durability: 'spill', spoolDir, limits });

const work = traceable(async (n) => n * 2, { name: 'work' });
for (let n = 1; n <= CALLS; n++) {
  await work(n);
  if (n % 50 === 0) await new Promise(setImmediate);
  if (n === 1_000) {
    await arrival();
    await kill();
    console.log('the service is killed');
  }
}
const { created, open, queued, inFlight, spooled, sent, dropped } = stats();
console.log(`${created} calls are done, and ${dropped} runs lost; there are some on disk: ${spooled > 0}`);
console.log(`the ledger adds up: ${created === open + queued + inFlight + spooled + sent + dropped}`);

service = await start(new URL(service.url).port);
console.log('the service is back');
const { ok } = await shutdown();
await answered();
const ledger = stats();
console.log(`delivered: ${ok}; ${ledger.sent} sent, ${ledger.dropped} dropped, ${arrived.size} arrived`);

service.child.disconnect();
rmSync(spoolDir, { recursive: true });

async function start(port) {
  const child = fork(fileURLToPath(new URL('service.js', import.meta.url)), [port]);
  const [{ url }] = await once(child, 'message');
  child.on('message', ({ ended = [] }) => {
    for (const id of ended) arrived.add(id);
  });
  return { child, url };
}

async function arrival() {
  while (arrived.size === 0) await once(service.child, 'message');
}

/** Waits until all of the service's reports have arrived. */
async function kill() {
  const gone = Promise.all([once(service.child, 'exit'), once(service.child, 'disconnect')]);
  service.child.kill('SIGKILL');
  await gone;
}

/** Waits until all reports that the service has sent so far have arrived. */
async function answered() {
  service.child.send('?');
  for (;;) {
    const [{ echo }] = await once(service.child, 'message');
    if (echo !== undefined) return;
  }
}
