#!/usr/bin/env node
/**
 * `npm run bench`: the cost of a run, in three minutes. `npm run bench -- full`: every cell, except those that this
 * machine, Node and build have already finished. `npm run bench -- ingest`: the throughput into the receiver. Each cell has
 * a result file per Node, from which `npm run bench -- page` generates the page. `npm run bench -- --check`: whether the
 * ratios of the README hold here.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installLocked } from '../scripts/install-locked.mjs';
import { CELLS } from './cells.mjs';
import { atLeastOne, besideOf, DRIVER_NAMES, isBeside, isFromRegistry } from './drivers.mjs';
import { describeMachine, versionsMeasured } from './machine.mjs';
import { readResults } from './page/compact.mjs';
import { LEADING } from './page/page.mjs';
import { CHECKED_DRIVERS, compareRatios } from './page/readme.mjs';
import { runDriver, startSink } from './processes.mjs';
import { tables } from './report.mjs';
import { isFinished, writeCell } from './results.mjs';
import { runRounds } from './rounds.mjs';
import { summarize } from './summary.mjs';

const major = process.versions.node.split('.')[0];
const CELL_NAMES = CELLS.map(({ name }) => name);
const OWN_DRIVERS = DRIVER_NAMES.filter((name) => !isBeside(name));
const USAGE = `usage: npm run bench -- [--node VERSION] [--only CELL,…] [--drivers DRIVER,…] [--beside CHECKOUT] [--rounds N] [--share N] [--fresh] [--check]
cells: ${CELL_NAMES.join(' ')}
drivers: ${OWN_DRIVERS.join(' ')}`;

const { isFull, only, drivers, beside, rounds, share, isFresh, isCheck } = readOptions();
const isKept = drivers === undefined && beside === undefined && rounds === undefined;
const { cpu, cores, node } = describeMachine();
const versions = versionsMeasured();
const chosen = CELLS.filter(({ name, isQuick }) => only?.includes(name) ?? (isFull || isQuick));

console.log(`${cpu}, ${cores} cores, Node ${node}${share < 1 ? `; a try with ${100 * share} % of the turns` : ''}`);
if (chosen.some((cell) => driversOf(cell).some(isFromRegistry))) {
  await installLocked(new URL('peers/', import.meta.url));
}
const sink = await startSink();
for (const [at, cell] of chosen.entries()) {
  const definition = definitionOf(cell);
  if (
    isFull &&
    !isFresh &&
    isKept &&
    isFinished(cell.name, { definition, machine: { cpu, cores, node }, versions, share })
  ) {
    console.log(`${cell.name}: finished before; --fresh runs it again`);
    continue;
  }
  console.log(`${cell.name}, ${at + 1} of ${chosen.length} …`);
  const rows = await runCell(cell, definition);
  if (isCheck) check(rows);
}
sink.close();

async function runCell(cell, definition) {
  const { name, title } = cell;
  const startedAt = new Date();
  const machine = describeMachine();
  const { table, isValid, ...results } = cell.section ? await runSection(cell) : await runDrivers(cell);
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  if (isKept) writeCell(name, { name, title, definition, startedAt, seconds, share, machine, versions, ...results });
  console.log(`${name}: ${title}, ${seconds} s\n${table}\n`);
  if (!isValid) process.exitCode = 1;
  return results.drivers;
}

function check(rows) {
  const text = readFileSync(new URL('../docs/benchmarks/results.json', import.meta.url), 'utf8');
  const stated = readResults(text)[major];
  console.log(compareRatios(stated, { cells: [{ name: 'agent', drivers: rows }] }).join('\n'));
}

async function runSection({ section }) {
  const { table, figures } = await section({ sink, beside });
  return { table, figures, isValid: true };
}

async function runDrivers(cell) {
  const names = driversOf(cell);
  const count = rounds ?? (share === 1 ? cell.rounds : 1);
  const measure = cell.measure ?? ((driver, job) => runDriver(driver, { ...job, sink }));
  const results = await runRounds(names, count, (driver) =>
    measure(driver, { ...shareOf(cell.jobOf(driver)), beside }),
  );
  const rows = summarize(names, results);
  const isValid = rows.every(({ complaint }) => complaint === undefined);
  return { rounds: count, drivers: rows, table: tables(rows, cell.columns), isValid };
}

function driversOf({ drivers: own = [] }) {
  const chosenDrivers = own.filter((name) => drivers?.includes(name) ?? true);
  if (beside === undefined) return chosenDrivers;
  return chosenDrivers.flatMap((name) => [name, besideOf(name) ?? []].flat());
}

/** Returns everything that defines what a cell measures, as text. */
function definitionOf({ drivers: own = [], rounds: count, jobOf }) {
  return JSON.stringify({ rounds: count, jobs: own.map((driver) => [driver, jobOf(driver)]) });
}

/** Warms up like a full measurement. */
function shareOf({ plan, ...job }) {
  return { ...job, plan: { ...plan, turns: atLeastOne(plan.turns * share) } };
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        full: { type: 'boolean', default: false },
        only: { type: 'string' },
        drivers: { type: 'string' },
        beside: { type: 'string' },
        rounds: { type: 'string' },
        share: { type: 'string', default: '1' },
        fresh: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
      },
    });
    const share = Number(values.share);
    if (!(share > 0 && share <= 1)) throw new Error(`Expected --share above 0 and at most 1, got '${values.share}'`);
    const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
    if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))
      throw new Error(`Expected --rounds to be a whole number from 1, got '${values.rounds}'`);
    if (values.check && !LEADING.includes(major))
      throw new Error(`Expected --node ${LEADING.join(' or ')}, of which the README states figures, got Node ${major}`);
    return {
      isFull: values.full,
      only: values.check ? ['agent'] : namesIn('--only', values.only, CELL_NAMES),
      drivers: values.check ? CHECKED_DRIVERS : namesIn('--drivers', values.drivers, OWN_DRIVERS),
      isCheck: values.check,
      beside: values.beside,
      rounds,
      share,
      isFresh: values.fresh,
    };
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
}

function namesIn(flag, text, known) {
  const names = text?.split(',');
  const unknown = names?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) throw new Error(`Expected known names for ${flag}, got '${unknown.join(',')}'`);
  return names;
}
