#!/usr/bin/env node
/**
 * `npm run bench -- clickhouse`: what the store in ClickHouse costs for each run, how fast it answers the page's queries and
 * how much disk it uses, with SQLite beside it. ClickHouse runs in a process of its own (see
 * test/peers/clickhouse/shim.mjs). `-- --full` measures 2,000,000 runs. Needs Linux, and Node 22.15: `-- --node 24` uses it.
 */
import { execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import zlib from 'node:zlib';
import { DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
import { ClickHouseStore } from '../node_modules/.cache/modules/receiver/store/clickhouse/clickhouse-store.js';
import { ClickHouse, sql } from '../node_modules/.cache/modules/receiver/store/clickhouse/connection.js';
import { migrate } from '../node_modules/.cache/modules/receiver/store/clickhouse/schema.js';
import { describeMachine } from './machine.mjs';
import { idOf, iso, operationsOf, RARE_WORD, runOf, startOf, WEEK_MS } from './receiver/conversations.mjs';
import { requestOf, threadOf } from './receiver/runs.mjs';
import { median } from './statistics.mjs';
import { textTable } from './text-table.mjs';

const REPEATS = 7;
const LARGE_TRACE = 'a0000000-0000-4000-8000-000000000000';
const LARGE_TRACE_RUNS = 2_000;
/** Runs that are sent before the first measurement, until the functions are compiled. */
const WARM_UP = 5_000;
/** Minimum number of runs between two measurements. */
const STEP_MIN = 20_000;
const SQLITE_RUNS_MAX = 200_000;
/** Runs whose messages are compressed with zstd. */
const SAMPLE = 200_000;
const CPU_TICKS_PER_S = 100;
const SHIM = fileURLToPath(new URL('../test/peers/clickhouse/shim.mjs', import.meta.url));
const SERVING = fileURLToPath(new URL('receiver/serving.mjs', import.meta.url));
const SENDER = fileURLToPath(new URL('receiver/sender.mjs', import.meta.url));

const runs = readRuns();
const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
const machine = describeMachine();
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, load ${machine.loadAtStart.toFixed(1)}`);
console.log(`${count(runs)} runs of ${(runBytes() / 1_000).toFixed(1)} KB\n`);
// No database without its server: the shim ends with this process.
const shim = spawn(process.execPath, [SHIM, join(folder, 'clickhouse')], { stdio: ['pipe', 'pipe', 'inherit'] });
try {
  await measure();
} finally {
  shim.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

async function measure() {
  const [url] = await once(createInterface(shim.stdout), 'line');
  // Merging 2,000,000 runs takes longer than the requests of users may.
  const db = await ClickHouse.connect(url, 'retention');
  await migrate(db);
  const file = join(folder, 'runs.db');
  const rows = [
    ...(await ingest('ClickHouse', url, runs)),
    ...(await ingest('SQLite', file, Math.min(runs, SQLITE_RUNS_MAX))),
  ];
  const titles = ['ingest, until lists show all runs', 'runs/s', 'receiver CPU ms/run', 'ClickHouse CPU ms/run'];
  console.log(`${textTable(titles, rows)}\n`);
  await printDisk(db, file);
  const clickHouse = await ClickHouseStore.open(url, { maxAgeMs: 1e12 });
  const sqlite = await SqliteStore.open(file, { maxBytes: 1e15, maxAgeMs: 1e12 });
  await ask(clickHouse, sqlite);
  await clickHouse.close();
  await sqlite.close();
  await db.close();
}

/** Sends runs to a receiver with a store, in steps. Returns a row for each step, and one that compares the last step. */
async function ingest(name, location, total) {
  const isSqlite = name === 'SQLite';
  const receiver = fork(SERVING, [location]);
  const [url] = await once(receiver, 'message');
  const rows = [];
  const costs = [];
  const steps = Math.max(1, Math.min(10, Math.floor(total / STEP_MIN)));
  const ends = Array.from({ length: steps }, (_, at) => Math.round((total * (at + 1)) / steps));
  let first = Math.min(WARM_UP, Math.floor(total / 4));
  await send(receiver, url, 0, first);
  for (const end of ends) {
    const before = [cpuSeconds(receiver.pid), cpuSeconds(shim.pid)];
    const seconds = await send(receiver, url, first, end);
    const [own, ofShim] = [receiver.pid, shim.pid].map(
      (pid, at) => ((cpuSeconds(pid) - before[at]) * 1_000) / (end - first),
    );
    costs.push([own, ofShim]);
    const shimText = isSqlite ? '' : ofShim.toFixed(3);
    rows.push([`${name}, ${count(end)} runs`, ((end - first) / seconds).toFixed(0), own.toFixed(3), shimText]);
    first = end;
  }
  receiver.send('end');
  await once(receiver, 'exit');
  if (steps === 1) return rows;
  const ratios = costs[0].map((cost, at) => (costs.at(-1)[at] / cost).toFixed(2));
  return [...rows, ['  last step / first step', '', ratios[0], isSqlite ? '' : ratios[1]]];
}

/** Sends runs from a process of its own. Returns the seconds until lists show them. */
async function send(receiver, url, first, end) {
  const args = [SENDER, url, end - first, first, runs];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const sentMs = performance.now();
  receiver.send('settle');
  await once(receiver, 'message');
  return Number(stdout) + (performance.now() - sentMs) / 1_000;
}

async function printDisk(db, file) {
  const tables = await db.rows(
    sql('SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0'),
  );
  for (const { name } of tables) await db.command(sql(`OPTIMIZE TABLE ${name} FINAL`));
  const parts = await db.rows(
    sql(`SELECT table, sum(bytes_on_disk) AS bytes, sum(secondary_indices_compressed_bytes) AS indexes FROM system.parts
      WHERE active AND database = currentDatabase() GROUP BY table ORDER BY bytes DESC`),
  );
  const size = (bytes, ofRuns = runs) => [(bytes / 1e6).toFixed(1), (bytes / ofRuns).toFixed(0)];
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const sampled = Math.min(runs, SAMPLE);
  const { plain, compressed } = await zstdBytes(sampled);
  const zstd = (compressed / sampled) * runs;
  const rows = [
    ['JSON lines', ...size((plain / sampled) * runs), ''],
    ['zstd -3 of the JSON lines, in one stream', ...size(zstd), '1.00'],
    ['ClickHouse, all tables, merged', ...size(bytes), (bytes / zstd).toFixed(2)],
    ...parts
      .slice(0, 3)
      .flatMap((part) => [
        [`  ${part.table}, without indexes`, part.bytes - part.indexes],
        ...(part.indexes < zstd / 100 ? [] : [[`  ${part.table}, indexes of words and others`, part.indexes]]),
      ])
      .map(([title, bytes]) => [title, ...size(bytes), (bytes / zstd).toFixed(2)]),
    ['SQLite', ...size(statSync(file).size, Math.min(runs, SQLITE_RUNS_MAX)), ''],
  ];
  console.log(`${textTable(['disk', 'MB', 'bytes per run', 'of zstd -3'], rows)}\n`);
}

/** Returns the sizes of the messages that were sent for the first runs, as JSON lines. */
async function zstdBytes(sampled) {
  let plain = 0;
  function* lines() {
    for (let at = 0; at <= sampled; at += 100) {
      const block = { first: at, end: Math.min(at + 100, sampled) };
      const text = operationsOf(block, { first: Math.max(0, at - 100), end: at }, runs)
        .map((operation) => `${JSON.stringify(operation)}\n`)
        .join('');
      plain += text.length;
      yield text;
    }
  }
  const zstd = zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_compressionLevel]: 3 } });
  let compressed = 0;
  for await (const chunk of Readable.from(lines()).pipe(zstd)) compressed += chunk.length;
  return { plain, compressed };
}

async function ask(...stores) {
  const traceId = idOf(0, runs);
  const week = { filter: `since:${iso(startOf(0, runs))} before:${iso(startOf(0, runs) + WEEK_MS)}` };
  await storeLargeTrace(stores);
  const traces = (query) => (store) => store.traces(DEFAULT_SCOPE, parsedQuery(query));
  const list = (query) => (store) => store.list(DEFAULT_SCOPE, parsedQuery(query));
  // The store on disk keeps answers for 2 seconds, so that each query must be another one.
  let groups = 50;
  const statistics = (query) => (store) =>
    store.statistics(DEFAULT_SCOPE, parsedQuery({ ...week, ...query, groups: groups++ }));
  const questions = {
    'list of traces': traces({}),
    'list of runs': list({}),
    'traces of a user': traces({ filter: 'user:user-7' }),
    'traces of a thread': traces({ filter: `thread:${threadOf(0)}` }),
    'runs with a common tag': list({ filter: 'tag:agent' }),
    'runs with a rare tag': list({ filter: 'tag:rare' }),
    'runs with a value of metadata': list({ filter: `meta.request=${requestOf(2)}` }),
    'runs that failed': list({ filter: 'status:error' }),
    'slowest runs': list({ sort: 'latency' }),
    threads: (store) => store.threads(DEFAULT_SCOPE, parsedQuery({})),
    'statistics of a week': statistics({}),
    'statistics of a week by user': statistics({ groupBy: 'user' }),
    'a trace': (store) => store.outline(DEFAULT_SCOPE, traceId),
    'a trace of 2,000 runs': (store) => store.outline(DEFAULT_SCOPE, LARGE_TRACE),
    'a rare word': list({ filter: RARE_WORD }),
  };
  const rows = [];
  for (const [title, question] of Object.entries(questions)) {
    const figures = [];
    for (const store of stores) {
      const times = [];
      for (let repeat = 0; repeat < REPEATS; repeat += 1) {
        const startedMs = performance.now();
        await question(store);
        times.push(performance.now() - startedMs);
      }
      figures.push(median(times).toFixed(1), Math.max(...times).toFixed(1));
    }
    rows.push([title, ...figures]);
  }
  const names = `${count(Math.min(runs, SQLITE_RUNS_MAX))} runs in SQLite`;
  console.log(textTable([`ms for a query, ${names}`, 'ClickHouse', 'max', 'SQLite', 'max'], rows));
}

async function storeLargeTrace(stores) {
  const operations = Array.from({ length: LARGE_TRACE_RUNS }, (_, at) => {
    const { dotted_order: _order, parent_run_id: _parent, ...fields } = runOf(at, runs).fields;
    const id = at === 0 ? LARGE_TRACE : LARGE_TRACE.replace(/.{6}$/, `${100_000 + at}`);
    const place = { trace_id: LARGE_TRACE, ...(at > 0 && { parent_run_id: LARGE_TRACE }) };
    return { kind: 'post', id, fields: { ...fields, ...place }, attachments: [] };
  });
  for (const store of stores) await store.apply(DEFAULT_SCOPE, operations);
  await stores[0].settled();
}

/** Returns the mean size of the runs' JSON in bytes, over threads of all lengths. */
function runBytes() {
  const sizes = Array.from({ length: 5_000 }, (_, number) => JSON.stringify(runOf(number, runs)).length);
  return sizes.reduce((sum, size) => sum + size) / sizes.length;
}

/** Returns the CPU time that a process has used. */
function cpuSeconds(pid) {
  const [, , , , , , , , , , , user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(user) + Number(system)) / CPU_TICKS_PER_S;
}

function count(number) {
  return number.toLocaleString('en');
}

function readRuns() {
  if (zlib.createZstdCompress === undefined) {
    console.error(`bench clickhouse: Node ${process.versions.node} lacks zstd: add --node 24`);
    process.exit(2);
  }
  try {
    const { full, runs } = parseArgs({ options: { full: { type: 'boolean' }, runs: { type: 'string' } } }).values;
    return full ? 2_000_000 : Number(runs ?? 20_000);
  } catch (error) {
    console.error(
      `bench clickhouse: ${error.message.split('. ', 1)[0]}\nusage: npm run bench -- clickhouse [--full | --runs N] [--node VERSION]`,
    );
    return process.exit(2);
  }
}
