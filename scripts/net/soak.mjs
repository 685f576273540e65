#!/usr/bin/env node
// A program under steady load, beside a service that flaps: node scripts/net/soak.mjs --minutes 60 [--node <file>].
// Prints a line each minute and a verdict; the exit code is 1 if runs were lost or memory, handles or calls grew.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';

const MIB = 1024 * 1024;
/** The medians of the last third of the samples over those of the first. */
const HEAP_GROWTH_MAX = 4 * MIB;
const HANDLES_GROWTH_MAX = 4;
const CALL_GROWTH_MAX = 3;
/** Runs waiting when a sample of memory counts. */
const CALM_RUNS = 500;

/** Each minute has two kinds of trouble by turns; the service is well after each, and when the minute ends. */
const TROUBLES = ['503', 'reset', 'hang', 'slow', '429', '503', 'slow', 'reset'];
const WELL_FROM_TO_SECONDS = [
  [0, 5],
  [20, 30],
  [45, 60],
];
/** For how many seconds of a minute the key is refused; minutes repeat after ten. The probes then take up to 2.5 minutes. */
const REFUSED_SECONDS = { 2: 20, 7: 60 };

const { values: given } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    node: { type: 'string', default: process.execPath },
    candidate: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    'runs-per-second': { type: 'string', default: '100' },
  },
});
const minutes = Number(given.minutes);
const startedMs = Date.now();
const ended = new Uint8Array(minutes * 61 * Number(given['runs-per-second']) + 10_000);
const seen = { requests: 0, statuses: {} };
let isOver = false;

const server = createServer(answer).listen(0, '127.0.0.1');
await once(server, 'listening');
const program = fork(
  fileURLToPath(new URL('soak-program.mjs', import.meta.url)),
  [given.candidate, `${minutes}`, given['runs-per-second']],
  {
    execPath: given.node,
    execArgv: ['--expose-gc'],
    env: { ...process.env, RUNSPAN_ENDPOINT: `http://127.0.0.1:${server.address().port}`, RUNSPAN_API_KEY: 'key' },
  },
);
const samples = [];
let end;
program.on('message', (message) => {
  if (message.kind === 'sample') samples.push(shown(message));
  else if (message.kind === 'recorded') isOver = true;
  else end = message;
});
const [code] = await once(program, 'exit');
server.closeAllConnections();
server.close();
process.exitCode = verdict(code) ? 0 : 1;

/** What the service does at a moment. */
function mood() {
  const second = ((Date.now() - startedMs) / 1_000) % 60;
  const minute = Math.floor((Date.now() - startedMs) / 60_000);
  if (isOver) return 'well';
  if (second < REFUSED_SECONDS[(minute + 1) % 10]) return '401';
  if (WELL_FROM_TO_SECONDS.some(([from, to]) => second >= from && second < to)) return 'well';
  return TROUBLES[(2 * minute + (second > 30 ? 1 : 0)) % TROUBLES.length];
}

async function answer(request, response) {
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return;
  }
  if (request.url === '/info') return response.writeHead(404).end();
  const now = mood();
  seen.requests++;
  seen.statuses[now] = (seen.statuses[now] ?? 0) + 1;
  if (now === 'reset') return request.socket.resetAndDestroy();
  if (now === 'hang') return;
  if (now === 'slow') await new Promise((done) => setTimeout(done, 800));
  if (/^\d+$/.test(now)) return response.writeHead(Number(now), now === '429' ? { 'retry-after': '2' } : {}).end('{}');
  const raw = Buffer.concat(chunks);
  const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
  for (const [, n] of body.toString('latin1').matchAll(/"done":(\d+)/g)) ended[Number(n)] = 1;
  response.writeHead(202).end('{}');
}

function shown(sample) {
  const { minute, heap, rss, handles, p50Us, p99Us, stats } = sample;
  const mib = (bytes) => (bytes / MIB).toFixed(1).padStart(6);
  const ledger = `created ${stats.created}, sent ${stats.sent}, waiting ${stats.queued + stats.inFlight}, dropped ${stats.dropped}`;
  console.log(
    `minute ${minute}: heap ${mib(heap)} MiB, rss ${mib(rss)}, handles ${handles}, call ${p50Us} µs, p99 ${p99Us}; ${ledger}`,
  );
  return sample;
}

function verdict(exitCode) {
  const { created = 0, flushed, stats, warnings } = end ?? {};
  const arrived = ended.reduce((sum, each) => sum + each, 0);
  const facts = [
    ['the program ended with 0', exitCode === 0, exitCode],
    ['Node printed no warning', warnings?.length === 0, JSON.stringify(warnings)],
    ['the last flush was complete', flushed?.ok === true, JSON.stringify(flushed)],
    ['every run has arrived with its end', arrived === created && created > 0, `${arrived} of ${created}`],
    ['the ledger says so too', stats?.sent === stats?.created && stats?.dropped === 0, JSON.stringify(stats)],
    ['the ledger added up in every sample', samples.every(({ stats }) => addsUp(stats)), samples.length],
    ['the heap is flat', growth('heap') <= HEAP_GROWTH_MAX, `${(growth('heap') / MIB).toFixed(2)} MiB`],
    ['handles are flat', growth('handles') <= HANDLES_GROWTH_MAX, growth('handles')],
    [
      'calls do not get slower',
      growth('p50Us') <= Math.max(5, CALL_GROWTH_MAX * first('p50Us')),
      `${growth('p50Us')} µs`,
    ],
  ];
  console.log(`${seen.requests} requests: ${JSON.stringify(seen.statuses)}`);
  for (const [fact, holds, figure] of facts) console.log(`${holds ? 'yes' : 'NO '} ${fact}: ${figure}`);
  return facts.every(([, holds]) => holds);
}

function addsUp({ created, recovered, open, queued, inFlight, spooled, sent, dropped }) {
  return created + recovered === open + queued + inFlight + spooled + sent + dropped;
}

/** The median of the first or the last third of the samples that were taken with nothing waiting. */
function third(name, isLast) {
  const calm = samples.filter(({ stats }) => stats.queued + stats.inFlight < CALM_RUNS);
  // The first minute fills what is bounded.
  const figures = calm.slice(calm.length > 3 ? 1 : 0).map((sample) => sample[name]);
  const count = Math.max(1, Math.floor(figures.length / 3));
  const chosen = (isLast ? figures.slice(-count) : figures.slice(0, count)).sort((a, b) => a - b);
  return chosen[Math.floor(chosen.length / 2)] ?? Number.NaN;
}

function first(name) {
  return third(name, false);
}

function growth(name) {
  return third(name, true) - first(name);
}
