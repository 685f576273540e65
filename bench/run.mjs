#!/usr/bin/env node
/**
 * `npm run bench`: what tracing costs. The drivers run one at a time, each in a process of its own, in rounds that each
 * begin with another driver, all against one sink. Figures are ratios to the hand-made limit before all else: the
 * machine decides the rest.
 */
import { createRequire } from 'node:module';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { installLocked } from '../scripts/install-locked.mjs';
import { readOptions } from './options.mjs';
import { isTraced, runDriver, startSink } from './processes.mjs';
import { besideOtlp, tables, writeResults } from './report.mjs';
import { callPath } from './sections/call-path.mjs';
import { durability } from './sections/durability.mjs';
import { retained } from './sections/retained.mjs';
import { serialize } from './sections/serialize.mjs';
import { summarize } from './summary.mjs';
import { RUNS_PER_TURN } from './workload.mjs';

const SECTION = { 'call-path': callPath, serialize, retained, durability };

/** Until the compiler has been over nearly everything: what it costs once is not the price of a run. */
const WARMUP_TURNS = 5_000;
/** What sends nothing is over in a moment; more turns make its figures as steady as the others. */
const UNSENT_FACTOR = 5;

const { turns, rounds, names, sections } = readOptions(process.argv.slice(2));
const method =
  `${rounds} interleaved rounds of ${turns} turns (${RUNS_PER_TURN} runs each; untraced and off: ${UNSENT_FACTOR} times as many) ` +
  `after ${WARMUP_TURNS} turns to warm up; ` +
  'medians over the rounds; ratios to the limit within each round, and their median';
const machine = {
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  platform: `${process.platform}-${process.arch}`,
  node: process.version,
  v8: process.versions.v8,
  loadAtStart: loadavg()[0],
};
const versions = Object.fromEntries(
  ['runspan', 'undici', '@opentelemetry/api', '@opentelemetry/sdk-trace-base'].map((name) => [name, versionOf(name)]),
);

if (names.some((name) => name.startsWith('otlp'))) installLocked(new URL('peers/', import.meta.url));
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}\n${method}\n`);
const startedAt = new Date();
const sink = await startSink();
const results = [];
for (let round = 0; names.length > 0 && round < rounds; round++) {
  const first = round % names.length;
  const measured = {};
  for (const name of [...names.slice(first), ...names.slice(0, first)]) {
    const ownTurns = isTraced(name) ? turns : turns * UNSENT_FACTOR;
    measured[name] = await runDriver(name, { turns: ownTurns, warmupTurns: WARMUP_TURNS, sink });
  }
  results.push(measured);
}
const measuredSections = {};
for (const name of sections) measuredSections[name] = await SECTION[name](sink);
sink.close();

const rows = names.length === 0 ? [] : summarize(names, results);
const seconds = Math.round((Date.now() - startedAt) / 1_000);
const payloadBytes = rows.find(({ name, complaint }) => isTraced(name) && !complaint)?.payloadBytesPerRun.median;
const file = writeResults({
  startedAt,
  seconds,
  machine,
  versions,
  method,
  turns,
  rounds,
  drivers: rows,
  sections: figuresOf(measuredSections),
});
if (rows.length > 0) console.log(`${tables(rows)}\n`);
const beside = besideOtlp(results);
if (beside !== '') console.log(`${beside}\n`);
for (const { table } of Object.values(measuredSections)) console.log(`${table}\n`);
if (payloadBytes !== undefined)
  console.log(`${Math.round(payloadBytes * RUNS_PER_TURN)} bytes of inputs and outputs per turn`);
console.log(`${seconds} s; ${file}`);
if (rows.some(({ complaint }) => complaint !== undefined)) process.exitCode = 1;

function figuresOf(measured) {
  return Object.fromEntries(Object.entries(measured).map(([name, { figures }]) => [name, figures]));
}

function versionOf(name) {
  try {
    return createRequire(import.meta.url)(`${name}/package.json`).version;
  } catch {
    return undefined;
  }
}
