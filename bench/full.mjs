#!/usr/bin/env node
/**
 * `npm run bench:full`: every cell, one after the other, each with a file of its own under `results/`. A cell that has been
 * measured as it is defined, of the same versions, is not run again, so that what was interrupted goes on where it was; `--fresh`
 * runs it all the same. `npm run bench:page` makes the page of the files.
 */
import { installLocked } from '../scripts/install-locked.mjs';
import { CELLS } from './cells/cells.mjs';
import { atLeastOne, isPeer } from './drivers.mjs';
import { describeMachine, versionsMeasured } from './machine.mjs';
import { readFullOptions } from './options.mjs';
import { startSink } from './processes.mjs';
import { tables } from './report.mjs';
import { isFinished, writeCell } from './results.mjs';
import { runRounds } from './rounds.mjs';
import { summarize } from './summary.mjs';

const names = CELLS.map(({ name }) => name);
const { only, isFresh, share } = readFullOptions(process.argv.slice(2), names);
const versions = versionsMeasured();
const chosen = CELLS.filter(({ name }) => only.includes(name));
const { cpu, cores, node } = describeMachine();

console.log(`${cpu}, ${cores} cores, Node ${node}${share < 1 ? `; a try with ${100 * share} % of the turns` : ''}`);
if (chosen.some(({ drivers }) => drivers?.some(isPeer))) installLocked(new URL('peers/', import.meta.url));
const sink = await startSink();
for (const [at, cell] of chosen.entries()) {
  if (
    !isFresh &&
    isFinished(cell.name, { definition: definitionOf(cell), machine: { cpu, cores, node }, versions, share })
  ) {
    console.log(`${cell.name}: was finished before; --fresh runs it again`);
    continue;
  }
  console.log(`${cell.name}, ${at + 1} of ${chosen.length} …`);
  await runCell(cell);
}
sink.close();

async function runCell(cell) {
  const { name, group, title } = cell;
  const startedAt = new Date();
  const machine = describeMachine();
  const { table, isValid, ...results } = cell.section ? await runSection(cell) : await runDrivers(cell);
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const measuredOn = { startedAt, seconds, share, machine, versions };
  writeCell(name, { name, group, title, definition: definitionOf(cell), ...measuredOn, ...results });
  console.log(`${name}: ${title}, ${seconds} s\n${table}\n`);
  if (!isValid) process.exitCode = 1;
}

async function runSection({ section }) {
  const { table, figures } = await section(sink);
  return { table, figures, isValid: true };
}

async function runDrivers(cell) {
  const rounds = share === 1 ? cell.rounds : 1;
  const results = await runRounds(cell.drivers, rounds, sink, (driver) => shareOf(cell.jobOf(driver)));
  const drivers = summarize(cell.drivers, results);
  return {
    rounds,
    drivers,
    table: tables(drivers),
    isValid: drivers.every(({ complaint }) => complaint === undefined),
  };
}

/** All that decides what is measured, as text. */
function definitionOf({ drivers = [], rounds, jobOf }) {
  return JSON.stringify({ rounds, jobs: drivers.map((driver) => [driver, jobOf(driver)]) });
}

/** A try warms up like any other: what is not warm says nothing, not even by how much. */
function shareOf({ plan, ...job }) {
  return { ...job, plan: { ...plan, turns: atLeastOne(plan.turns * share) } };
}
