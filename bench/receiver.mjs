#!/usr/bin/env node
/**
 * `npm run bench -- receiver`: how fast each store takes runs, compared with the database engine alone, and how fast it
 * answers the page's queries. `-- --full` measures up to 100,000 runs with 5 KB and 1,000,000 with 600 B.
 * `npm run bench -- ingest` measures the receiver over HTTP.
 */
import { mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { DEFAULT_SCOPE, MemoryStore, parsedQuery, SqliteStore } from 'runspan/receiver';
import { loadEngine } from '../node_modules/.cache/modules/receiver/store/sqlite/file/database.js';
import { openToRead } from '../node_modules/.cache/modules/receiver/store/sqlite/file/file.js';
import { describeMachine } from './machine.mjs';
import { rawInsertSeconds } from './receiver/raw.mjs';
import {
  COMMON_WORD,
  idOf,
  LARGE_TRACE,
  LARGE_TRACE_RUNS,
  largeTraceOf,
  patchOf,
  RARE_WORD,
  RUNS_PER_TRACE,
  requestOf,
  runOf,
  startOf,
  threadOf,
} from './receiver/runs.mjs';
import { median } from './statistics.mjs';
import { textTable } from './text-table.mjs';

const GIB = 1024 ** 3;
/** Disk space per run beside its payloads, including the index. Three files exist at once. */
const ROW_BYTES = 2_500;
const FILES = 3;
/** A memory store keeps everything in one heap. */
const MEMORY_RUNS_MAX = 100_000;
/** Created before the clock starts. */
const RUNS_AT_ONCE = 20_000;
const RUNS_PER_CALL = 100;
const CALLS_AT_ONCE = 4;
const PATCHES = 10_000;
const REPEATS = 7;

const isFull = readIsFull();
const shapes = [
  { name: '5 KB', payloadBytes: 4_400, runs: isFull ? 100_000 : 20_000 },
  { name: '600 B', payloadBytes: 200, runs: isFull ? 1_000_000 : 50_000 },
];
const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
checkDisk();

const machine = describeMachine();
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, load ${machine.loadAtStart.toFixed(1)}\n`);
for (const shape of shapes) {
  console.log(`${shape.runs.toLocaleString('en')} runs of ${shape.name}, ${RUNS_PER_TRACE} to a trace\n`);
  await measureShape(shape);
}

async function measureShape(shape) {
  const file = join(folder, 'runs.db');
  const rows = [];
  const store = await SqliteStore.open(file, { maxBytes: 1e15 });
  const own = await fill(store, shape);
  const indexSeconds = await indexed(file);
  const patchesPerSecond = await patch(store, Math.min(PATCHES, shape.runs));
  // Waits, because each search reads unindexed runs one by one.
  await indexed(file);
  await applyAll(store, largeTraceOf(shape.payloadBytes));
  await indexed(file);
  const answers = await ask(store, shape);
  const removal = await removeLargeTrace(store, shape);
  const rssBytes = process.memoryUsage.rss();
  await store.close();
  const fileBytes = statSync(file).size;

  const raw = await rawInsertSeconds(file, join(folder, 'raw.db'));
  remove('raw.db');
  remove('runs.db');
  const row = (title, { seconds, delay }, beside = raw.rows) => {
    const delays = delay === undefined ? ['', ''] : [`${ms(delay.p99)}`, `${ms(delay.max)}`];
    const rate = shape.runs / seconds;
    rows.push([title, rate.toFixed(0), `${((beside / seconds) * 100).toFixed(0)} %`, ...delays]);
  };
  row('the engine alone, batches of 500', { seconds: raw.rows });
  row('SqliteStore.apply', own);
  const whole = raw.rows + raw.words;
  row('the engine alone, and the words', { seconds: whole }, whole);
  row('SqliteStore, until words are indexed', { seconds: own.seconds + indexSeconds }, whole);
  if (shape.runs <= MEMORY_RUNS_MAX) {
    const limits = { runsMax: shape.runs, bytesMax: 8 * GIB };
    row('MemoryStore.apply', await fill(new MemoryStore(limits), shape));
  }
  const titles = ['taking runs', 'runs/s', 'of the engine', 'loop delay p99', 'max'];
  console.log(`${textTable(titles, rows)}\n`);
  console.log(
    `patches: ${patchesPerSecond.toFixed(0)}/s · words indexed ${indexSeconds.toFixed(1)} s after the last write · ` +
      `file ${(fileBytes / 1e6).toFixed(0)} MB · resident ${(rssBytes / 1e6).toFixed(0)} MB\n`,
  );
  console.log(`${textTable(['asked of SqliteStore', 'median ms', 'max'], answers)}\n`);
  console.log(
    `deleting a trace of ${LARGE_TRACE_RUNS} runs: ${ms(removal.tookMs)}; the longest write beside it ` +
      `${ms(removal.longestMs)}, without it ${ms(removal.usualMs)}\n`,
  );
}

/**
 * Returns the seconds in which a store takes all runs, called like the receiver calls it, and the longest loop delay.
 */
async function fill(store, { runs, payloadBytes }) {
  let seconds = 0;
  const delay = { p99: 0, max: 0 };
  for (let first = 0; first < runs; first += RUNS_AT_ONCE) {
    const count = Math.min(RUNS_AT_ONCE, runs - first);
    const operations = Array.from({ length: count }, (_, at) => runOf(first + at, payloadBytes));
    const measured = await timed(() => applyAll(store, operations));
    seconds += measured.seconds;
    for (const key of ['p99', 'max']) delay[key] = Math.max(delay[key], measured.delay[key]);
  }
  return { seconds, delay };
}

/** Applies runs in several concurrent calls, like requests do. */
async function applyAll(store, operations) {
  const waiting = new Set();
  for (let at = 0; at < operations.length; at += RUNS_PER_CALL) {
    // Starts each call in its own turn, like a request.
    await new Promise((next) => setImmediate(next));
    const applied = store
      .apply(DEFAULT_SCOPE, operations.slice(at, at + RUNS_PER_CALL))
      .finally(() => waiting.delete(applied));
    waiting.add(applied);
    if (waiting.size >= CALLS_AT_ONCE) await Promise.race(waiting);
  }
  await Promise.all(waiting);
}

async function patch(store, patches) {
  const { seconds } = await timed(async () => {
    for (let first = 0; first < patches; first += RUNS_PER_CALL) {
      await store.apply(
        DEFAULT_SCOPE,
        Array.from({ length: RUNS_PER_CALL }, (_, at) => patchOf(first + at)),
      );
    }
  });
  return patches / seconds;
}

/** Resolves when all runs are indexed. */
async function indexed(file) {
  const connection = openToRead(await loadEngine(), file);
  const startedMs = performance.now();
  while (connection.number('SELECT count(*) FROM unindexed') > 0) await new Promise((next) => setTimeout(next, 100));
  connection.close();
  return (performance.now() - startedMs) / 1_000;
}

async function ask(store, { runs }) {
  const last = runs - RUNS_PER_TRACE;
  const traces = (query) => store.traces(DEFAULT_SCOPE, parsedQuery(query));
  const list = (query) => store.list(DEFAULT_SCOPE, parsedQuery(query));
  // The store keeps answers for 2 seconds, so that each query must be another one.
  let groups = 50;
  const statistics = (query) => store.statistics(DEFAULT_SCOPE, parsedQuery({ ...query, groups: groups++ }));
  const page = await traces({});
  const questions = {
    'list of traces, first page': () => traces({}),
    'list of traces, next page': () => traces({ cursor: page.next }),
    'list of traces of a project': () => traces({ project: 'project 1' }),
    'list of runs of a model': () => list({ filter: 'model:gpt-x' }),
    'list of runs that failed': () => list({ filter: 'status:error' }),
    'list of traces of a user': () => traces({ filter: 'user:user-7' }),
    'list of traces of a thread': () => traces({ filter: `thread:${threadOf(0)}` }),
    'list of runs with a rare tag': () => list({ filter: 'tag:rare' }),
    'list of runs with a common tag': () => list({ filter: 'tag:agent' }),
    'list of runs with a rare value of metadata': () => list({ filter: `meta.request=${requestOf(2)}` }),
    'list of runs with a common value of metadata': () => list({ filter: 'meta.environment=production' }),
    'list of runs with a value of metadata that none has': () => list({ filter: 'meta.environment=staging' }),
    'list of threads': () => store.threads(DEFAULT_SCOPE, parsedQuery({})),
    'list of threads of a user': () => store.threads(DEFAULT_SCOPE, parsedQuery({ filter: 'user:user-7' })),
    'list of runs, slowest first': () => list({ sort: 'latency' }),
    'a trace without payloads': () => store.outline(DEFAULT_SCOPE, idOf(last)),
    'a trace of 2,000 runs without payloads': () => store.outline(DEFAULT_SCOPE, idOf(LARGE_TRACE)),
    'a trace with payloads': () => allOf(store.runs(DEFAULT_SCOPE, parsedQuery({ traceId: idOf(last) }))),
    'a payload': () => store.payload(DEFAULT_SCOPE, idOf(last), 'inputs'),
    'search: a rare word': () => list({ filter: RARE_WORD }),
    'search: a word that most have': () => list({ filter: COMMON_WORD }),
    'search: traces, a rare word': () => traces({ filter: RARE_WORD }),
    'percentiles of all runs': () => statistics({}),
    'figures by user': () => statistics({ groupBy: 'user' }),
    'figures by tag': () => statistics({ groupBy: 'tag' }),
    'figures by a key of metadata': () => statistics({ groupBy: 'meta.environment' }),
    'figures by user of the last 5 %': () =>
      statistics({ groupBy: 'user', filter: `since:${startOf(Math.floor(runs * 0.95))}` }),
    'figures by model with a series': () => statistics({ groupBy: 'model', series: 8 }),
    'percentiles of the last 5 %': () => statistics({ filter: `since:${startOf(Math.floor(runs * 0.95))}` }),
  };
  const rows = [];
  for (const [title, question] of Object.entries(questions)) {
    const times = [];
    for (let repeat = 0; repeat < REPEATS; repeat += 1) times.push((await timed(question)).seconds * 1_000);
    rows.push([title, median(times).toFixed(1), Math.max(...times).toFixed(1)]);
  }
  return rows;
}

/** Deletes the large trace while runs are written one by one. */
async function removeLargeTrace(store, { runs, payloadBytes }) {
  let number = runs + LARGE_TRACE_RUNS;
  const longestWhile = async (work) => {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    let longestMs = 0;
    while (!isDone) {
      const { seconds } = await timed(() => store.apply(DEFAULT_SCOPE, [runOf(number++, payloadBytes)]));
      longestMs = Math.max(longestMs, seconds * 1_000);
    }
    await done;
    return longestMs;
  };
  const usualMs = await longestWhile(new Promise((resolve) => setTimeout(resolve, 1_000)));
  let tookMs = 0;
  const removed = timed(async () => {
    await store.remove(DEFAULT_SCOPE, { kind: 'trace', id: idOf(LARGE_TRACE) });
    await store.removed();
  });
  const longestMs = await longestWhile(removed.then(({ seconds }) => (tookMs = seconds * 1_000)));
  return { tookMs, longestMs, usualMs };
}

async function allOf(texts) {
  const all = [];
  for await (const text of texts) all.push(text);
  return all;
}

async function timed(work) {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  const startedMs = performance.now();
  await work();
  const seconds = (performance.now() - startedMs) / 1_000;
  histogram.disable();
  return { seconds, delay: { p99: histogram.percentile(99) / 1e6, max: histogram.max / 1e6 } };
}

function checkDisk() {
  const needed = Math.max(...shapes.map(({ runs, payloadBytes }) => runs * (payloadBytes * 1.5 + ROW_BYTES))) * FILES;
  const { bavail, bsize } = statfsSync(folder);
  console.log(
    `needs up to ${(needed / GIB).toFixed(1)} GiB in ${folder}; ${((bavail * bsize) / GIB).toFixed(0)} are free`,
  );
  if (bavail * bsize > needed) return;
  console.error('bench receiver: there is not enough room; point TMPDIR at a larger disk');
  process.exit(1);
}

function remove(name) {
  for (const end of ['', '-wal', '-shm', '-lock']) rmSync(join(folder, name + end), { force: true });
}

function ms(value) {
  return `${value.toFixed(1)} ms`;
}

function readIsFull() {
  try {
    return parseArgs({ options: { full: { type: 'boolean' } } }).values.full ?? false;
  } catch (error) {
    console.error(`bench receiver: ${error.message.split('. ', 1)[0]}\nusage: npm run bench -- receiver [--full]`);
    return process.exit(2);
  }
}
