// The traced program of soak.mjs: node soak-program.mjs <folder> <minutes> <runs per second>. Reports over its IPC channel.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, minutes, runsPerSecond] = process.argv.slice(2);
const { configure, flush, stats, traceable } = await import(pathToFileURL(join(resolve(folder), 'dist/index.js')).href);
configure({ limits: { requestTimeoutMs: 3_000, retryDelayMaxMs: 2_000 }, log: 'error' });

const TURN_RUNS = 3;
const message = { role: 'user', content: 'a question about the weather, '.repeat(10) };
const tool = traceable((n) => ({ done: n, found: ['a', 'b', n] }), { name: 'tool', runType: 'tool' });
const model = traceable(
  async (n, _messages) => {
    await undefined;
    return { done: n, text: message.content };
  },
  { name: 'model', runType: 'llm' },
);
const turn = traceable(
  async (n) => {
    tool(n + 1);
    // A share is open for longer than a batch waits.
    if (n % 50 === 0) await delay(400);
    await model(n + 2, [message, message]);
    return { done: n };
  },
  { name: 'turn' },
);

const warnings = [];
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

let created = 0;
let minute = 0;
let callsUs = [];
const pending = new Set();
const startedMs = Date.now();
const endMs = startedMs + Number(minutes) * 60_000;
for (; Date.now() < endMs; await delay(20)) {
  const due = Math.floor(((Date.now() - startedMs) / 1_000) * Number(runsPerSecond));
  while (created + TURN_RUNS <= due) {
    const beforeNs = process.hrtime.bigint();
    const call = turn(created);
    callsUs.push(Number(process.hrtime.bigint() - beforeNs) / 1_000);
    created += TURN_RUNS;
    pending.add(call);
    void call.then(() => pending.delete(call));
  }
  // A second before the minute is over the service is well, and what waited is delivered.
  if (Date.now() - startedMs > (minute + 1) * 60_000 - 1_000) sample(++minute);
}
await Promise.all(pending);
process.send({ kind: 'recorded' });
const flushed = await flush({ timeoutMs: 120_000 });
const { open, queued, inFlight, sent, dropped, created: counted } = stats();
process.send(
  { kind: 'end', created, flushed, warnings, stats: { created: counted, open, queued, inFlight, sent, dropped } },
  () => process.exit(0),
);

function sample(number) {
  for (let pass = 0; pass < 4; pass++) globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  callsUs.sort((a, b) => a - b);
  const at = (share) => Math.round(callsUs[Math.floor(callsUs.length * share)] ?? 0);
  process.send({
    kind: 'sample',
    minute: number,
    heap: heapUsed + external,
    rss,
    handles: readdirSync('/proc/self/fd').length,
    p50Us: at(0.5),
    p99Us: at(0.99),
    stats: stats(),
  });
  callsUs = [];
}
