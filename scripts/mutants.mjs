#!/usr/bin/env node
// `npm run test:mutants [-- FILE …]`: Stryker changes the source in many small ways and lists the changes that no test notices. Runs on
// Node 24, with packages installed in test/mutants/. Files of `src/` are mutated instead of those of stryker.config.mjs; only the
// test files given are run instead of those of vitest.config.ts.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installLocked } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = new URL('../test/mutants/', import.meta.url);
const given = process.argv.slice(2);
const tests = given.filter((file) => file.endsWith('.test.ts'));
const files = given.filter((file) => !tests.includes(file));

await installLocked(folder);
const stryker = fileURLToPath(new URL('node_modules/@stryker-mutator/core/bin/stryker.js', folder));
const mutate = files.length === 0 ? [] : ['--mutate', files.join()];
const config = join(root, 'test', 'mutants', 'stryker.config.mjs');
const { status } = spawnSync(nodeBinary('24'), [stryker, 'run', config, ...mutate], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, MUTANT_TESTS: tests.join() },
});
process.exitCode = status ?? 1;
