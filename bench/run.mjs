#!/usr/bin/env node
/**
 * `npm run bench`: what tracing costs. The drivers run one at a time, each in a process of its own, in rounds that each
 * begin with another driver, all against one sink. Figures are ratios to the hand-made limit before all else: the
 * machine decides the rest.
 */
import { installLocked } from '../scripts/install-locked.mjs';
import { isPeer, turnsOf, warmupTurnsOf } from './drivers.mjs';
import { describeMachine, versionsMeasured } from './machine.mjs';
import { readOptions } from './options.mjs';
import { startSink } from './processes.mjs';
import { besideOtlp, METHOD_NOTES, tables } from './report.mjs';
import { writeLatest } from './results.mjs';
import { runRounds } from './rounds.mjs';
import { callPath } from './sections/call-path.mjs';
import { durability } from './sections/durability.mjs';
import { retained } from './sections/retained.mjs';
import { serialize } from './sections/serialize.mjs';
import { size } from './sections/size.mjs';
import { summarize } from './summary.mjs';
import { agent } from './workloads/agent.mjs';

const SECTION = { 'call-path': callPath, serialize, retained, durability, size };

/** Until the compiler has been over nearly everything: what it costs once is not the price of a run. */
const WARMUP_TURNS = 5_000;

const { turns, rounds, names, sections } = readOptions(process.argv.slice(2));
const method =
  `${rounds} interleaved rounds of ${turns} turns (${agent.runsPerTurn} runs each; slow peers fewer, see the table) ` +
  `after ${WARMUP_TURNS} turns to warm up (slow peers fewer, though a larger part of them); ` +
  'medians over the rounds; ratios to the limit within each round, and their median';
const machine = describeMachine();

if (names.some(isPeer)) installLocked(new URL('peers/', import.meta.url));
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}\n${names.length === 0 ? '' : `${method}\n`}`);
const startedAt = new Date();
const sink = await startSink();
const results = await runRounds(names, rounds, sink, (name) => ({
  plan: { turns: turnsOf(name, turns), warmupTurns: warmupTurnsOf(name, WARMUP_TURNS) },
}));
const measuredSections = {};
for (const name of sections) measuredSections[name] = await SECTION[name](sink);
sink.close();

const rows = names.length === 0 ? [] : summarize(names, results);
const seconds = Math.round((Date.now() - startedAt) / 1_000);
const payloadBytes = rows.find(({ name, complaint }) => name === 'limit' && !complaint)?.payloadBytesPerRun.median;
const file = writeLatest({
  startedAt,
  seconds,
  machine,
  versions: versionsMeasured(),
  method,
  turns,
  rounds,
  drivers: rows,
  sections: Object.fromEntries(Object.entries(measuredSections).map(([name, { figures }]) => [name, figures])),
});
if (rows.length > 0) console.log(`${tables(rows)}\n`);
if (names.some(isPeer)) console.log(`${METHOD_NOTES}\n`);
const beside = besideOtlp(rows, results);
if (beside !== '') console.log(`${beside}\n`);
for (const { table } of Object.values(measuredSections)) console.log(`${table}\n`);
if (payloadBytes !== undefined)
  console.log(`${Math.round(payloadBytes * agent.runsPerTurn)} bytes of inputs and outputs per turn`);
console.log(`${seconds} s; ${file}`);
if (rows.some(({ complaint }) => complaint !== undefined)) process.exitCode = 1;
