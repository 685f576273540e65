#!/usr/bin/env node
// npm test [-- arguments of vitest]
// npm test -- programs | peers | browser | runtimes | faults | fuzz [arguments of vitest]
// npm test -- node VERSION [arguments of vitest]
// npm test -- mutants [source files and test files]
//
// Builds first if the sources have changed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
  fuzz: (args) => vitest(['fuzz'], args),
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
