#!/usr/bin/env node
// npm test [-- arguments of vitest]
// npm test -- programs | peers | browser | runtimes | faults [arguments of vitest]
// npm test -- fuzz [test files] [arguments of vitest]
// npm test -- node VERSION [arguments of vitest]
// npm test -- mutants [source files and test files]
//
// Builds first if the sources have changed.
import { execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check } from './check.mjs';
import { installLocked } from './install-locked.mjs';
import { build, failWith, nodeFor, root, run } from './run.mjs';

const DAILY = ['units', 'virtual-time', 'fetch', 'isolated'];
const PEERS = [['scripts/install-peers.mjs'], ['scripts/build-chat.mjs']];

const SUITES = {
  programs: (args) => build() && vitest(['programs'], args),
  peers: (args) => prepared(PEERS) && vitest(['peers'], args),
  browser: (args) => prepared(PEERS) && vitest(['browser'], args),
  runtimes: (args) => prepared([['scripts/install-runtimes.mjs']]) && vitest(['runtimes'], args),
  faults: (args) => build() && vitest(['faults'], args),
  fuzz,
  node: onNode,
  mutants,
};

const [name, ...args] = process.argv.slice(2);
await (Object.hasOwn(SUITES, name ?? '') ? SUITES[name](args) : daily(process.argv.slice(2)));

/** Runs the checks and the tests at the same time, which keeps both cores of a small machine busy. */
async function daily(args) {
  if (!build()) return;
  const command = vitestCommand(DAILY, args);
  const tests = spawn(process.execPath, command, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [areChecked, [code]] = await Promise.all([check(), once(tests, 'close')]);
  process.exitCode = areChecked && code === 0 ? 0 : 1;
}

function prepared(programs) {
  return build() && programs.every((program) => run(program));
}

function onNode([version, ...args]) {
  const node = nodeFor(version);
  if (node === undefined) failWith('usage: npm run test:node -- VERSION [arguments of vitest], for example 26');
  return build() && vitest([...DAILY, 'programs'], args, { node });
}

/** Tries other cases than the gate, in all test files that draw some or in the named ones, `CAMPAIGNS` times. */
function fuzz(args) {
  const named = args.filter((arg) => arg.startsWith('test/'));
  const options = args.filter((arg) => !named.includes(arg));
  const files = drawingFiles().filter((file) => named.length === 0 || named.some((name) => file.startsWith(name)));
  const ofPeers = files.filter((file) => file.startsWith('test/peers/'));
  const others = files.filter((file) => !ofPeers.includes(file));
  if (!prepared(ofPeers.length > 0 ? PEERS : [])) return;
  const { CAMPAIGNS: rounds = '1', CAMPAIGN_SEED: first = String(randomInt(1_000_000)) } = process.env;
  if (files.length === 0) failWith(`no test file draws cases: ${named}`);
  for (let round = 0; round < Number(rounds); round++) {
    const CAMPAIGN_SEED = String(Number(first) + round);
    console.log(`CAMPAIGN_SEED=${CAMPAIGN_SEED}`);
    // The parts that `.ci/run` tries.
    const part = (CAMPAIGNS) => ({ env: { CAMPAIGNS, CAMPAIGN_SEED } });
    if (others.length > 0) vitest(DAILY, [...others, ...options], part('1'));
    if (ofPeers.length > 0) vitest(['peers'], [...ofPeers, ...options], part('0.1'));
  }
}

/** Returns the test files that import fast-check or the campaigns, directly or through other files of `test/`. */
function drawingFiles() {
  const known = new Map([['test/support/campaign.ts', true]]);
  const draws = (path) => {
    if (known.has(path)) return known.get(path);
    // Programs in the texts of tests import files that do not exist here.
    const text = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : '';
    const imports = [...text.matchAll(/(?:from|import\() ?'(fast-check|\.[^']*\.ts)'/g)].map(([, from]) => from);
    known.set(path, imports.includes('fast-check') || imports.some((from) => draws(join(dirname(path), from))));
    return known.get(path);
  };
  // Git leaves out the folders of installed packages.
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'test/*.test.ts'], { cwd: root });
  return listed.toString().trim().split('\n').filter(draws);
}

/** Runs Stryker. Files of `src/` replace the source files in stryker.config.mjs, and test files the tests to run. */
async function mutants(files) {
  const tests = files.filter((file) => file.endsWith('.test.ts'));
  const sources = files.filter((file) => !tests.includes(file));
  const folder = new URL('../test/peers/mutants/', import.meta.url);
  await installLocked(folder);
  const stryker = 'test/peers/mutants/node_modules/@stryker-mutator/core/bin/stryker.js';
  const mutate = sources.length === 0 ? [] : ['--mutate', sources.join()];
  const config = fileURLToPath(new URL('stryker.config.mjs', folder));
  return run([stryker, 'run', config, ...mutate], { node: nodeFor('24'), env: { MUTANT_TESTS: tests.join() } });
}

function vitest(projects, args, options) {
  return run(vitestCommand(projects, args), options);
}

function vitestCommand(projects, args) {
  const chosen = projects.map((project) => `--project=${project}`);
  return ['node_modules/vitest/vitest.mjs', 'run', ...chosen, ...args];
}
