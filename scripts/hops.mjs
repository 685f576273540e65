#!/usr/bin/env node
/**
 * `node scripts/hops.mjs [--dist PATH] [--list]`: counts the functions under `--dist` (default `dist`) that a run
 * enters between the call to a `traceable` function and the service's 202, and those for a run whose first request gets
 * a 503.
 *
 * Uses V8's precise coverage, so optimization is off and every call counts. Each case repeats, and each function's
 * lowest count is used, because a timer that fires or a pool that is refilled in one trial is not part of a run's work.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const TRIALS = 7;
const WARMUP_BATCHES = 10;
/** Runs per batch. The cost of a one-run batch is subtracted, which leaves the cost of each further run. */
const RUNS_PER_BATCH = 21;

const { values: options } = parseArgs({
  options: { dist: { type: 'string', default: 'dist' }, list: { type: 'boolean', default: false } },
});
const dist = resolve(options.dist);
const distUrl = `${pathToFileURL(dist).href}/`;

const service = await startService();
process.env.RUNSPAN_ENDPOINT = service.url;
const session = new Session();
session.connect();
await post('Profiler.enable');
// Starts before the import, because a function has a counter only if it is compiled with one.
await post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const { flush, shutdown, traceable } = await import(pathToFileURL(join(dist, 'index.js')).href);
const answer = traceable(async ({ question }) => ({ text: `${question}: 42` }), { name: 'answer' });

for (let batch = 0; batch < WARMUP_BATCHES; batch++) await runBatch(RUNS_PER_BATCH);
const one = await countedCase(1);
const many = await countedCase(RUNS_PER_BATCH);
await runBatch(1, 1);
const retried = await countedCase(1, 1);
await shutdown();
service.close();

console.log(`Node ${process.version}, ${relative(process.cwd(), dist) || '.'}`);
console.table({
  'a run, from the call to the 202': totalsOf(one.total),
  '  by the time the call is over': totalsOf(one.call),
  '  after that, until the 202': totalsOf(one.delivery),
  '  once for each run': totalsOf(perRun(one.total, many.total)),
  '  once for each batch': totalsOf(perBatch(one.total, many.total)),
  'a run whose first request gets a 503': totalsOf(retried.total),
});
if (options.list) {
  const further = perRun(one.total, many.total);
  printList('a run, from the call to the 202', one.total, further);
  printList('only in the run whose first request gets a 503', without(retried.total, one.total));
}

/** Returns the lowest entry count of each function over all trials: during the calls, after them, and in total. */
async function countedCase(runs, refusals = 0) {
  const trials = [];
  for (let trial = 0; trial < TRIALS; trial++) {
    await taken();
    const calls = call(runs);
    await calls;
    const called = await taken();
    await deliver(runs, refusals);
    const delivered = await taken();
    trials.push({ call: called, delivery: delivered, total: sumOf(called, delivered) });
  }
  return Object.fromEntries(
    ['call', 'delivery', 'total'].map((part) => [part, leastOf(trials.map((one) => one[part]))]),
  );
}

async function runBatch(runs, refusals = 0) {
  await call(runs);
  await deliver(runs, refusals);
}

async function call(runs) {
  for (let run = 0; run < runs; run++) await answer({ question: 'six by seven' });
}

async function deliver(runs, refusals) {
  const { accepted, refused } = service;
  service.refusing = refusals;
  await flush();
  const batches = [service.accepted - accepted, service.refused - refused];
  if (batches[0] !== 1 || batches[1] !== refusals) {
    throw new Error(
      `Expected ${runs} runs in 1 batch after ${refusals} refusals, got ${batches[0]} after ${batches[1]}`,
    );
  }
}

/** Returns each function's entries since the last call, by file and text offset: `chunks/run.js:1234`. */
async function taken() {
  const { result } = await post('Profiler.takePreciseCoverage');
  const entries = new Map();
  for (const { url, functions } of result.filter((script) => script.url.startsWith(distUrl))) {
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count }] = ranges;
      // The function at offset 0 is the module itself.
      if (count === 0 || startOffset === 0) continue;
      entries.set(`${url.slice(distUrl.length)}:${startOffset}`, { name: functionName || '(anonymous)', count });
    }
  }
  return entries;
}

function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, value) => (error ? reject(error) : resolve(value)));
  });
}

function sumOf(first, second) {
  const sum = new Map(first);
  for (const [place, { name, count }] of second)
    sum.set(place, { name, count: count + (first.get(place)?.count ?? 0) });
  return sum;
}

function leastOf([first, ...others]) {
  return mapped(first, (place, count) => Math.min(count, ...others.map((one) => one.get(place)?.count ?? 0)));
}

function perRun(one, many) {
  return mapped(many, (place, count) => Math.round((count - (one.get(place)?.count ?? 0)) / (RUNS_PER_BATCH - 1)));
}

function perBatch(one, many) {
  const further = perRun(one, many);
  return mapped(one, (place, count) => count - (further.get(place)?.count ?? 0));
}

function without(entries, others) {
  return mapped(entries, (place, count) => (others.has(place) ? 0 : count));
}

/** Omits functions without entries. */
function mapped(entries, countOf) {
  const counted = [...entries].map(([place, { name, count }]) => [place, { name, count: countOf(place, count) }]);
  return new Map(counted.filter(([, { count }]) => count > 0));
}

function totalsOf(entries) {
  return { functions: entries.size, entries: [...entries.values()].reduce((sum, { count }) => sum + count, 0) };
}

function printList(title, entries, further = new Map()) {
  console.log(`\n${title}: entries, of which for each further run`);
  for (const [file, functions] of groupByFile(entries)) {
    console.log(`${file}: ${functions.length} functions`);
    const text = readFileSync(join(dist, file), 'utf8');
    for (const { place, offset, name, count } of functions) {
      const line = text.slice(0, offset).split('\n').length;
      console.log(
        `  ${String(count).padStart(4)} ${String(further.get(place)?.count ?? 0).padStart(4)}  ${name} (line ${line})`,
      );
    }
  }
}

function groupByFile(entries) {
  const files = new Map();
  for (const [place, { name, count }] of entries) {
    const at = place.lastIndexOf(':');
    const file = place.slice(0, at);
    const functions = files.get(file) ?? [];
    functions.push({ place, offset: Number(place.slice(at + 1)), name, count });
    files.set(file, functions);
  }
  for (const functions of files.values()) functions.sort((one, other) => one.offset - other.offset);
  return files;
}

/** Starts a service that accepts every batch, except that the next `refusing` batches get a 503. */
async function startService() {
  const state = { accepted: 0, refused: 0, refusing: 0 };
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ batch_ingest_config: { use_multipart_endpoint: true, size_limit: 1_000 } }));
      } else if (state.refusing > 0) {
        state.refusing--;
        state.refused++;
        response.writeHead(503).end();
      } else {
        state.accepted++;
        response.writeHead(202).end();
      }
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(state, { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() });
}
