#!/usr/bin/env node
// npm run check                              format, lint and types
// npm run check -- publish                   what npm would publish: its files, entries and types, licences and provenance
// npm run check -- release [--skip-clone]    follows README.md, see scripts/release-check.mjs
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, root, run } from './run.mjs';

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [name, ...args] = process.argv.slice(2);
  if (name === 'publish') checkPublish();
  else if (name === 'release') build() && run(['scripts/release-check.mjs', ...args]);
  else if (!(await check())) process.exitCode = 1;
}

/** Runs Biome and then the compiler, and returns whether they passed. Prints the output of a failed check only. */
export async function check() {
  let isPassed = true;
  for (const command of [
    ['node_modules/@biomejs/biome/bin/biome', 'check'],
    ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.check.json'],
    ['node_modules/typescript/bin/tsc', '-p', 'src/viewer'],
  ]) {
    const child = spawn(process.execPath, command, { cwd: root });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const [code] = await once(child, 'close');
    if (code === 0) continue;
    console.error(`${command.join(' ')} failed:\n${Buffer.concat(output)}`);
    isPassed = false;
  }
  return isPassed;
}

function checkPublish() {
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project=units'];
  return (
    build() &&
    listFiles() &&
    run(['node_modules/publint/src/cli.js', '--strict']) &&
    run(['node_modules/@arethetypeswrong/cli/dist/index.js', '--pack', '.']) &&
    run([...vitest, 'test/package/metadata.test.ts'])
  );
}

/** Prints the files that npm would publish. */
function listFiles() {
  const options = { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' };
  const isListed = spawnSync('npm', ['pack', '--dry-run'], options).status === 0;
  if (!isListed) process.exitCode = 1;
  return isListed;
}
